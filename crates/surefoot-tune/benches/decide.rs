//! Processor time of a decision of a scheduler: `cargo bench -p surefoot-tune --bench decide` (Linux).
//!
//! Trials of 50 epochs with eight parameters, two of them choices, run by four workers until a thousand have started.

use std::time::Duration;
use surefoot_random::{Key, Purpose};
use surefoot_tune::scheduler::{
    Decision, ScheduleHistory, ScheduledReport, ScheduledTrial, SchedulerConfig, Search,
};
use surefoot_tune::{Domain, Parameter, Point, Space, Value};

const PLANNED: u64 = 50;
const TRIALS: usize = 1000;
const WORKERS: usize = 4;

fn main() {
    let numbers = (0..6).map(|i| (format!("x{i}"), Domain::Uniform(0.0, 1.0)));
    let words = ["a", "b", "c"].map(|word| Value::Text(word.to_owned()));
    let choices = (0..2).map(|i| (format!("c{i}"), Domain::Choice(words.to_vec())));
    let parameters = numbers.chain(choices);
    let parameters =
        parameters.map(|(name, domain)| Parameter { name, domain, conditions: Vec::new() });
    let space = Space::new(parameters.collect()).expect("a space");
    println!(
        "{:12} {:>9} {:>9} {:>9} {:>9} {:>13} {:>11}",
        "scheduler", "decisions", "median", "p99", "longest", "p99 from 900", "new process"
    );
    for config in SchedulerConfig::all() {
        let measured = Measured::of(&config, &space);
        let all = measured.times.iter().map(|&(_, time)| time);
        let late = measured.times.iter().filter(|(trials, _)| *trials >= 900);
        println!(
            "{:12} {:>9} {:>6.2} ms {:>6.2} ms {:>6.2} ms {:>10.2} ms {:>8.1} ms",
            config.name(),
            measured.times.len(),
            quantile(all.clone(), 0.5),
            quantile(all.clone(), 0.99),
            quantile(all, 1.0),
            quantile(late.map(|&(_, time)| time), 0.99),
            ms(measured.new_process),
        );
    }
}

/// Quantile in milliseconds.
fn quantile(times: impl Iterator<Item = Duration>, share: f64) -> f64 {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    ms(times[((times.len() - 1) as f64 * share) as usize])
}

/// Processor time of this thread, which does not depend on what else the machine does. Linux updates it when a
/// thread yields, and otherwise every few milliseconds.
fn processor_time() -> Duration {
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split_whitespace().next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn ms(time: Duration) -> f64 {
    1e3 * time.as_secs_f64()
}

/// Times of the decisions of a search.
struct Measured {
    /// Number of trials and time of each decision, until the last trial has started.
    times: Vec<(usize, Duration)>,
    /// Time of the first decision of a process that joins then.
    new_process: Duration,
}

impl Measured {
    fn of(config: &SchedulerConfig, space: &Space) -> Measured {
        let search = Search { space, seed: 1, candidates: None, is_suggested: false };
        let mut schedule = config.schedule(&search);
        let mut history = ScheduleHistory::default();
        let mut running: Vec<u64> = Vec::new();
        let mut times = Vec::new();
        for epoch in 0.. {
            while running.len() < WORKERS {
                let begun = processor_time();
                let decision = schedule.decide(&history);
                times.push((history.trials().len(), processor_time() - begun));
                match decision {
                    Decision::Wait => break,
                    Decision::Continue { trial, until } => {
                        history.extend(trial, until);
                        running.push(trial);
                    }
                    Decision::Start { point, until } => {
                        running.push(start(&mut history, space, point, until));
                    }
                }
            }
            if history.trials().len() >= TRIALS {
                break;
            }
            let index = epoch % running.len();
            if run(&mut history, running[index]) {
                running.remove(index);
            }
        }
        let begun = processor_time();
        config.schedule(&search).decide(&history);
        Measured { times, new_process: processor_time() - begun }
    }
}

/// Starts a trial and returns its number.
fn start(history: &mut ScheduleHistory, space: &Space, point: Option<Point>, until: u64) -> u64 {
    let number = history.trials().len() as u64;
    let key = Key::new(9, Purpose::Generate).epoch(number);
    let point = point.or_else(|| Some(space.at(|i| key.uniform(i as u64))));
    let planned = Some(PLANNED);
    history.start(ScheduledTrial { point, planned, until, steps: 0, is_over: false });
    number
}

/// Runs an epoch of a trial. Returns true if its worker is free.
fn run(history: &mut ScheduleHistory, number: u64) -> bool {
    let step = history.trials()[number as usize].steps + 1;
    let key = Key::new(9, Purpose::Generate).epoch(number);
    let cost = key.uniform(100) + 1.0 / step as f64 + 0.02 * key.sample(step).uniform(0);
    history.report(ScheduledReport { trial: number, step, cost, effort: 1.0 });
    history.update(number, |trial| trial.is_over = step == PLANNED);
    !history.trials()[number as usize].is_pending()
}
