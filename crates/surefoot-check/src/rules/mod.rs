//! The rules, one file each: documentation, check and messages.
//!
//! A rule is a file with a [`define_rule!`] block, a `mod` line and a line in the [`register!`] list.
//! Analyses that several rules use are in [`crate::analysis`].

use std::collections::BTreeSet;

use crate::analysis::checkpoints::{self, AnalyzedCheckpoint};
use crate::analysis::requirements::Requirement;
use crate::calculus::{Origin, Site, Typing, Variable};
use crate::library::Environment;
use crate::lift::facts::{Key, Lifted, Load, Loop, LoopId, Read, Save};
use crate::project::Project;
use crate::{CheckConfig, Finding, Note, Place, RequiredCheckpoint};

/// Defines the constant `RULE` of a rule's file. The doc comment is the documentation of the rule, as
/// `surefoot check --explain` prints it.
macro_rules! define_rule {
    ($(#[doc = $line:literal])+ Definition { is_warning: $is_warning:literal, check }) => {
        $(#[doc = $line])+
        pub(super) const RULE: Definition = Definition {
            documentation: concat!($($line, "\n"),+),
            is_warning: $is_warning,
            check,
        };
    };
}

/// Declares the enum [`Rule`] from variants and the modules that define them.
macro_rules! register {
    ($($variant:ident => $module:ident,)+) => {
        /// A kind of finding. Its id is used in suppression comments, in the output and in the
        /// documentation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = concat!("`", stringify!($module), "`")] $variant,)+
        }

        impl Rule {
            /// All rules, in the order of the documentation.
            pub const ALL: [Rule; [$(Rule::$variant),+].len()] = [$(Rule::$variant),+];

            /// Returns the name of the rule in suppression comments, output and documentation.
            pub fn id(self) -> &'static str {
                match self {
                    $(Rule::$variant => stringify!($module),)+
                }
            }

            pub(crate) fn definition(self) -> &'static Definition {
                match self {
                    $(Rule::$variant => &$module::RULE,)+
                }
            }
        }
    };
}

mod arrival_order;
mod autotune;
mod clock;
mod cudnn_benchmark;
mod evaluation_draws;
mod file_order;
mod hash_order;
mod missing_generator;
mod missing_position;
mod missing_state;
mod nondeterministic_operation;
mod not_restored;
mod precision;
mod rank_keyed;
mod restored_early;
mod set_order;
mod unknown_call;
pub(crate) mod unknown_loop;
pub(crate) mod unknown_suppression;
mod unseeded_generator;
mod unseeded_shuffle;
mod unseeded_workers;
mod warn_only;

register! {
    MissingState => missing_state,
    MissingGenerator => missing_generator,
    MissingPosition => missing_position,
    NotRestored => not_restored,
    RestoredEarly => restored_early,
    UnseededGenerator => unseeded_generator,
    UnseededShuffle => unseeded_shuffle,
    UnseededWorkers => unseeded_workers,
    RankKeyed => rank_keyed,
    EvaluationDraws => evaluation_draws,
    SetOrder => set_order,
    FileOrder => file_order,
    HashOrder => hash_order,
    Clock => clock,
    NondeterministicOperation => nondeterministic_operation,
    ArrivalOrder => arrival_order,
    CudnnBenchmark => cudnn_benchmark,
    WarnOnly => warn_only,
    Autotune => autotune,
    Precision => precision,
    UnknownLoop => unknown_loop,
    UnknownCall => unknown_call,
    UnknownSuppression => unknown_suppression,
}

/// Contents of a rule's file.
pub(crate) struct Definition {
    /// Markdown; every line starts with a space.
    pub documentation: &'static str,
    /// True if the rule does not count as a finding.
    pub is_warning: bool,
    /// Adds the findings of a script.
    pub check: fn(&RuleContext<'_>, &mut Report),
}

/// Findings and checkpoints of a script.
#[derive(Default)]
pub(crate) struct Report {
    pub findings: Vec<Finding>,
    pub checkpoints: Vec<RequiredCheckpoint>,
    /// Training steps that the rules were applied to.
    pub followed: Vec<Place>,
    /// Calls of unknown libraries that receive an optimizer, in a script without training steps.
    pub handed_over: Vec<Place>,
    /// Warnings about unknown calls, with the name of the function. Each function is reported once for
    /// all scripts.
    pub unknown: Vec<(String, Finding)>,
}

/// Applies all rules to a script.
pub(crate) fn apply(
    lifted: &Lifted,
    typing: &Typing,
    project: &Project,
    config: &CheckConfig,
) -> Report {
    let outputs = typing.outputs().iter();
    let external = outputs.flat_map(|output| output.kind.external().copied()).collect();
    let mut context =
        RuleContext { lifted, typing, project, config, external, checkpoints: Vec::new() };
    context.checkpoints = checkpoints::analyze(&context);
    let mut report = Report::default();
    for rule in Rule::ALL {
        (rule.definition().check)(&context, &mut report);
    }
    let checkpoints = context.checkpoints.iter();
    report.checkpoints = checkpoints.map(|it| it.describe(&context)).collect();
    if lifted.trains {
        report.followed = lifted.steps.iter().map(|site| lifted.place(*site)).collect();
    }
    report
}

/// Script and analyses that the rules use.
pub(crate) struct RuleContext<'s> {
    pub lifted: &'s Lifted,
    pub typing: &'s Typing,
    pub project: &'s Project,
    pub config: &'s CheckConfig,
    /// External values that reach an output.
    pub external: BTreeSet<Origin>,
    /// Checkpoints of training loops, and loops without one.
    pub checkpoints: Vec<AnalyzedCheckpoint<'s>>,
}

impl<'s> RuleContext<'s> {
    /// Creates a finding.
    pub(crate) fn finding(&self, rule: Rule, site: Site, message: String, help: String) -> Finding {
        Finding { rule, place: self.place(site), message, help, notes: Vec::new() }
    }

    /// Creates a note of a finding.
    pub(crate) fn note(&self, site: Site, text: impl Into<String>) -> Note {
        Note { place: self.place(site), text: text.into() }
    }

    /// Notes with the reason why a checkpoint must save each requirement.
    fn requirement_notes(&self, requirements: &[&Requirement]) -> Vec<Note> {
        let used = requirements.iter().filter_map(|it| Some((it.used_at?, it.reason.clone())));
        used.map(|(site, reason)| self.note(site, reason)).collect()
    }

    /// Saves that a run can resume from.
    fn saves(&self) -> impl Iterator<Item = &'s Save> {
        self.checkpoints.iter().filter_map(|it| it.save)
    }

    /// True if a run resumed with a load continues from a save: it reads the same entries or the same file
    /// before the training.
    pub(crate) fn resumes(&self, save: &Save, load: &Load) -> bool {
        let is_before = save.loops.first().is_some_and(|id| {
            let begin = self.looped(*id).moment;
            load.moment.order < begin.order && !self.lifted.exclude_each_other(load.moment, begin)
        });
        let holds = |key: &Key| load.keys.contains(&key.name);
        let is_same = save.holdings.keys.iter().any(holds)
            || (load.file.is_some() && load.file == save.file)
            || (load.keys.is_empty() && save.holdings.keys.is_empty());
        is_before && is_same
    }

    /// Selected requirements that saves with known contents lack, for saves that lack any.
    fn missing(
        &self,
        select: impl Fn(&Requirement) -> bool,
    ) -> impl Iterator<Item = (&'s Save, Vec<&Requirement>)> {
        self.checkpoints.iter().filter_map(move |checkpoint| {
            let save = checkpoint.save.filter(|save| !save.holdings.is_open)?;
            let required = checkpoint.requirements.iter();
            let missing: Vec<_> = required.filter(|it| !it.saved && select(it)).collect();
            (!missing.is_empty()).then_some((save, missing))
        })
    }

    /// Reads of an environment source that reach an output.
    fn reads(&self, what: Environment) -> impl Iterator<Item = &'s Read> {
        let reads = self.lifted.reads.iter();
        reads.filter(move |read| read.what == what && self.reaches_output(read.site))
    }

    /// True if an external value from this site reaches an output.
    fn reaches_output(&self, site: Site) -> bool {
        self.external.iter().any(|origin| origin.site == site)
    }

    /// Sites where a script that trains sets the switch of a rule.
    fn switches(&self, rule: Rule) -> impl Iterator<Item = Site> {
        let switches = self.lifted.switches.iter().filter(|_| self.lifted.trains);
        switches.filter(move |switch| switch.rule == rule).map(|switch| switch.site)
    }

    pub(crate) fn looped(&self, id: LoopId) -> &'s Loop {
        &self.lifted.loops[id.0 as usize]
    }

    pub(crate) fn place(&self, site: Site) -> Place {
        self.lifted.place(site)
    }

    /// Source text of a place.
    pub(crate) fn text(&self, place: &Place) -> &'s str {
        let text = &self.project.script(place.file).source.text;
        text.get(place.range.clone()).unwrap_or_default()
    }

    /// Line of a site, with the file if it differs from that of `beside`.
    pub(crate) fn line(&self, site: Site, beside: Site) -> String {
        let place = self.place(site);
        let source = &self.project.script(place.file).source;
        let (line, _) = source.line_and_column(place.range.start);
        if place.file == self.place(beside).file {
            format!("line {line}")
        } else {
            format!("{}:{line}", source.path.display())
        }
    }

    pub(crate) fn symbol(&self, origin: &Origin) -> Option<&str> {
        origin.symbol.map(|symbol| self.lifted.program.symbol_name(symbol))
    }

    pub(crate) fn name_of(&self, variable: Variable) -> &'s str {
        self.lifted.program.name(variable)
    }
}
