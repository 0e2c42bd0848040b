//! Repeats the step in a capsule.

use super::{Arguments, print_differences};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Console;
use crate::output::replay::Disagreement;
use crate::output::step::Step;
use surefoot_plan::Document;
use surefoot_record::{Capsule, Digest};
use surefoot_train::{current_environment, on_device, repeat};

pub(super) fn run(arguments: &Arguments, console: &Console) -> Result<Exit, Failure> {
    let capsule = Capsule::read(&arguments.path)?;
    let facts = &capsule.facts;
    let file = arguments.path.display().to_string();
    let plan = Document::parse(facts.plan.clone(), file.clone())?.plan()?;
    let workers = arguments.workers();
    let data = facts.environment.data.unwrap_or(Digest(0));
    let now = current_environment(data, workers, arguments.device);
    print_differences(&facts.environment, &now, console);
    let repeated = on_device!(arguments.device, |B, device| {
        repeat::<B>(&plan, &capsule, workers, device).map_err(Failure::from)
    })?;
    let agrees = repeated.digest.digest == facts.digest;
    let disagreement = (!agrees).then(|| {
        let (then, now) = (&facts.parts, &repeated.digest.parts);
        Disagreement::new(facts.step, &facts.digest_parts, then, now)
    });
    let step = Step { file, facts, repeated: &repeated, disagreement };
    console.say(&step.text());
    console.event(&step.event());
    Ok(if agrees { Exit::Done } else { Exit::No })
}
