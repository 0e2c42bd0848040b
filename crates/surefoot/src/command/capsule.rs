//! `surefoot capsule`: packs one step of a run into a file.

use super::replay::original::Original;
use super::replay::range;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::number::{counted, grouped};
use crate::output::screen::Screen;
use crate::output::{Console, Role, to_stderr};
use clap::Args;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use surefoot_diagnose::LayerObservation;
use surefoot_record::{Capsule, CapsuleFacts, Checkpoint, DigestLog, Quantity, Record};
use surefoot_train::{Compute, Device, PreparedPlan, current_environment, on_device};

const EXAMPLES: &str = "\
Examples:
  surefoot capsule runs/circles-001 --step 17
      Packs step 17 into circles-001-step-17.capsule: the plan, the state before the step, its
      samples and the expected digest.

  surefoot capsule runs/exploding-001
      Packs the first step with a NaN or infinite value.

  surefoot replay circles-001-step-17.capsule
      Repeats the step on any machine, without the run and its data.

A capsule contains training data; share it with care.

Exit codes: 0 done, 1 the run could not be repeated up to that step, 2 wrong input, 3 internal or
system error, 130 interrupted.";

/// Pack one step of a run into a file that can be repeated anywhere
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The run directory
    run: PathBuf,

    /// The step [default: the first with a NaN or infinite value]
    #[arg(long, value_name = "STEP")]
    step: Option<u64>,

    /// The file to write [default: NAME-step-STEP.capsule]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The folder that the plan's files are relative to, if they have moved
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,

    /// Threads that share a step [default: all cores]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Device to compute on: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,

    /// Print one JSON object with the file's name on stdout
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let console = Console::new(arguments.json, false);
    // Removes a trailing slash.
    let dir: PathBuf = arguments.run.components().collect();
    let record = Record::open(&dir)?;
    let log = record.digests()?;
    let step = match arguments.step {
        Some(step) => step,
        None => first_non_finite(&record, &log)?,
    };
    let last = log.last_step().unwrap_or(0);
    if step == 0 || step > last {
        return Err(Failure::input(format!(
            "step {} is not in the record: {} has steps 1 to {}",
            grouped(step),
            dir.display(),
            grouped(last)
        )));
    }
    let file = arguments.output.clone();
    let file = file.unwrap_or_else(|| default_name(&dir, step));
    if let Some(folder) = file.parent().filter(|it| !it.as_os_str().is_empty())
        && !folder.is_dir()
    {
        let message = format!("the folder {} does not exist", folder.display());
        return Err(Failure::input(message));
    }
    let prepared = PreparedPlan::from_record(&record, arguments.base.as_deref());
    let prepared = prepared.map_err(|error| match &arguments.base {
        Some(_) => Failure::from(error),
        None => Failure::from(error)
            .help("if the plan's files have moved, give their folder: --base DIR"),
    })?;
    let packing = Packing {
        console: &console,
        original: Original { record: &record, log: &log },
        prepared: &prepared,
        device: arguments.device,
        begin: range::nearest(&record, step - 1, &console)?,
        step,
        workers: super::workers(arguments.workers),
    };
    let packed = on_device!(arguments.device, |B, device| packing.pack::<B>(device))?;
    let capsule = match packed {
        Packed::Capsule(capsule) => capsule,
        Packed::Not(exit) => return Ok(exit),
    };
    capsule.write(&file)?;
    let bytes = std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
    let file = file.display().to_string();
    console.say(&format!(
        "  capsule   {}   step {}, {}",
        Role::Strong.paint(&file),
        grouped(step),
        counted(bytes, "byte")
    ));
    let command = Role::Literal.paint(format!("surefoot replay {file}"));
    console.mention(&format!("  repeat it with   {command}"));
    console.event(&serde_json::json!({
        "event": "capsule",
        "file": file,
        "run": dir.display().to_string(),
        "step": step,
        "epoch": capsule.facts.epoch,
        "bytes": bytes,
        "digest": capsule.facts.digest,
    }));
    Ok(Exit::Done)
}

/// The first step with a non-finite loss or layer statistic.
fn first_non_finite(record: &Record, log: &DigestLog) -> Result<u64, Failure> {
    let parts = &record.header().digest_parts;
    let place = parts.iter().position(|part| part.quantity == Quantity::Loss);
    let mut losses = log.part(place.unwrap_or(usize::MAX));
    let lost = losses.find(|(_, bits)| !f64::from_bits(*bits).is_finite());
    let lost = lost.map(|(step, _)| step);
    for observation in record.observations()? {
        let observation = observation?;
        if lost.is_some_and(|lost| lost <= observation.step) {
            break;
        }
        if observation.layers.iter().any(is_broken) {
            return Ok(observation.step);
        }
    }
    lost.ok_or_else(|| {
        let name = record.dir().display();
        Failure::input(format!("all losses of {name} are finite"))
            .help("choose a step: --step STEP")
    })
}

fn is_broken(layer: &LayerObservation) -> bool {
    let seen = [&layer.output, &layer.gradient, &layer.weight];
    seen.into_iter().flatten().any(|it| it.nan + it.inf > 0)
}

fn default_name(run: &Path, step: u64) -> PathBuf {
    let name = run.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}-step-{step}.capsule").into()
}

enum Packed {
    Capsule(Box<Capsule>),
    /// Not packed; the reason was printed.
    Not(Exit),
}

struct Packing<'a> {
    console: &'a Console,
    original: Original<'a>,
    prepared: &'a PreparedPlan,
    device: Device,
    begin: Option<Checkpoint>,
    step: u64,
    workers: usize,
}

impl Packing<'_> {
    fn pack<B: Compute>(&self, device: B::Device) -> Result<Packed, Failure> {
        let mut run = self.prepared.start::<B>(self.workers, device)?;
        let outline = Arc::clone(run.outline());
        let original = &self.original;
        original.check_parts(&outline.digest_parts)?;
        let now = current_environment(outline.data, self.workers, self.device);
        original.print_environments(&now, self.console)?;
        if let Some(checkpoint) = &self.begin {
            run.restore(checkpoint)?;
        }
        let screen = Screen::new(self.console);
        let interrupt = Interrupt::listen(|| {})?;
        let mut found = original.standing(run.standing_digest());
        if found.is_none() {
            let mut bar = screen.bar(outline.metric, None);
            run.replay(self.step - 1, |progress, digest| {
                if let Some(bar) = &mut bar {
                    bar.step(progress);
                }
                found = original.disagreement(digest);
                found.is_none() && !interrupt.asked()
            });
            if let Some(bar) = bar {
                bar.clear();
            }
        }
        if let Some(found) = found {
            let name = original.name();
            let head = Role::Error.paint(format!("step {} differs", found.step));
            let what = found.what("now, recorded as");
            self.console.say(&format!(
                "{name}: {head}: {what}\n  the state before step {} cannot be reproduced here",
                self.step
            ));
            self.console.event(&found.event());
            return Ok(Packed::Not(Exit::No));
        }
        if run.step() + 1 < self.step {
            to_stderr(&format!("interrupted after step {}", run.step()));
            return Ok(Packed::Not(Exit::Interrupted));
        }
        let Some((digest, parts)) = original.log.at(self.step) else {
            let message = format!("step {} is not in the record", self.step);
            return Err(Failure::input(message));
        };
        let capsule = run.pack(CapsuleFacts {
            step: self.step,
            epoch: 0,
            run: original.name(),
            plan: original.record.plan().to_owned(),
            environment: original.record.header().environment.clone(),
            digest_parts: original.record.header().digest_parts.clone(),
            digest,
            parts,
            training: serde_json::Value::Null,
        })?;
        Ok(Packed::Capsule(Box::new(capsule)))
    }
}
