//! The kinds of findings.

use std::fmt;
use std::str::FromStr;

/// A kind of finding. Its id is what people write to suppress it or to have it explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// State that later steps depend on is missing from what a checkpoint saves.
    MissingState,
    /// A generator that later steps draw from is missing from what a checkpoint saves.
    MissingGenerator,
    /// A checkpoint does not say how far the loops around it have come, or a resumed run makes no use of it.
    MissingPosition,
    /// Saved, but nothing restores it.
    NotRestored,
    /// Restored before something that draws from it or writes it anew.
    RestoredEarly,
    /// A generator that is never seeded reaches data or parameters.
    UnseededGenerator,
    /// The order of the data comes from a generator that others draw from, or that has no seed.
    UnseededShuffle,
    /// Processes that load data draw from generators that nobody seeds.
    UnseededWorkers,
    /// A generator is seeded by the rank of a worker, so results depend on their number.
    RankKeyed,
    /// An evaluation draws from the generator that training draws from.
    EvaluationDraws,
    /// The order of a set reaches data or parameters.
    SetOrder,
    /// The order in which a file system lists files reaches data or parameters.
    FileOrder,
    /// `hash` of a text reaches data or parameters.
    HashOrder,
    /// The clock, a process id or a random identifier reaches data or parameters.
    Clock,
    /// An operation that may give other bits for the same input.
    NondeterministicOperation,
    /// Results are combined in the order in which they arrive.
    ArrivalOrder,
    /// `cudnn.benchmark` picks algorithms by the clock.
    CudnnBenchmark,
    /// Nondeterministic operations are only warned of.
    WarnOnly,
    /// Kernels are picked by the clock.
    Autotune,
    /// Precision depends on the device.
    Precision,
    /// A call that cannot be resolved takes part in the training.
    UnknownCall,
    /// A comment that silences findings names a rule that does not exist.
    UnknownSuppression,
}

impl Rule {
    /// All of them, in the order in which they are documented.
    pub const ALL: [Rule; 22] = [
        Rule::MissingState,
        Rule::MissingGenerator,
        Rule::MissingPosition,
        Rule::NotRestored,
        Rule::RestoredEarly,
        Rule::UnseededGenerator,
        Rule::UnseededShuffle,
        Rule::UnseededWorkers,
        Rule::RankKeyed,
        Rule::EvaluationDraws,
        Rule::SetOrder,
        Rule::FileOrder,
        Rule::HashOrder,
        Rule::Clock,
        Rule::NondeterministicOperation,
        Rule::ArrivalOrder,
        Rule::CudnnBenchmark,
        Rule::WarnOnly,
        Rule::Autotune,
        Rule::Precision,
        Rule::UnknownCall,
        Rule::UnknownSuppression,
    ];

    /// Its name in suppressions, outputs and documents.
    pub fn id(self) -> &'static str {
        match self {
            Rule::MissingState => "missing_state",
            Rule::MissingGenerator => "missing_generator",
            Rule::MissingPosition => "missing_position",
            Rule::NotRestored => "not_restored",
            Rule::RestoredEarly => "restored_early",
            Rule::UnseededGenerator => "unseeded_generator",
            Rule::UnseededShuffle => "unseeded_shuffle",
            Rule::UnseededWorkers => "unseeded_workers",
            Rule::RankKeyed => "rank_keyed",
            Rule::EvaluationDraws => "evaluation_draws",
            Rule::SetOrder => "set_order",
            Rule::FileOrder => "file_order",
            Rule::HashOrder => "hash_order",
            Rule::Clock => "clock",
            Rule::NondeterministicOperation => "nondeterministic_operation",
            Rule::ArrivalOrder => "arrival_order",
            Rule::CudnnBenchmark => "cudnn_benchmark",
            Rule::WarnOnly => "warn_only",
            Rule::Autotune => "autotune",
            Rule::Precision => "precision",
            Rule::UnknownCall => "unknown_call",
            Rule::UnknownSuppression => "unknown_suppression",
        }
    }

    /// Whether it is told for completeness and does not count as a finding by itself.
    pub fn is_remark(self) -> bool {
        matches!(self, Rule::UnknownCall | Rule::UnknownSuppression)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// There is no rule of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no rule `{0}`")]
pub struct NoSuchRule(String);

impl FromStr for Rule {
    type Err = NoSuchRule;

    fn from_str(text: &str) -> Result<Rule, NoSuchRule> {
        let written = text.replace('-', "_").to_ascii_lowercase();
        let same = |rule: &Rule| rule.id() == written;
        Rule::ALL.into_iter().find(same).ok_or_else(|| NoSuchRule(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_known_by_its_id() {
        for rule in Rule::ALL {
            assert_eq!(rule.id().parse(), Ok(rule));
        }
        assert!("missing".parse::<Rule>().is_err());
    }

    #[test]
    fn hyphens_and_capitals_in_an_id_do_not_matter() {
        assert_eq!("Missing-State".parse(), Ok(Rule::MissingState));
    }
}
