//! What another execution finds different and lets reach data or parameters.

use super::Script;
use super::deciding::decided;
use crate::calculus::Site;
use crate::library::Environment;
use crate::lift::facts::{Purpose, Role};
use crate::{Finding, Rule};

/// Looks at every read of the environment that reaches an output.
pub(super) fn find(script: &Script<'_>, findings: &mut Vec<Finding>) {
    let reaching = script.reaching();
    for read in &script.lifted.reads {
        if !reaching.iter().any(|origin| origin.site == read.site) {
            continue;
        }
        let call = &read.call;
        if read.what == Environment::Clock
            && let Some(condition) = decided(&script.lifted.program, read.variable)
        {
            let message = format!(
                "`{call}` reads the clock, and whether this holds decides how the training goes on: every run is another one."
            );
            let help = "Count steps instead of seconds where runs have to agree.".to_owned();
            findings.push(script.finding(Rule::Clock, condition, message, help));
            continue;
        }
        let site = match read.what {
            Environment::SetOrder => read.taken_at.unwrap_or(read.site),
            _ => read.site,
        };
        let (rule, message, help) = match read.what {
            Environment::Entropy if read.in_worker => (
                Rule::UnseededWorkers,
                "In the processes that load data this generator is seeded by the system, and what it draws reaches the training: every run is another one.".to_owned(),
                "Seed it from `torch.initial_seed()`, which differs between processes and follows from the loader's generator.",
            ),
            Environment::Entropy => (
                Rule::UnseededGenerator,
                "This generator begins with entropy from the system, and what it draws reaches the training: every run is another one.".to_owned(),
                "Give it a seed.",
            ),
            Environment::Clock => (Rule::Clock, format!("`{call}` reads the clock, and what it gives reaches the training: every run is another one."), "Take a seed from the settings instead, and record it."),
            Environment::Identity => (Rule::Clock, format!("`{call}` gives something else in every run, and that reaches the training."), "Use a fixed value, or one from the settings."),
            Environment::FileOrder => (
                Rule::FileOrder,
                format!("`{call}` lists files in whatever order the file system has them, and that order reaches the training: another machine trains another model."),
                "Sort what it gives: `sorted(...)`.",
            ),
            Environment::SetOrder => (
                Rule::SetOrder,
                "The order of this set reaches the training, and for texts it differs from run to run.".to_owned(),
                "Sort it before its order matters: `sorted(...)`.",
            ),
            Environment::Hash => (Rule::HashOrder, "`hash` of a text differs from run to run, and this one reaches the training.".to_owned(), "Use a hash that is always the same, from `hashlib` or `zlib.crc32`."),
            Environment::Arrival => (Rule::ArrivalOrder, format!("`{call}` gives results in the order in which they arrive, and that order reaches the training."), if call.starts_with("tf.data") { "Leave `deterministic=False` out: elements then keep their order." } else { "Keep the order of the tasks: `map` instead, or sort by an index." }),
        };
        let order =
            (read.what == Environment::Entropy).then(|| only_order(script, read.site)).flatten();
        if let Some(order) = order {
            let message = "The order of the data comes from a generator that begins with entropy from the system: every run is another one.".to_owned();
            let mut finding =
                script.finding(Rule::UnseededShuffle, order, message, help.to_owned());
            let note = "It is made here, without a seed.";
            finding.notes.push(script.note(read.site, note));
            findings.push(finding);
            continue;
        }
        findings.push(script.finding(rule, site, message, help.to_owned()));
    }
}

/// Where the order of data is drawn from the generator that is made here, if nothing else is.
fn only_order(script: &Script<'_>, made: Site) -> Option<Site> {
    let lifted = script.lifted;
    let thing = lifted
        .things
        .iter()
        .find(|thing| thing.site == made && matches!(thing.role, Role::Generator(_)))?;
    let mut draws = lifted.draws.iter().filter(|draw| draw.generator == thing.object);
    let first = draws.next()?;
    let is_order = first.purpose == Purpose::Order && draws.all(|it| it.purpose == Purpose::Order);
    is_order.then_some(first.site)
}
