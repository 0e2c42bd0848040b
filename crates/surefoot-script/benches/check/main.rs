//! How fast scripts are checked: `cargo bench -p surefoot-script --bench check`.
//!
//! A thousand made-up files of five hundred lines are checked as `surefoot check DIR` does it, taking
//! turns with reading and parsing them alone, on as many threads. The ratio is what the analysis
//! costs over the parser.

mod scripts;

use ruff_python_parser::parse_module;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use surefoot_script::{Settings, check};

const SEED: u64 = 7;
const ROUNDS: usize = 5;

fn main() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut files = Vec::new();
    let mut lines = 0;
    for script in scripts::scripts(SEED) {
        let path = folder.path().join(&script.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        lines += script.text.lines().count();
        fs::write(&path, script.text)?;
        files.push(path);
    }
    let workers = thread::available_parallelism()?.get();
    println!(
        "{} files, {lines} lines, {workers} threads, {ROUNDS} rounds",
        files.len()
    );
    let (mut checking, mut parsing) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        parsing.push(seconds(|| parse(&files, workers)));
        checking.push(seconds(|| checked(folder.path(), files.len())));
    }
    let (parsing, checking) = (median(&mut parsing), median(&mut checking));
    report("read and parsed", parsing, lines);
    report("checked", checking, lines);
    println!("{:<16} {:8.2} times the parser", "", checking / parsing);
    Ok(())
}

fn checked(folder: &Path, files: usize) {
    let checked = check(&[folder.to_owned()], &Settings::default());
    assert_eq!(checked.files, files, "{:?}", checked.unreadable);
}

fn parse(files: &[PathBuf], workers: usize) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let text = fs::read_to_string(file).expect("it was written just now");
                    let parsed = parse_module(&text);
                    assert!(parsed.is_ok(), "{}: {parsed:?}", file.display());
                }
            });
        }
    });
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn report(name: &str, seconds: f64, lines: usize) {
    let rate = lines as f64 / seconds / 1e6;
    println!("{name:<16} {seconds:8.3} s   {rate:6.2} million lines a second");
}
