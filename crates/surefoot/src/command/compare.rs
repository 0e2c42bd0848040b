//! `surefoot compare`: finds where two runs diverge.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::compare::{Comparison, Divergence, Observed};
use crate::output::replay::Disagreement;
use clap::Args;
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
struct Side {
    name: String,
    run: Record,
    log: DigestLog,
    plan: Plan,
}

impl Side {
    fn open(dir: &Path) -> Result<Self, Failure> {
        let dir: PathBuf = dir.components().collect();
        let run = Record::open(&dir)?;
        run.check_plan()?;
        let log = run.digests()?;
        if log.is_empty() {
            let message = format!("{} has no recorded steps", dir.display());
            return Err(Failure::input(message));
        }
        Ok(Self {
            name: dir.display().to_string(),
            plan: recorded_document(&run)?.plan()?,
            run,
            log,
        })
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
    let mut environment = environment_differences(environments[0], environments[1]);
    let data = environments.map(|environment| match environment.data {
        Some(data) => data.to_string(),
        None => "unknown".to_owned(),
    });
    if data[0] != data[1] {
        let [a, b] = data;
        environment.push(("the digest of the data".to_owned(), a, b));
    }
    let last = |side: &Side| side.log.last_step().unwrap_or(0);
    let delivered = match (one.run.summary()?, other.run.summary()?) {
        (Some(one), Some(other)) => Some(one.digest == other.digest),
        _ => None,
    };
    let comparison = Comparison {
        plan_diff: one.plan.diff(&other.plan),
        environment,
        last: [last(&one), last(&other)],
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
fn first_difference(one: &Side, other: &Side) -> Result<Option<Divergence>, Failure> {
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
