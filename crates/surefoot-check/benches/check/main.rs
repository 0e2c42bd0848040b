//! Throughput of the check: `cargo bench -p surefoot-check --bench check`.
//!
//! Checks a thousand generated files of five hundred lines as `surefoot check DIR` does, alternating with
//! reading and parsing alone on the same number of threads. The ratio is the cost of the analysis over
//! the parser.

mod scripts;

use ruff_python_parser::parse_module;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use surefoot_check::{CheckConfig, check};

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
    println!("{} files, {lines} lines, {workers} threads, {ROUNDS} rounds", files.len());
    let (mut checking, mut parsing) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        parsing.push(Time::of(|| parse(&files, workers)));
        checking.push(Time::of(|| checked(folder.path(), files.len())));
    }
    let parsing = report("read and parsed", &parsing, lines);
    let checking = report("checked", &checking, lines);
    println!("{:<16} {:6.1} times the parser", "", checking / parsing);
    Ok(())
}

fn checked(folder: &Path, files: usize) {
    let checked = check(&[folder.to_owned()], &CheckConfig::default());
    assert_eq!(checked.files, files, "{:?}", checked.unreadable);
    // The generated files contain problems.
    assert!(checked.findings.len() > files / 10);
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

/// Time of a measurement.
struct Time {
    seconds: f64,
    /// Processor time of all threads, which a busy machine does not change. Linux only.
    processor: Option<f64>,
}

impl Time {
    fn of(work: impl FnOnce()) -> Time {
        let (start, before) = (Instant::now(), processor_seconds());
        work();
        Time {
            seconds: start.elapsed().as_secs_f64(),
            processor: processor_seconds().zip(before).map(|(now, then)| now - then),
        }
    }
}

/// The time this process has had of the processor, with that of threads that have ended.
fn processor_seconds() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the process may have spaces in it, but no parenthesis after the last. Of what
    // follows, the 12th and 13th fields are ticks in the process and in the kernel, 100 a second.
    let fields = status.rsplit(')').next()?.split_whitespace();
    let ticks = fields.skip(11).take(2).map(|field| field.parse::<f64>().ok());
    Some(ticks.sum::<Option<f64>>()? / 100.0)
}

fn median(times: impl Iterator<Item = f64>) -> f64 {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints medians, and gives what to compare by: the time of the processor if it is known.
fn report(name: &str, times: &[Time], lines: usize) -> f64 {
    let seconds = median(times.iter().map(|time| time.seconds));
    let processor = median(times.iter().filter_map(|time| time.processor));
    let rate = lines as f64 / seconds;
    println!(
        "{name:<16} {seconds:6.2} s, {processor:6.2} s of the processor, {rate:9.0} lines a second"
    );
    match processor.is_nan() {
        true => seconds,
        false => processor,
    }
}
