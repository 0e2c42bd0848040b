//! The server of the board: what it serves, what it refuses, and what it survives.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod board_support;
#[path = "../src/study/fixture.rs"]
#[allow(dead_code, reason = "the tests inside use the rest")]
mod fixture;
mod support;

use std::fs;
use std::net::Ipv4Addr;

use board_support::{Served, encoded, store_study};
use serde_json::{Value, json};
use support::{PLAN, Script, healthy, repaired};
use surefoot_diagnose::Observation;
use surefoot_record::Status;

fn has_run(name: &str, status: &str) -> impl Fn(&Value) -> bool {
    let (name, status) = (name.to_owned(), status.to_owned());
    move |found| {
        let runs = found["runs"].as_array().unwrap();
        runs.iter().any(|row| row["name"] == name.as_str() && row["status"] == status.as_str())
    }
}

#[test]
fn the_page_is_served_with_a_strict_policy() {
    let runs = tempfile::tempdir().unwrap();
    let board = Served::start(&[runs.path()]);
    for path in ["/", "/board.js", "/board.css", "/api/runs", "/nothing"] {
        let answer = board.get(path);
        assert_eq!(answer.status, if path == "/nothing" { 404 } else { 200 }, "{path}");
        assert!(
            answer
                .headers
                .contains("content-security-policy: default-src 'none'; script-src 'self'")
        );
        assert!(answer.headers.contains("x-content-type-options: nosniff"), "{path}");
    }
    let page = board.get("/").body;
    assert!(!page.contains("http"), "no address of another server: {page}");
}

#[test]
fn a_run_appears_grows_and_ends() {
    let runs = tempfile::tempdir().unwrap();
    let board = Served::start(&[runs.path()]);
    board.wait("/api/runs", |found| found["runs"] == json!([]));
    let script = Script { steps: 400, ..healthy() };
    let mut recorder = script.begin(runs.path(), "moons", PLAN);
    for step in 1..=10 {
        recorder.observe(&Observation::new(step, 1.0));
    }
    recorder.sync().unwrap();
    board.wait("/api/runs", has_run("moons-001", "running"));
    let run = board.wait("/api/run?id=0/moons-001", |run| run["step"] == 10);
    assert_eq!((&run["status"], &run["planned"]), (&json!("running"), &json!(1600)));
    for step in 11..=50 {
        recorder.observe(&Observation::new(step, 1.0));
    }
    recorder.sync().unwrap();
    let run = board.wait("/api/run?id=0/moons-001", |run| run["step"] == 50);
    assert!(
        run["html"]["summary"]
            .as_str()
            .unwrap()
            .contains("The run is training and has reached step 50")
    );
    recorder.finish(&script.summary(Status::Normal, 0.97, 0.971)).unwrap();
    board.wait("/api/runs", has_run("moons-001", "normal"));
    board.wait("/api/run?id=0/moons-001", |run| run["status"] == "normal");
}

#[test]
fn a_repaired_run_has_what_its_report_has() {
    let runs = tempfile::tempdir().unwrap();
    let dir = repaired(runs.path());
    fs::write(dir.join("tags.txt"), "baseline\n<b>bold</b>\n").unwrap();
    let board = Served::start(&[runs.path()]);
    let rows = board.wait("/api/runs", has_run("moons-001", "repaired"));
    assert_eq!(rows["runs"][0]["tags"], json!(["baseline", "<b>bold</b>"]));
    assert_eq!(rows["runs"][0]["problems"], json!(["dying ReLU"]));
    let run = board.wait("/api/run?id=0/moons-001", |run| run["loading"] == false);
    let report = board.get("/report?id=0/moons-001");
    assert!(report.headers.contains("attachment; filename=\"moons-001.html\""));
    for part in ["findings", "attempts", "reproduction"] {
        let part = run["html"][part].as_str().unwrap();
        assert!(report.body.contains(part), "{part}");
        assert!(!part.contains("style="), "the policy forbids it");
    }
    assert_eq!(run["attempts"].as_array().unwrap().len(), 3);
    let second = board.get("/api/series?id=0/moons-001/attempts/02-001").json();
    assert!(second["loss"]["x"].as_array().unwrap().len() > 100);
    let series = board.get("/api/series?id=0/moons-001&heat=gradients").json();
    assert_eq!(series["heat"]["rows"][0]["layer"], "dense_1");
    assert!(series["heat"]["rows"][0]["cells"].as_array().unwrap().contains(&json!("zero")));
}

#[test]
fn a_long_run_is_downsampled_and_a_part_is_read_closely() {
    let runs = tempfile::tempdir().unwrap();
    let script = Script { steps: 60_000, every: 100, ..healthy() };
    script.run(runs.path(), "long", Status::Normal);
    let board = Served::start(&[runs.path()]);
    board.wait("/api/run?id=0/long-001", |run| run["loading"] == false && run["step"] == 60_000);
    let whole = board.get("/api/series?id=0/long-001&buckets=500").json();
    let points = whole["loss"]["x"].as_array().unwrap().len();
    assert!((250..=500).contains(&points), "{points}");
    let part = board
        .get("/api/series?id=0/long-001&buckets=500&from=30000&to=30099&heat=gradients")
        .json();
    let steps: Vec<u64> =
        part["loss"]["x"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as u64).collect();
    assert_eq!(steps, (30_000..=30_099).collect::<Vec<u64>>(), "every step is there");
    assert_eq!(part["heat"]["start"], 29_999);
    // The minimum and the maximum of each bucket are kept.
    let lows = whole["loss"]["low"].as_array().unwrap().iter().map(|low| low.as_f64().unwrap());
    let least = (1..=60_000).map(script.loss).fold(f64::MAX, f64::min);
    assert!((lows.fold(f64::MAX, f64::min) / least - 1.0).abs() < 1e-4);
}

#[test]
fn nothing_outside_the_given_paths_is_readable() {
    let all = tempfile::tempdir().unwrap();
    let given = all.path().join("given");
    healthy().run(&given, "mine", Status::Normal);
    healthy().run(&all.path().join("other"), "secret", Status::Normal);
    std::os::unix::fs::symlink(all.path().join("other/secret-001"), given.join("link")).unwrap();
    let board = Served::start(&[&given]);
    let secret = all.path().join("other/secret-001");
    let ids = [
        "0/../other/secret-001".to_owned(),
        "0/mine-001/../../other/secret-001".to_owned(),
        format!("0/{}", secret.display()),
        secret.display().to_string(),
        "0/link".to_owned(),
        "1/mine-001".to_owned(),
        "0/mine-001/checkpoints".to_owned(),
        "\0".to_owned(),
    ];
    for id in &ids {
        for path in ["/api/run", "/api/series", "/report"] {
            let answer = board.get(&format!("{path}?id={}", encoded(id)));
            assert_eq!(answer.status, 404, "{path} {id}");
            assert!(!answer.body.contains("moons"), "{path} {id}");
        }
    }
    for path in ["/../Cargo.toml", "/..%2f..%2fetc/passwd", "//etc/passwd", "/mine-001/plan.toml"] {
        assert_eq!(board.get(path).status, 404, "{path}");
    }
    assert_eq!(board.get("/api/run?id=0/mine-001").status, 200);
}

#[test]
fn other_machines_need_the_token() {
    let runs = tempfile::tempdir().unwrap();
    let board = Served::start_on(Ipv4Addr::UNSPECIFIED.into(), &[runs.path()]);
    let token = board.url.split_once("?token=").unwrap().1.to_owned();
    for path in ["/", "/board.js", "/api/runs", "/api/events", "/?token=wrong", "/api/runs?token="]
    {
        let answer = board.get(path);
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.body.contains("token is missing or wrong"), "{}", answer.body);
    }
    let answer = board.get(&format!("/?token={token}"));
    assert_eq!(answer.status, 303);
    let cookie = answer.headers.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"));
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    assert_eq!(board.get_with("/api/runs", &cookie).status, 200);
    let wrong = cookie.replace(&token[..4], "0000");
    assert_eq!(board.get_with("/api/runs", &wrong).status, 401);
}

#[test]
fn names_of_other_sites_are_refused() {
    let runs = tempfile::tempdir().unwrap();
    let board = Served::start(&[runs.path()]);
    let answer = board.get_with("/api/runs", "Host: evil.example\r\n");
    assert_eq!(answer.status, 403);
}

#[test]
fn a_half_written_run_is_shown_as_far_as_it_goes() {
    let runs = tempfile::tempdir().unwrap();
    let mut recorder = healthy().begin(runs.path(), "cut", PLAN);
    healthy().record(&mut recorder);
    let dir = recorder.dir().to_owned();
    drop(recorder);
    for file in ["observations.steps.arrows", "observations.layers.arrows", "events.jsonl"] {
        let content = fs::read(dir.join(file)).unwrap();
        fs::write(dir.join(file), &content[..content.len() * 2 / 3]).unwrap();
    }
    healthy().run(runs.path(), "whole", Status::Normal);
    let broken = healthy().run(runs.path(), "broken", Status::Normal);
    fs::write(broken.join("header.json"), "{\"format\":").unwrap();
    let board = Served::start(&[runs.path()]);
    board.wait("/api/runs", has_run("whole-001", "normal"));
    let rows = board.wait("/api/runs", has_run("broken-001", "damaged"));
    let row = rows["runs"].as_array().unwrap().iter().find(|row| row["name"] == "broken-001");
    let error = row.unwrap()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("header.json is damaged"), "{error}");
    let answer = board.get("/api/run?id=0/broken-001");
    assert_eq!((answer.status, answer.json()["error"].as_str().unwrap()), (404, error.as_str()));
    let cut = board.wait("/api/run?id=0/cut-001", |run| run["loading"] == false);
    let step = cut["step"].as_u64().unwrap();
    assert!((100..1600).contains(&step), "{step}");
}

#[test]
fn a_damaged_store_is_a_note_and_harms_nothing_else() {
    let all = tempfile::tempdir().unwrap();
    fs::create_dir(all.path().join("bad")).unwrap();
    fs::create_dir(all.path().join("good")).unwrap();
    fs::write(all.path().join("bad/study.db"), "no database".repeat(500)).unwrap();
    store_study(&all.path().join("good/study.db"), 60);
    let board = Served::start(&[all.path()]);
    let found = board.wait("/api/runs", |found| {
        found["studies"][0]["name"].is_string() && found["notes"].as_array().unwrap().len() == 1
    });
    let note = found["notes"][0].as_str().unwrap();
    assert!(note.contains("bad/study.db: not a SQLite database, or damaged"), "{note}");
    let study = &found["studies"][0];
    assert_eq!((&study["name"], &study["trials"]), (&json!("digits"), &json!(60)));
    let id = encoded(study["id"].as_str().unwrap());
    let data = board.wait(&format!("/api/study?id={id}"), |data| data["revision"].is_u64());
    assert_eq!(data["trials"]["number"].as_array().unwrap().len(), 60);
    assert!(data["html"]["summary"].as_str().unwrap().contains("Of 60 trials"));
    let since = data["revision"].as_u64().unwrap();
    let later = board.get(&format!("/api/study?id={id}&since={since}")).json();
    assert_eq!(later["trials"]["number"], json!([]), "nothing has changed");
    let report = board.get(&format!("/report?study={id}"));
    assert!(report.body.contains("surefoot study report"));
}

#[test]
fn the_card_of_a_study_counts_paused_trials_and_their_values() {
    let all = tempfile::tempdir().unwrap();
    let file = all.path().join("study.db");
    store_study(&file, 12);
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection
        .execute_batch(
            "UPDATE surefoot_trial SET state = 'paused' WHERE state = 'running';
             INSERT INTO surefoot_report
             SELECT study, number, step + 1, attempt, 2.0, seconds, operations, reported, change
             FROM surefoot_report WHERE number = 11 ORDER BY step DESC LIMIT 1",
        )
        .unwrap();
    let board = Served::start(&[all.path()]);
    let found = board.wait("/api/runs", |found| found["studies"].as_array().unwrap().len() == 1);
    let card = &found["studies"][0];
    assert_eq!((&card["trials"], &card["paused"]), (&json!(12), &json!(3)));
    assert_eq!((&card["best"], &card["best_trial"]), (&json!(2.0), &json!(11)));
}

#[test]
fn the_run_of_a_trial_is_found_beside_its_store() {
    let all = tempfile::tempdir().unwrap();
    let dir = all.path().join("digits");
    store_study(&dir.with_file_name("x.db"), 12);
    fs::create_dir(&dir).unwrap();
    fs::rename(all.path().join("x.db"), dir.join("study.db")).unwrap();
    let run = healthy().run(&dir, "t", Status::Normal);
    fs::rename(run, dir.join("trial-00003")).unwrap();
    let board = Served::start(&[all.path()]);
    let found = board.wait("/api/runs", |found| found["studies"].as_array().unwrap().len() == 1);
    assert_eq!(found["runs"], json!([]), "runs of trials are not in the list");
    let id = encoded(found["studies"][0]["id"].as_str().unwrap());
    board.wait(&format!("/api/study?id={id}"), |data| data["revision"].is_u64());
    let trial = board.get(&format!("/api/trial?id={id}&number=3")).json();
    assert_eq!(trial, json!({ "id": "0/digits/trial-00003" }));
    assert_eq!(board.get("/api/run?id=0/digits/trial-00003").status, 200);
    let other = board.get(&format!("/api/trial?id={id}&number=4"));
    assert_eq!(other.status, 404);
    assert!(other.body.contains("not a run below the paths"), "{}", other.body);
}

#[test]
fn a_deleted_directory_is_reported_and_may_come_back() {
    let all = tempfile::tempdir().unwrap();
    let runs = all.path().join("runs");
    healthy().run(&runs, "moons", Status::Normal);
    let board = Served::start(&[&runs]);
    let rows = board.wait("/api/runs", has_run("moons-001", "normal"));
    assert_eq!(board.get("/api/run?id=0/moons-001").status, 200);
    let since = rows["revision"].as_u64().unwrap();
    fs::remove_dir_all(&runs).unwrap();
    let later = board
        .wait(&format!("/api/runs?since={since}"), |found| found["gone"] == json!(["0/moons-001"]));
    assert!(later["notes"][0].as_str().unwrap().contains("does not exist"), "{later}");
    let answer = board.get("/api/run?id=0/moons-001");
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("it may have been deleted"), "{}", answer.body);
    healthy().run(&runs, "moons", Status::Failed);
    board.wait("/api/runs", has_run("moons-001", "failed"));
    board.wait("/api/run?id=0/moons-001", |run| run["status"] == "failed");
}

#[test]
fn a_hundred_pages_are_served_at_once() {
    let runs = tempfile::tempdir().unwrap();
    let mut recorder = healthy().begin(runs.path(), "moons", PLAN);
    recorder.observe(&Observation::new(1, 1.0));
    recorder.sync().unwrap();
    let board = Served::start(&[runs.path()]);
    board.wait("/api/runs", has_run("moons-001", "running"));
    let mut pages: Vec<_> = (0..100)
        .map(|i| board.connect(["/api/events", "/api/events?run=0/moons-001"][i % 2], ""))
        .collect();
    for page in &mut pages {
        assert!(Served::first_message(page).contains("revision"));
    }
    for step in 2..=30 {
        recorder.observe(&Observation::new(step, 1.0));
    }
    recorder.sync().unwrap();
    for page in &mut pages {
        assert!(Served::first_message(page).contains("revision"));
    }
    drop(pages);
    assert_eq!(board.get("/api/runs").status, 200);
}

#[test]
fn a_deleted_run_ends_with_an_error_and_other_pages_go_on() {
    let runs = tempfile::tempdir().unwrap();
    let dir = healthy().run(runs.path(), "moons", Status::Normal);
    let board = Served::start(&[runs.path()]);
    let mut page = board.connect("/api/events?run=0/moons-001", "");
    Served::first_message(&mut page);
    fs::remove_dir_all(&dir).unwrap();
    while !Served::first_message(&mut page).contains("deleted") {}
    assert_eq!(board.get("/").status, 200);
}

#[test]
fn a_port_in_use_is_skipped_unless_it_was_asked_for() {
    let config = surefoot_report::BoardConfig { port: Some(0), ..Default::default() };
    let first = surefoot_report::Board::bind(&config).unwrap();
    let port = first.url().trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap();
    let again = surefoot_report::BoardConfig { port: Some(port), ..config };
    let error = surefoot_report::Board::bind(&again).unwrap_err();
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}
