//! `surefoot replay`: repeats a recorded run, or the step in a capsule, and checks every digest.

mod capsule;
pub(crate) mod original;
pub(super) mod stretch;
mod verify;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use surefoot_record::Environment;
use surefoot_train::Device;

use super::train::environment;

const EXAMPLES: &str = "\
Examples:
  surefoot replay runs/circles-001
      Repeats the run from its start, and says whether every step comes to the recorded digest.

  surefoot replay runs/circles-001 --from 1200
      From step 1200 on; begins at the nearest checkpoint before it.

  surefoot replay runs/deep-001/attempts/attempt-002 --to 50
      The first 50 steps of an attempt of a repair.

  surefoot replay step-17.capsule
      Repeats the step that `surefoot capsule` packed, and shows the numbers of every layer.

  surefoot replay runs/circles-001 --json | tail -n 1
      The result as one line of JSON.

Nothing is written. A run that was killed or still goes on is repeated as far as it is recorded.

Exit codes: 0 every digest agrees, 1 one does not, 2 the input is wrong, 3 something broke,
130 interrupted.";

/// Repeat a run and check that every step comes to the same bits
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

    /// Threads that share the work of a step [default: all cores]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Where to compute: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,

    /// Print one JSON object a line on stdout, the result last
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
            let message = format!("{option} is for runs, and a capsule has one step");
            return Err(Failure::input(message));
        }
        return capsule::run(arguments, &console);
    }
    verify::run(arguments, &console)
}

/// Tells how the environment is not that of the record, before anything is computed in it.
fn tell_differences(then: &Environment, now: &Environment, console: &Console) {
    let differences = environment::differences(then, now);
    for difference in &differences {
        console.warn(&format!("{difference}; the digests may differ"));
    }
    let crew = |environment: &Environment| (environment.workers, environment.threads);
    if crew(then) != crew(now) {
        console.note(&format!(
            "{} workers of {} threads then, {} of {} now, which changes no bit",
            then.workers, then.threads, now.workers, now.threads
        ));
    }
    if !differences.is_empty() || crew(then) != crew(now) {
        console.event(&serde_json::json!({
            "event": "environment",
            "differences": differences,
            "then": then,
            "now": now,
        }));
    }
}
