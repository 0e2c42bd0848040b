//! Cost of repeatable training: `cargo bench -p surefoot-train --bench determinism [CASE] [ROUNDS]`.
//!
//! On the models of `eval/bench/speed`, one worker, nothing watched, taking turns in one process:
//!
//! - *digest*: the time of one digest of the whole state by that of a step;
//! - *order*: training with sums along a fixed tree over shards, and digests, by training that is free to
//!   choose its order: the whole batch at once, no digests;
//! - *replay*: repeating the steps by training them, watched as a run is by default.
//!
//! Ratios are of the fastest rounds; the medians are beside them. Where the system tells it (Linux), times are those that this
//! thread was on a processor, so that what else runs there counts for little.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};
use surefoot_data::{Dataset, Part, Targets};
use surefoot_plan::{Document, ObserveEvery, Plan, Task};
use surefoot_record::StepDigest;
use surefoot_train::{Callback, Cpu, RunContext, Step, StopReason, TrainError, TrainingRun};

/// The plans, and how many epochs a round has.
const CASES: [(&str, &str, u64); 4] = [
    ("mlp", include_str!("../../../eval/bench/plans/mlp.toml"), 400),
    ("lenet", include_str!("../../../eval/bench/plans/lenet.toml"), 3),
    ("cnn", include_str!("../../../eval/bench/plans/cnn.toml"), 1),
    ("lstm", include_str!("../../../eval/bench/plans/lstm.toml"), 10),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rounds = words.iter().find_map(|word| word.parse().ok());
    let rounds: usize = rounds.unwrap_or(9);
    println!("case    step         digest               order               replay");
    for (name, text, epochs) in CASES {
        let chosen = words.iter().any(|word| word == name);
        let any = words.iter().any(|word| CASES.iter().any(|case| case.0 == word));
        if chosen || !any {
            measure(name, text, epochs, rounds);
        }
    }
}

fn measure(name: &str, text: &str, epochs: u64, rounds: usize) {
    let Ok(mut plan) = Document::parse(text, name).and_then(|document| document.plan()) else {
        panic!("{name} is no plan");
    };
    plan.training.epochs = epochs;
    plan.training.checkpoint_every = Some(u64::MAX);
    let data = match name {
        // Its files are made by `eval/bench/speed`; what is in them does not matter here.
        "lstm" => sequences(),
        _ => match surefoot_data::load(&plan.data, plan.seed, Path::new("eval/bench/plans")) {
            Ok(data) => data,
            Err(error) => panic!("{error}"),
        },
    };
    let watched = plan.clone();
    plan.watch.every = ObserveEvery::Never;
    let mut free = plan.clone();
    free.training.shards = Some(1);

    let mut times: [Vec<f64>; 4] = Default::default();
    let mut digest = Vec::new();
    for _ in 0..rounds {
        times[0].push(train(&plan, &data, true));
        times[1].push(train(&free, &data, false));
        times[2].push(train(&watched, &data, true));
        let (time, of_digest) = replay(&plan, &data);
        times[3].push(time);
        digest.push(of_digest);
    }
    let [sealed, free, watched, replayed] = times.map(Times::of);
    let digest = Times::of(digest);
    println!(
        "{name:<6} {:>7.1} µs   {:>6.2} µs = {:>5.2}%   {:>+6.1}% ({:>+5.1}%)   {:>+6.1}% ({:>+5.1}%)",
        sealed.least * 1e6,
        digest.least * 1e6,
        100.0 * digest.least / sealed.least,
        100.0 * (sealed.least / free.least - 1.0),
        100.0 * (sealed.median / free.median - 1.0),
        100.0 * (replayed.least / watched.least - 1.0),
        100.0 * (replayed.median / watched.median - 1.0),
    );
}

/// The time so far: the CPU time of this thread if the system reports it, else that of the clock.
fn now(begun: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let told = told.and_then(|text| text.split_whitespace().next()?.parse().ok());
    told.map_or_else(|| begun.elapsed(), Duration::from_nanos)
}

/// Duration of a call.
fn timed(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    let before = now(begun);
    work();
    (now(begun) - before).as_secs_f64()
}

/// Times of several rounds.
struct Times {
    least: f64,
    median: f64,
}

impl Times {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self { least: times[0], median: times[times.len() / 2] }
    }
}

/// The time of a step.
fn train(plan: &Plan, data: &Dataset, digests: bool) -> f64 {
    let mut run = start(plan, data);
    // Up to the last step but one: after the last there is an evaluation.
    let until = run.steps() - 1;
    let mut pause = PauseAt { until, digests };
    let time = timed(|| {
        if let Err(error) = run.train(&mut [&mut pause]) {
            panic!("{error}");
        }
    });
    time / until as f64
}

/// The time of a step that is repeated, and of a digest.
fn replay(plan: &Plan, data: &Dataset) -> (f64, f64) {
    let mut run = start(plan, data);
    let until = run.steps() - 1;
    let time = timed(|| {
        run.replay(until, |_, digest| {
            black_box(digest);
            true
        });
    });
    // Too short for the resolution of the CPU time.
    let times = 200;
    let begun = Instant::now();
    for _ in 0..times {
        black_box(run.standing_digest());
    }
    let digest = begun.elapsed().as_secs_f64() / f64::from(times);
    (time / until as f64, digest)
}

fn start<'a>(plan: &'a Plan, data: &'a Dataset) -> TrainingRun<'a, Cpu> {
    match TrainingRun::new(plan, data, &[], 1, Default::default()) {
        Ok(run) => run,
        Err(error) => panic!("{error}"),
    }
}

/// 640 sequences of 50 steps of 16 features in 10 classes.
fn sequences() -> Dataset {
    let samples = 640;
    let features = (0..samples * 50 * 16).map(|i| ((i * 7919 % 2003) as f32 / 1001.0) - 1.0);
    let part = |len: usize, features: Vec<f32>| Part {
        features,
        targets: Targets::Classes((0..len as u32).map(|i| i % 10).collect()),
        len,
        ids: (0..len as u64).collect(),
    };
    Dataset {
        train: part(samples, features.collect()),
        validation: part(0, Vec::new()),
        test: part(0, Vec::new()),
        input_shape: vec![50, 16],
        integer_input: false,
        symbols: 0,
        task: Task::MultiClass,
        classes: 10,
        class_names: (0..10).map(|class| class.to_string()).collect(),
        feature_names: Vec::new(),
        target_width: 1,
        positions: 1,
        preprocessing: surefoot_data::Preprocessing::default(),
        digest: 0,
        notes: Vec::new(),
    }
}

/// Pauses after step `until`; requests digests if `digests`.
struct PauseAt {
    until: u64,
    digests: bool,
}

impl Callback for PauseAt {
    fn needs_state(&self) -> bool {
        self.digests
    }

    fn on_step(&mut self, step: &Step<'_>, run: &mut RunContext) -> Result<(), TrainError> {
        black_box(step.observation);
        if step.progress.step == self.until {
            run.stop(StopReason::Paused);
        }
        Ok(())
    }

    fn on_digest(&mut self, digest: &StepDigest, _: &mut RunContext) -> Result<(), TrainError> {
        black_box(digest);
        Ok(())
    }
}
