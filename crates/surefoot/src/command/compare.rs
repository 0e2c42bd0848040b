//! `surefoot compare`: where two runs part.

use super::train::{environment, recorded};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::compare::{Comparison, Observed, Parting};
use crate::output::replay::Disagreement;
use clap::Args;
use std::path::{Path, PathBuf};
use surefoot_diagnose::{Observation, Summary};
use surefoot_plan::Plan;
use surefoot_record::{DigestLog, Part, Record};

const EXAMPLES: &str = "\
Examples:
  surefoot compare runs/circles-001 runs/circles-002
      Says whether the runs are equal, or the first step where they part, and there the first
      layer and quantity that differs.

  surefoot compare runs/circles-001 runs/circles-002 --json
      The same as one line of JSON.

Nothing is trained: both are read from the records, so neither needs its data. If the plans or the
environments differ, that is told first. Of runs of different length the steps that both have are
compared.

Exit codes: 0 equal, 1 they part, 2 the input is wrong, 3 something broke.";

/// Find the first step and layer where two runs part
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A run directory
    one: PathBuf,

    /// Another
    other: PathBuf,

    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// One of the two.
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
            let message = format!("{} has no step that could be compared", dir.display());
            return Err(Failure::input(message));
        }
        Ok(Self {
            name: dir.display().to_string(),
            plan: recorded::document(&run)?.plan()?,
            run,
            log,
        })
    }

    fn parts(&self) -> &[Part] {
        &self.run.header().digest_parts
    }

    /// What was observed of a step, if it was.
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
    let parting = first_difference(&one, &other)?;
    let environments = [&one, &other].map(|side| &side.run.header().environment);
    let mut surroundings = environment::parting(environments[0], environments[1]);
    let data = environments.map(|environment| match environment.data {
        Some(data) => data.to_string(),
        None => "unknown".to_owned(),
    });
    if data[0] != data[1] {
        let [a, b] = data;
        surroundings.push(("the digest of the data".to_owned(), a, b));
    }
    let last = |side: &Side| side.log.last_step().unwrap_or(0);
    let delivered = match (one.run.summary()?, other.run.summary()?) {
        (Some(one), Some(other)) => Some(one.digest == other.digest),
        _ => None,
    };
    let comparison = Comparison {
        plan_diff: surefoot_repair::diff(&one.plan, &other.plan),
        surroundings,
        last: [last(&one), last(&other)],
        delivered,
        runs: [one.name, other.name],
        parting,
    };
    console.say(&comparison.text());
    console.event(&comparison.event());
    Ok(match comparison.is_equal() {
        true => Exit::Done,
        false => Exit::No,
    })
}

/// Where the digests of two runs first differ.
fn first_difference(one: &Side, other: &Side) -> Result<Option<Parting>, Failure> {
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
    // Plans with other layers have other parts: those that both have are compared.
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
    Ok(Some(Parting {
        disagreement: Disagreement::new(step, &names, &mine, &theirs),
        alone,
        observed,
    }))
}

/// The first number that was observed to differ, in the order of a step: forward through the layers,
/// back through them, then what was learned. Layers are the same if their names are.
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
