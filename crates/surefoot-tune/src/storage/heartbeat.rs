//! Heartbeats: proof that a worker is alive while it runs a long step.

use super::{Claim, Storage, StorageError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Sends heartbeats for one claim after the other, from a thread with its own connection.
#[derive(Debug)]
pub struct HeartbeatThread {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

struct Request {
    claim: Claim,
    interval: Duration,
    /// Set when the claim or the storage is lost. Expires with its [`Heartbeat`].
    lost: Weak<AtomicBool>,
}

impl HeartbeatThread {
    /// Connects to an existing storage.
    pub fn open(url: &str) -> Result<HeartbeatThread, StorageError> {
        let storage = Storage::open_existing(url)?;
        let (requests, received) = mpsc::channel();
        Ok(HeartbeatThread {
            requests: Some(requests),
            thread: Some(std::thread::spawn(move || run(storage, &received))),
        })
    }

    /// Sends heartbeats for `claim` instead of the previous one, until the result is dropped.
    pub fn start(&self, claim: &Claim, interval: Duration) -> Heartbeat {
        let lost = Arc::new(AtomicBool::new(false));
        if let Some(requests) = &self.requests {
            let request = Request { claim: claim.clone(), interval, lost: Arc::downgrade(&lost) };
            // The receiver lives as long as the thread.
            let _ = requests.send(request);
        }
        Heartbeat { lost }
    }
}

impl Drop for HeartbeatThread {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(mut storage: Storage, requests: &Receiver<Request>) {
    while let Ok(mut request) = requests.recv() {
        loop {
            match requests.recv_timeout(request.interval) {
                Ok(next) => request = next,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let Some(lost) = request.lost.upgrade() else {
                        break;
                    };
                    // Other errors may be temporary; if not, the worker's own calls fail too.
                    if let Err(StorageError::ClaimLost { .. } | StorageError::Moved { .. }) =
                        storage.heartbeat(&request.claim)
                    {
                        lost.store(true, Ordering::Relaxed);
                        break;
                    }
                }
            }
        }
    }
}

/// Heartbeats for one claim, sent until this is dropped.
#[derive(Debug, Default)]
pub struct Heartbeat {
    lost: Arc<AtomicBool>,
}

impl Heartbeat {
    /// True once the claim is lost: the heartbeat was overdue and another worker may continue the trial, or the
    /// storage is gone.
    pub fn claim_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}
