//! How long samplers take to answer: `cargo bench -p surefoot-tune --bench ask`.
//!
//! A study of eight parameters, two of them conditional, with 100, 1,000 and 10,000 trials, every
//! tenth of which failed and ten of which run. Medians of several questions.

use std::time::Instant;
use surefoot_random::{Key, Purpose};
use surefoot_tune::sampler::{SampleRequest, SamplerConfig};
use surefoot_tune::{
    Condition, Domain, History, Parameter, Space, SpaceError, TrialOutcome, TrialResult, Value,
};

const QUESTIONS: u64 = 7;

fn main() -> Result<(), SpaceError> {
    let space = space()?;
    println!(
        "{:<8} {:>9} {:>9} {:>9}   ms per suggestion, by number of trials",
        "", 100, 1_000, 10_000
    );
    for sampler in SamplerConfig::all() {
        let mut line = format!("{:<8}", sampler.name());
        for trials in [100, 1_000, 10_000] {
            let history = history(&space, trials);
            let mut times: Vec<f64> = (0..QUESTIONS)
                .map(|seed| {
                    let started = Instant::now();
                    std::hint::black_box(sampler.suggest(&SampleRequest {
                        space: &space,
                        seed,
                        number: trials,
                        history: &history,
                    }));
                    started.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            times.sort_by(f64::total_cmp);
            line += &format!(" {:9.3}", times[times.len() / 2]);
        }
        println!("{line}");
    }
    Ok(())
}

fn space() -> Result<Space, SpaceError> {
    let words = |words: &[&str]| words.iter().map(|&word| Value::Text(word.to_owned())).collect();
    let parameter =
        |name: &str, domain| Parameter { name: name.to_owned(), domain, conditions: Vec::new() };
    let only_for = |word: &str, mut parameter: Parameter| {
        parameter
            .conditions
            .push(Condition { parameter: "optimizer".to_owned(), values: words(&[word]) });
        parameter
    };
    Space::new(vec![
        parameter("optimizer", Domain::Choice(words(&["sgd", "adam"]))),
        only_for("sgd", parameter("momentum", Domain::Uniform(0.0, 0.99))),
        only_for("adam", parameter("beta2", Domain::Uniform(0.8, 0.9999))),
        parameter("rate", Domain::LogUniform(1e-5, 1.0)),
        parameter("decay", Domain::LogUniform(1e-8, 0.1)),
        parameter("layers", Domain::Int(1, 8)),
        parameter("width", Domain::LogInt(8, 512)),
        parameter("activation", Domain::Choice(words(&["relu", "gelu", "tanh"]))),
    ])
}

fn history(space: &Space, trials: u64) -> History {
    let result = |number: u64| {
        let key = Key::new(1, Purpose::Generate).epoch(number);
        let outcome = match number {
            _ if number + 10 >= trials => TrialOutcome::Running,
            _ if number.is_multiple_of(10) => TrialOutcome::Failed,
            _ => TrialOutcome::Cost(key.site(1).normal(0)),
        };
        TrialResult { number, point: space.at(|index| key.uniform(index as u64)), outcome }
    };
    History::new((0..trials).map(result).collect())
}
