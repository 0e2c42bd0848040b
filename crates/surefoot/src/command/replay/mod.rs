//! `surefoot replay`: repeats a recorded run, or the step in a capsule, and checks every digest.

mod capsule;
pub(crate) mod original;
mod program;
pub(super) mod range;
mod verify;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use surefoot_record::Environment;
use surefoot_train::{Device, environment_warnings};

const EXAMPLES: &str = "\
Examples:
  surefoot replay runs/circles-001
      Repeats the run from its start and checks the digest of every step.

  surefoot replay runs/circles-001 --from 1200
      Checks from step 1200, starting at the nearest checkpoint before it.

  surefoot replay runs/deep-001/attempts/attempt-002 --to 50
      Checks the first 50 steps of a repair attempt.

  surefoot replay step-17.capsule
      Repeats the step of a capsule and shows the statistics of every layer.

  surefoot replay runs/circles-001 --json | tail -n 1
      Prints the result as one line of JSON.

Writes nothing. An unfinished run is repeated up to its last recorded step. A run of a script is
repeated from its start, without its output.

Exit codes: 0 all digests agree, 1 a digest differs, 2 wrong input, 3 internal or system error,
130 interrupted.";

/// Repeat a run and check that every step has the same bits
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A run directory, or a capsule
    path: PathBuf,

    /// The first step to check; 0 is the state before the first step [default: 0]
    #[arg(long, value_name = "STEP")]
    from: Option<u64>,

    /// The last step to check [default: the last that is recorded]
    #[arg(long, value_name = "STEP")]
    to: Option<u64>,

    /// The folder that the plan's files are relative to, if they have moved
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,

    /// Threads that share a step [default: all cores]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Device to compute on: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,

    /// Print JSON lines on stdout, the result last
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn workers(&self) -> usize {
        super::workers(self.workers)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let console = Console::new(arguments.json, false);
    if arguments.path.is_file() {
        let choice = [
            ("--from", arguments.from.is_some()),
            ("--to", arguments.to.is_some()),
            ("--base", arguments.base.is_some()),
        ];
        if let Some((option, _)) = choice.iter().find(|(_, given)| *given) {
            let message = format!("{option} applies to runs; a capsule has a single step");
            return Err(Failure::input(message));
        }
        return capsule::run(arguments, &console);
    }
    verify::run(arguments, &console)
}

/// Prints how the environment differs from that of the record.
fn print_differences(then: &Environment, now: &Environment, console: &Console) {
    let differences = environment_warnings(then, now);
    for difference in &differences {
        console.warn(&format!("{difference}; the digests may differ"));
    }
    let workers = |environment: &Environment| (environment.workers, environment.threads);
    if workers(then) != workers(now) {
        console.note(&format!(
            "recorded with {} workers on {} threads, now {} on {}; this does not change the result",
            then.workers, then.threads, now.workers, now.threads
        ));
    }
    if !differences.is_empty() || workers(then) != workers(now) {
        console.event(&serde_json::json!({
            "event": "environment",
            "differences": differences,
            "then": then,
            "now": now,
        }));
    }
}
