//! How a run's problems are to be dealt with.

use super::Arguments;
use super::job::Job;
use crate::failure::Failure;
use std::io::IsTerminal;
use surefoot_diagnose::{Thresholds, detectors};
use surefoot_plan::Plan;
use surefoot_repair::remedies;

/// The header's entry for it.
const REPAIR: &str = "repair";

/// What is done about a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// Remedies are tried.
    Automatic,
    /// Remedies are tried that somebody agrees to.
    Approved,
    /// Problems are told and that is all.
    Off,
}

impl Care {
    /// What the command line asks for; a run that goes on is dealt with as it was started unless
    /// that says otherwise.
    pub(super) fn of(arguments: &Arguments, job: &Job) -> Result<Self, Failure> {
        let recorded = job.resumes.as_ref().map(|run| &run.header().more);
        let recorded = recorded.and_then(|more| more.get(REPAIR)?.as_str());
        let care = match (arguments.no_repair, arguments.approve, recorded) {
            (true, _, _) => Self::Off,
            (_, true, _) => Self::Approved,
            (_, _, Some(name)) => Self::named(name),
            (_, _, None) => Self::Automatic,
        };
        if care == Self::Approved && !arguments.dry_run && !std::io::stdin().is_terminal() {
            let message = "somebody has to approve of remedies, and stdin is no terminal";
            return Err(Failure::input(message).help(
                "start it from a terminal, or leave out --approve, or use --no-repair to be told \
                 of problems only",
            ));
        }
        Ok(care)
    }

    fn named(name: &str) -> Self {
        let all = [Self::Automatic, Self::Approved, Self::Off];
        let named = all.into_iter().find(|care| care.name() == name);
        named.unwrap_or(Self::Automatic)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Approved => "approved",
            Self::Off => "off",
        }
    }

    /// What to add to the header so that the run can be resumed.
    pub(super) fn fact(self) -> (String, serde_json::Value) {
        (REPAIR.to_owned(), self.name().into())
    }

    /// Whether something is done about a problem.
    pub(super) fn repairs(self) -> bool {
        self != Self::Off
    }
}

/// The thresholds of a plan whose wishes can be met.
pub(super) fn thresholds(plan: &Plan) -> Result<Thresholds, Failure> {
    let all = remedies::all();
    for (key, ids) in [("forbid", &plan.repair.forbid), ("order", &plan.repair.order)] {
        let known = |id: &&String| all.iter().any(|remedy| remedy.id() == *id);
        if let Some(id) = ids.iter().find(|id| !known(id)) {
            let known: Vec<&str> = all.iter().map(|remedy| remedy.id()).collect();
            return Err(Failure::input(format!(
                "`repair.{key}` names `{id}`, which is no remedy; there are {}",
                known.join(", ")
            )));
        }
    }
    surefoot_repair::thresholds(plan, &detectors::all()).map_err(Failure::input)
}
