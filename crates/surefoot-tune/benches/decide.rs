//! Processor time of a decision of a scheduler: `cargo bench -p surefoot-tune --bench decide` (Linux).
//!
//! Trials of 50 epochs with eight parameters, two of them choices, run by four workers until a thousand have started.

use std::time::Duration;
use surefoot_random::{Key, Purpose};
use surefoot_tune::scheduler::{
    Decision, ScheduleHistory, ScheduledReport, ScheduledTrial, SchedulerConfig, Search,
};
use surefoot_tune::{Domain, Parameter, Space, Value};

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
    println!("{:12} {:>9} {:>9} {:>9} {:>9}", "scheduler", "decisions", "median", "p99", "longest");
    for config in SchedulerConfig::all() {
        let mut times = decisions(&config, &space);
        times.sort();
        let at = |share: f64| ms(times[((times.len() - 1) as f64 * share) as usize]);
        let (name, count) = (config.name(), times.len());
        println!(
            "{name:12} {count:>9} {:>6.2} ms {:>6.2} ms {:>6.2} ms",
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
}

/// Processor time of this thread, which does not depend on what else the machine does.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split_whitespace().next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn ms(time: Duration) -> f64 {
    1e3 * time.as_secs_f64()
}

/// Times of all decisions until the last trial has started.
fn decisions(config: &SchedulerConfig, space: &Space) -> Vec<Duration> {
    let search = Search { space, seed: 1, candidates: None, is_suggested: false };
    let mut schedule = config.schedule(&search);
    let mut history = ScheduleHistory::default();
    let mut running: Vec<u64> = Vec::new();
    let mut times = Vec::new();
    for epoch in 0.. {
        while running.len() < WORKERS {
            let begun = processor_time();
            let decision = schedule.decide(&history);
            times.push(processor_time() - begun);
            match decision {
                Decision::Wait => break,
                Decision::Continue { trial, until } => {
                    history.extend(trial, until);
                    running.push(trial);
                }
                Decision::Start { point, until } => {
                    let number = history.trials().len() as u64;
                    let key = Key::new(9, Purpose::Generate).epoch(number);
                    let point = point.unwrap_or_else(|| space.at(|i| key.uniform(i as u64)));
                    let planned = Some(PLANNED);
                    let point = Some(point);
                    history.start(ScheduledTrial {
                        point,
                        planned,
                        until,
                        steps: 0,
                        is_over: false,
                    });
                    running.push(number);
                }
            }
        }
        if history.trials().len() >= TRIALS {
            break;
        }
        let index = epoch % running.len();
        let number = running[index];
        let step = history.trials()[number as usize].steps + 1;
        let key = Key::new(9, Purpose::Generate).epoch(number);
        let cost = key.uniform(100) + 1.0 / step as f64 + 0.02 * key.sample(step).uniform(0);
        history.report(ScheduledReport { trial: number, step, cost, effort: 1.0 });
        history.update(number, |trial| trial.is_over = step == PLANNED);
        if !history.trials()[number as usize].is_pending() {
            running.remove(index);
        }
    }
    times
}
