//! Time for the statistics of ten million `f32`, compared with a plain read of the memory and with
//! the NumPy and SciPy calls of a Python user. Everything runs on one thread.
//!
//! Python is that of `SUREFOOT_BENCH_PYTHON`, which must have NumPy and SciPy, or a virtual
//! environment that is created under the target directory on first use.

use std::collections::HashMap;
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use surefoot_stats::{Summary, moments, quartiles, summarize};

const LEN: usize = 10_000_000;
const REPETITIONS: u32 = 100;
const PYTHON_REPETITIONS: u32 = 5;
const CALLS: u32 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let values = normals(LEN);
    println!("{LEN} f32, one thread, best of {REPETITIONS}\n");
    println!("{:<36}{:>10}{:>10}{:>16}", "standard normals", "ms", "GB/s", "x plain read");
    let read = best(REPETITIONS, || plain_read(&values));
    row("plain read", read, read);
    let ours_moments = best(REPETITIONS, || moments(&values).finish());
    row("moments and norms", ours_moments, read);
    row("quartiles", best(REPETITIONS, || quartiles(&values)), read);
    let ours = best(REPETITIONS, || summarize(&values));
    row("summarize", ours, read);
    let numpy = numpy(&values)?;
    row(&numpy.versions, numpy.time, read);

    println!("\nother values");
    let shifted: Vec<f32> = values.iter().map(|x| x + 100.0).collect();
    row("moments and norms, mean 100", best(REPETITIONS, || moments(&shifted)), read);
    let relu: Vec<f32> = values.iter().map(|x| x.max(0.0)).collect();
    row("summarize, half of them zeros", best(REPETITIONS, || summarize(&relu)), read);

    println!("\n{:<36}{:>10}{:>10}", "few values, ns", "moments", "summarize");
    for len in [8, 64, 1024] {
        let few = &values[..len];
        let nanoseconds = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(CALLS);
        let moments = nanoseconds(best(REPETITIONS, || calls(|| moments(black_box(few)))));
        let summarize = nanoseconds(best(REPETITIONS, || calls(|| summarize(black_box(few)))));
        println!("{len:<36}{moments:>10.1}{summarize:>10.1}");
    }

    println!("\nNumPy + SciPy / summarize: {:.1} (at least 30 wanted)", ratio(numpy.time, ours));
    println!("moments / plain read: {:.2} (at most 2 wanted)", ratio(ours_moments, read));
    numpy.must_agree_with(&summarize(&values))
}

/// Calls often enough for the clock.
fn calls<R>(mut call: impl FnMut() -> R) {
    for _ in 0..CALLS {
        black_box(call());
    }
}

fn row(name: &str, time: Duration, read: Duration) {
    let bytes = (LEN * size_of::<f32>()) as f64;
    let (ms, rate) = (time.as_secs_f64() * 1e3, bytes / time.as_secs_f64() / 1e9);
    println!("{name:<36}{ms:>10.2}{rate:>10.2}{:>16.2}", ratio(time, read));
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

/// Returns the shortest of some runs, which is the least disturbed.
fn best<R>(repetitions: u32, mut run: impl FnMut() -> R) -> Duration {
    let time = |_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    };
    (0..repetitions).map(time).min().unwrap_or_default()
}

/// Reads all values and does as little with them as possible: 128 sums side by side, so that the
/// additions do not wait for each other.
fn plain_read(values: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        #[target_feature(enable = "avx512f")]
        fn wide(values: &[f32]) -> f32 {
            plain_read_lanes(values)
        }
        // SAFETY: AVX-512F was detected.
        return unsafe { wide(values) };
    }
    plain_read_lanes(values)
}

#[inline(always)]
fn plain_read_lanes(values: &[f32]) -> f32 {
    let (chunks, rest) = values.as_chunks::<128>();
    let mut sums = [0.0; 128];
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += value;
        }
    }
    sums.iter().chain(rest).sum()
}

/// Standard normals by Box and Muller from a linear congruential generator.
fn normals(len: usize) -> Vec<f32> {
    let mut state = 0x5eed_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 40) as f32 + 0.5) / (1 << 24) as f32
    };
    let mut values = Vec::with_capacity(len + 1);
    while values.len() < len {
        let radius = (-2.0 * uniform().ln()).sqrt();
        let (sin, cos) = (std::f32::consts::TAU * uniform()).sin_cos();
        values.extend([radius * cos, radius * sin]);
    }
    values.truncate(len);
    values
}

/// Measurements and results of the Python script.
struct Numpy {
    versions: String,
    time: Duration,
    statistics: HashMap<String, f64>,
}

impl Numpy {
    /// Fails if NumPy's results differ by more than its `f32` sums explain.
    fn must_agree_with(&self, summary: &Summary) -> Result<(), Box<dyn Error>> {
        let quartiles = summary.quartiles.unwrap_or_default();
        let ours = [
            ("mean", summary.mean),
            ("variance", summary.variance),
            ("median", quartiles.median),
            ("q1", quartiles.q1),
            ("q3", quartiles.q3),
            ("min", summary.min),
            ("max", summary.max),
            ("skewness", summary.skewness),
            ("kurtosis", summary.kurtosis),
            ("zero_ratio", summary.zero_ratio()),
        ];
        for (name, ours) in ours {
            let theirs = self.statistics.get(name).copied().unwrap_or(f64::NAN);
            let agree = (ours - theirs).abs() <= 1e-4 * ours.abs().max(1.0);
            if !agree {
                return Err(format!("{name} is {ours}, but NumPy says {theirs}").into());
            }
        }
        Ok(())
    }
}

fn numpy(values: &[f32]) -> Result<Numpy, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let python = match env::var_os("SUREFOOT_BENCH_PYTHON") {
        Some(python) => python.into(),
        None => virtual_environment(&temporary.with_file_name("bench-venv"))?,
    };
    let data = temporary.join("normals.f32");
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    fs::write(&data, bytes)?;
    let mut command = Command::new(python);
    command
        .arg(root.join("eval/bench/stats_numpy.py"))
        .arg(&data)
        .arg(PYTHON_REPETITIONS.to_string());
    for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
        command.env(variable, "1");
    }
    let output = command.output()?;
    fs::remove_file(&data)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let versions = text.lines().next().unwrap_or_default().to_owned();
    let mut statistics = HashMap::new();
    for line in text.lines() {
        if let Some((name, value)) = line.split_once('=') {
            statistics.insert(name.to_owned(), value.parse()?);
        }
    }
    let seconds = statistics.remove("seconds").ok_or("the script gave no time")?;
    Ok(Numpy { versions, time: Duration::try_from_secs_f64(seconds)?, statistics })
}

/// Python interpreter of a virtual environment with NumPy and SciPy, created on first use.
fn virtual_environment(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let python = folder.join("bin/python");
    let ready = folder.join("ready");
    if !ready.exists() {
        eprintln!("making a virtual environment in {}", folder.display());
        succeed(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        succeed(Command::new(&python).args(["-m", "pip", "install", "-q", "numpy", "scipy"]))?;
        fs::write(ready, "")?;
    }
    Ok(python)
}

fn succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
