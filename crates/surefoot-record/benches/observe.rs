//! Cost of recording per training step.
//!
//! A tiny network takes about 80 microseconds a step, of which observing and recording together may
//! take 10%. This benchmark times `observe` and `digest` in a loop that leaves the writing thread
//! as much time as such a training does, then a loop without pauses, which is bound by the writing
//! thread, and the end of the run. Run with `cargo bench -p surefoot-record`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::json;
use surefoot_diagnose::{LayerInfo, LayerObservation, Observation, Quartiles, Summary};
use surefoot_record::{
    Array, Checkpoint, Digest, Header, MetricSummary, Part, Quantity, Recorder, RunSummary, Status,
    StepDigest,
};

const LAYERS: usize = 3;
const STEP: Duration = Duration::from_micros(80);

fn observation(step: u64) -> Observation {
    let x = (step as f64 * 0.37).sin();
    let summary = Summary {
        count: 80,
        zeros: step % 7,
        mean: x,
        variance: x * x,
        skewness: x * 0.3,
        kurtosis: x - 1.0,
        min: -x.abs(),
        max: x.abs(),
        l1: x.abs() * 80.0,
        l2: x.abs() * 9.0,
        abs_mean: x.abs(),
        linf: x.abs(),
        quartiles: Some(Quartiles { q1: x - 0.1, median: x, q3: x + 0.1 }),
        ..Summary::default()
    };
    let layer = LayerObservation {
        gradient: Some(summary),
        weight: Some(summary),
        output: Some(summary),
        dead_units: Some(0.1),
        update_ratio: Some(1e-3),
        saturated: None,
    };
    let mut observation = Observation::new(step, x)
        .with_epoch(step / 32 + 1)
        .with_metric(0.5)
        .with_learning_rate(0.01)
        .with_layers(vec![layer; LAYERS])
        .with_input(summary);
    observation.top_class_share = Some(0.5);
    observation
}

fn begin(runs: &std::path::Path) -> Recorder {
    let layer = |i: usize| LayerInfo { name: format!("dense_{i}"), ..LayerInfo::default() };
    let header = Header {
        facts: surefoot_diagnose::Facts {
            layers: (0..LAYERS).map(layer).collect(),
            ..Default::default()
        },
        digest_parts: vec![Part::of(Quantity::Loss); LAYERS + 3],
        ..Header::default()
    };
    Recorder::create(runs, "bench", "", header).expect("a directory to write to")
}

fn finish(recorder: Recorder, steps: u64) {
    let run = recorder.dir().display().to_string();
    let summary = RunSummary {
        status: Status::Normal,
        problems: Vec::new(),
        remedies: Vec::new(),
        failed_detectors: Vec::new(),
        metric: MetricSummary { name: "accuracy".to_owned(), before: None, after: None },
        steps,
        seconds: 0.0,
        digest: Digest(0),
        run,
    };
    recorder.finish(&summary).expect("a disk with room");
}

fn median(times: &mut [Duration]) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// Processor time of all threads so far, where the system reports it.
fn processor_time() -> Option<Duration> {
    let mut total = 0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let stat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        total += stat.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(total))
}

fn main() {
    let runs = tempfile::tempdir().expect("a directory for temporary files");

    let steps = 20_000;
    let begun = Instant::now();
    let mut recorder = begin(runs.path());
    println!("create                      {:>10.1?}", begun.elapsed());
    let (mut observe, mut digest, mut total) = (Vec::new(), Vec::new(), Duration::ZERO);
    let parts = vec![Digest(0); LAYERS + 3];
    let mut sealed = StepDigest::default();
    for step in 1..=steps {
        let begun = Instant::now();
        while begun.elapsed() < STEP {
            std::hint::spin_loop();
        }
        let seen = black_box(observation(step));
        sealed.seal(step, &parts);
        let a = Instant::now();
        recorder.observe(&seen);
        let b = Instant::now();
        recorder.digest(&sealed);
        let c = Instant::now();
        observe.push(b - a);
        digest.push(c - b);
        total += c - a;
    }
    let mean = total / steps as u32;
    let share = 100.0 * mean.as_secs_f64() / STEP.as_secs_f64();
    let (middle, slow) = median(&mut observe);
    println!("observe                     {middle:>10.1?} median, {slow:.1?} at 99%");
    // The disk or another process caused a wait.
    let longest = &observe[observe.len() - 5..];
    println!("longest                     {longest:>10.1?}");
    println!("digest                      {:>10.1?} median", median(&mut digest).0);
    println!("both, mean                  {mean:>10.1?} = {share:.2}% of a step of {STEP:?}");

    let begun = Instant::now();
    recorder.sync().expect("a disk with room");
    println!("sync                        {:>10.1?}", begun.elapsed());
    let checkpoint = Checkpoint {
        step: steps,
        epoch: 1,
        state: json!({}),
        arrays: vec![Array::new("weights", &[1000], vec![0.5_f32; 1000])],
    };
    let begun = Instant::now();
    recorder.checkpoint(&checkpoint).expect("a disk with room");
    println!("checkpoint of 4 kB          {:>10.1?}", begun.elapsed());
    let begun = Instant::now();
    finish(recorder, steps);
    println!("finish after {steps} steps   {:>10.1?}", begun.elapsed());

    let mut recorder = begin(runs.path());
    for step in 1..=1600 {
        recorder.observe(&observation(step));
    }
    let begun = Instant::now();
    finish(recorder, 1600);
    println!("finish after 1600 steps     {:>10.1?}", begun.elapsed());

    let steps = 100_000;
    let mut recorder = begin(runs.path());
    let (begun, processor) = (Instant::now(), processor_time());
    for step in 1..=steps {
        recorder.observe(&observation(step));
    }
    recorder.sync().expect("a disk with room");
    let each = begun.elapsed() / steps as u32;
    println!("without pause, written      {each:>10.1?} a step of {LAYERS} layers");
    if let (Some(before), Some(after)) = (processor, processor_time()) {
        let each = (after - before) / steps as u32;
        println!("of both threads' processor  {each:>10.1?} a step");
    }
}
