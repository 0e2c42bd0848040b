//! `surefoot compare`: finds where two runs diverge.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::compare::{Comparison, Divergence, Observed};
use crate::output::replay::Disagreement;
use clap::Args;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use surefoot_diagnose::{Observation, Summary};
use surefoot_plan::Plan;
use surefoot_record::{DigestLog, Part, Record};
use surefoot_train::{environment_differences, recorded_document};

const EXAMPLES: &str = "\
Examples:
  surefoot compare runs/circles-001 runs/circles-002
      Shows the first step where the runs diverge, and its first layer and quantity that differs.

  surefoot compare runs/circles-001 runs/circles-002 --json
      The same as one line of JSON.

Reads both records; neither run needs its data. Differences between the plans or the environments are
shown first. Runs of different length are compared up to the end of the shorter one.

Exit codes: 0 equal, 1 diverged, 2 wrong input, 3 internal or system error.";

/// Find the first step and layer where two runs diverge
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A run directory
    one: PathBuf,

    /// Another run directory
    other: PathBuf,

    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// One of the two runs.
pub(super) struct Side {
    name: String,
    run: Record,
    log: DigestLog,
    source: Source,
}

/// Definition of a run.
enum Source {
    Plan(Box<Plan>),
    /// `program.json`.
    Program(serde_json::Map<String, serde_json::Value>),
}

impl Source {
    fn of(run: &Record) -> Result<Self, Failure> {
        match run.program() {
            None => Ok(Self::Plan(Box::new(recorded_document(run)?.plan()?))),
            Some(text) => serde_json::from_str(text).map(Self::Program).map_err(|error| {
                Failure::input(format!("{}/program.json: {error}", run.dir().display()))
            }),
        }
    }

    /// Name of the definitions of several runs.
    fn name(&self) -> &'static str {
        match self {
            Self::Plan(_) => "plans",
            Self::Program(_) => "programs",
        }
    }

    /// Lines in which two definitions differ.
    fn diff(&self, other: &Self) -> Result<String, Failure> {
        match (self, other) {
            (Self::Plan(one), Self::Plan(other)) => Ok(one.diff(other)),
            (Self::Program(one), Self::Program(other)) => Ok(program_diff(one, other)),
            _ => Err(Failure::input("a run of a plan cannot be compared with one of a script")),
        }
    }
}

fn program_diff(
    one: &serde_json::Map<String, serde_json::Value>,
    other: &serde_json::Map<String, serde_json::Value>,
) -> String {
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differ = keys.into_iter().filter(|key| one.get(*key) != other.get(*key));
    let lines = differ.flat_map(|key| {
        [('-', one), ('+', other)].into_iter().filter_map(move |(sign, side)| {
            side.get(key).map(|value| format!("{sign}{key}: {value}\n"))
        })
    });
    lines.collect()
}

impl Side {
    pub(super) fn open(dir: &Path) -> Result<Self, Failure> {
        let dir: PathBuf = dir.components().collect();
        let run = Record::open(&dir)?;
        run.check_plan()?;
        let log = run.digests()?;
        if log.is_empty() {
            let message = format!("{} has no recorded steps", dir.display());
            return Err(Failure::input(message));
        }
        Ok(Self { name: dir.display().to_string(), source: Source::of(&run)?, run, log })
    }

    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// The last recorded step.
    pub(super) fn last(&self) -> u64 {
        self.log.last_step().unwrap_or(0)
    }

    /// Differences of the environments: a name and both values.
    pub(super) fn environment_differences(&self, other: &Self) -> Vec<(String, String, String)> {
        environment_differences(&self.run.header().environment, &other.run.header().environment)
    }

    fn parts(&self) -> &[Part] {
        &self.run.header().digest_parts
    }

    /// The observation of a step, if there is one.
    fn observation(&self, step: u64) -> Result<Option<Observation>, Failure> {
        for observation in self.run.observations()? {
            let observation = observation?;
            if observation.step >= step {
                return Ok(Some(observation).filter(|o| o.step == step));
            }
        }
        Ok(None)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let console = Console::new(arguments.json, false);
    let (one, other) = (Side::open(&arguments.one)?, Side::open(&arguments.other)?);
    let divergence = first_difference(&one, &other)?;
    let environments = [&one, &other].map(|side| &side.run.header().environment);
    let mut environment = one.environment_differences(&other);
    let data = environments.map(|environment| match environment.data {
        Some(data) => data.to_string(),
        None => "unknown".to_owned(),
    });
    if data[0] != data[1] {
        let [a, b] = data;
        environment.push(("the digest of the data".to_owned(), a, b));
    }
    let delivered = match (one.run.summary()?, other.run.summary()?) {
        (Some(one), Some(other)) => Some(one.digest == other.digest),
        _ => None,
    };
    let comparison = Comparison {
        sources: one.source.name(),
        plan_diff: one.source.diff(&other.source)?,
        environment,
        last: [one.last(), other.last()],
        delivered,
        runs: [one.name, other.name],
        divergence,
    };
    console.say(&comparison.text());
    console.event(&comparison.event());
    Ok(match comparison.is_equal() {
        true => Exit::Done,
        false => Exit::No,
    })
}

/// The first step whose digests differ.
pub(super) fn first_difference(one: &Side, other: &Side) -> Result<Option<Divergence>, Failure> {
    let mut common = 0;
    let mut steps = one.log.iter().filter_map(|(step, digest)| {
        let pair = (digest, other.log.digest_at(step)?);
        common += 1;
        Some((step, pair))
    });
    let found = steps.find(|(_, (one, other))| one != other);
    let Some((step, _)) = found else {
        return match common {
            0 => Err(Failure::input(format!(
                "{} and {} have no step in common",
                one.name, other.name
            ))),
            _ => Ok(None),
        };
    };
    let at = |side: &Side| side.log.at(step).map(|(_, parts)| parts).unwrap_or_default();
    let (mine, theirs) = (at(one), at(other));
    // Plans with different layers have different parts; common parts are compared.
    let both: Vec<(&Part, u64, u64)> = one
        .parts()
        .iter()
        .zip(&mine)
        .filter_map(|(part, mine)| {
            let place = other.parts().iter().position(|theirs| theirs == part)?;
            Some((part, *mine, *theirs.get(place)?))
        })
        .collect();
    let names: Vec<Part> = both.iter().map(|(part, ..)| (*part).clone()).collect();
    let mine: Vec<u64> = both.iter().map(|(_, mine, _)| *mine).collect();
    let theirs: Vec<u64> = both.iter().map(|(.., theirs)| *theirs).collect();
    let alone = [(one, other), (other, one)].map(|(side, without)| {
        let parts = side.parts().iter();
        let alone = parts.filter(|part| !without.parts().contains(part));
        alone.cloned().collect()
    });
    let observed = match step {
        0 => None,
        _ => match (one.observation(step)?, other.observation(step)?) {
            (Some(a), Some(b)) => first_observed((&a, one), (&b, other)),
            _ => None,
        },
    };
    Ok(Some(Divergence {
        disagreement: Disagreement::new(step, &names, &mine, &theirs),
        alone,
        observed,
    }))
}

/// The first observed statistic that differs, in the order of a step: outputs, gradients, weights.
/// Layers are matched by name.
fn first_observed(
    (a, one): (&Observation, &Side),
    (b, other): (&Observation, &Side),
) -> Option<Observed> {
    let differ = |what, layer: Option<&str>, a: Option<&Summary>, b: Option<&Summary>| {
        let (a, b) = (a?, b?);
        (a != b).then(|| Observed { what, layer: layer.map(str::to_owned), norms: [a.l2, b.l2] })
    };
    let names = |side: &'_ Side| -> Vec<String> {
        let layers = side.run.header().facts.layers.iter();
        layers.map(|layer| layer.name.clone()).collect()
    };
    let (mine, theirs) = (names(one), names(other));
    let layers = || {
        mine.iter().zip(&a.layers).filter_map(|(name, layer)| {
            let place = theirs.iter().position(|theirs| theirs == name)?;
            Some((name.as_str(), (layer, b.layers.get(place)?)))
        })
    };
    let outputs = layers().find_map(|(name, (a, b))| {
        differ("output", Some(name), a.output.as_ref(), b.output.as_ref())
    });
    let gradients = layers().rev().find_map(|(name, (a, b))| {
        differ("gradient", Some(name), a.gradient.as_ref(), b.gradient.as_ref())
    });
    let weights = layers().find_map(|(name, (a, b))| {
        differ("weight", Some(name), a.weight.as_ref(), b.weight.as_ref())
    });
    differ("input", None, a.input.as_ref(), b.input.as_ref()).or(outputs).or(gradients).or(weights)
}
