//! A board that is served to tests, and what it shows.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::fixture::Made;
use serde_json::Value;
use surefoot_report::{Board, BoardConfig};
use surefoot_tune::storage::{NewStudy, Storage, TrialState};

/// A running board.
pub(crate) struct Served {
    pub(crate) url: String,
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// An answer of the server.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }
}

impl Served {
    pub(crate) fn start(paths: &[&Path]) -> Served {
        Served::start_on(Ipv4Addr::LOCALHOST.into(), paths)
    }

    pub(crate) fn start_on(host: IpAddr, paths: &[&Path]) -> Served {
        let paths = paths.iter().map(|path| path.display().to_string()).collect();
        let board = Board::bind(&BoardConfig { paths, host, port: Some(0) }).unwrap();
        let url = board.url().to_owned();
        let rest = url.rsplit_once(':').unwrap().1;
        let port = rest.split('/').next().unwrap().parse().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            board.serve(move || asked.load(Ordering::Relaxed)).unwrap();
        });
        Served { url, port, stop, thread: Some(thread) }
    }

    pub(crate) fn connect(&self, path: &str, headers: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let host = if headers.contains("Host:") { "" } else { "Host: localhost\r\n" };
        write!(stream, "GET {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n").unwrap();
        BufReader::new(stream)
    }

    /// Requests a path.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    pub(crate) fn get_with(&self, path: &str, headers: &str) -> Answer {
        let mut answer = String::new();
        self.connect(path, headers).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, headers: head.to_lowercase(), body: body.to_owned() }
    }

    /// Requests JSON until it is as expected.
    pub(crate) fn wait(&self, path: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let found = self.get(path).json();
            if is_expected(&found) {
                return found;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{path}: {found}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits for the first message about changes.
    pub(crate) fn first_message(stream: &mut BufReader<TcpStream>) -> String {
        let mut line = String::new();
        while !line.starts_with("data:") {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
        }
        line
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Encodes an id for an address.
pub(crate) fn encoded(id: &str) -> String {
    id.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Writes a study with this many trials to a new store, in one transaction.
pub(crate) fn store_study(file: &Path, trials: u64) {
    let made = Made::study(trials);
    let mut storage = Storage::open(&file.display().to_string()).unwrap();
    let study = NewStudy {
        name: made.name.clone(),
        fingerprint: "fingerprint".to_owned(),
        document: "[tune]\nname = \"digits\"\n".to_owned(),
        space: made.space.clone(),
        direction: made.direction,
        seed: 7,
    };
    storage.join(&study).unwrap();
    drop(storage);
    let mut connection = rusqlite::Connection::open(file).unwrap();
    // Reports refer to their trial, which follows.
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    let transaction = connection.transaction().unwrap();
    let mut change = 0_i64;
    for (trial, reports) in &made.trials {
        change += 1;
        let point_change = change;
        let number = trial.number as i64;
        let worker = &trial.attempts[0];
        for report in reports {
            change += 1;
            let value: rusqlite::types::Value = match report.value.is_nan() {
                true => "NaN".to_owned().into(),
                false => report.value.into(),
            };
            transaction
                .prepare_cached(
                    "INSERT INTO surefoot_report VALUES (1, ?1, ?2, 1, ?3, 0.25, 1e6, ?4, ?5)",
                )
                .unwrap()
                .execute(rusqlite::params![number, report.step, value, report.at, change])
                .unwrap();
        }
        change += 1;
        let (reason, message) = match &trial.state {
            TrialState::Pruned { reason, .. } => (serde_json::to_string(reason).ok(), None),
            TrialState::Failed { message } => (None, Some(message.clone())),
            _ => (None, None),
        };
        let value = trial.value().map(|value| match value.is_nan() {
            true => rusqlite::types::Value::from("NaN".to_owned()),
            false => value.into(),
        });
        let end_change = trial.state.is_final().then_some(change);
        let point = trial.point.as_ref().and_then(|point| serde_json::to_string(point).ok());
        transaction
            .prepare_cached(
                "INSERT INTO surefoot_trial VALUES (1, ?1, ?2, ?3, ?4, 0, 20, ?5, ?6, ?7, ?8, ?9, 1, 0, ?10, 1, \
                 NULL, NULL, ?11, ?12, ?13, ?14, ?15)",
            )
            .unwrap()
            .execute(rusqlite::params![
                number,
                trial.state.name(),
                format!("creator-{number}"),
                point,
                trial.run,
                value,
                trial.seconds,
                reason,
                message,
                reports.len() as i64,
                trial.created,
                trial.ended,
                point_change,
                end_change,
                change,
            ])
            .unwrap();
        transaction
            .prepare_cached("INSERT INTO surefoot_attempt VALUES (1, ?1, 1, ?2, ?3, ?4, ?5, ?6)")
            .unwrap()
            .execute(rusqlite::params![
                number,
                format!("token-{number}"),
                worker.worker,
                worker.began,
                worker.ended,
                worker.state.name(),
            ])
            .unwrap();
    }
    let update = "UPDATE surefoot_study SET trials = ?1, change = ?2";
    transaction.execute(update, [trials as i64, change]).unwrap();
    transaction.commit().unwrap();
}
