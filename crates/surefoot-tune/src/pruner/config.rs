//! Pruners by their names.

use super::{Asha, Extrapolation, Hyperband, Median, Percentile, Prospect, PruneReason, Pruner};
use crate::learning_curve::LearningCurve;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// The names of all pruners.
pub const NAMES: [&str; 6] =
    ["prospect", "median", "percentile", "extrapolation", "asha", "hyperband"];

/// A pruner with its settings, as studies write it: a name (`"median"`), or a table with a name and
/// the settings that differ from the defaults (`{ name = "median", trials = 10 }`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum PrunerConfig {
    /// Behind, and lying still.
    Prospect(Prospect),
    /// Worse than the median.
    Median(Median),
    /// Not among the best share.
    Percentile(Percentile),
    /// Forecast to end worse than the best.
    Extrapolation(Extrapolation),
    /// Successive halving, without waiting.
    Asha(Asha),
    /// Several brackets of it.
    Hyperband(Hyperband),
}

/// There is no pruner of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no pruner `{0}`; there are {names}", names = NAMES.join(", "))]
pub struct UnknownPruner(pub String);

impl FromStr for PrunerConfig {
    type Err = UnknownPruner;

    fn from_str(name: &str) -> Result<PrunerConfig, UnknownPruner> {
        Ok(match name {
            "prospect" => PrunerConfig::Prospect(Prospect::default()),
            "median" => PrunerConfig::Median(Median::default()),
            "percentile" => PrunerConfig::Percentile(Percentile::default()),
            "extrapolation" => PrunerConfig::Extrapolation(Extrapolation::default()),
            "asha" => PrunerConfig::Asha(Asha::default()),
            "hyperband" => PrunerConfig::Hyperband(Hyperband::default()),
            _ => return Err(UnknownPruner(name.to_owned())),
        })
    }
}

impl PrunerConfig {
    /// Fails if a setting is one with which the pruner could not do what it is for.
    fn check(&self) -> Result<(), String> {
        let fail = |key: &str, value: f64, wanted: &str| {
            let name = self.name();
            Err(format!("pruner `{name}`: `{key}` is {value}, not {wanted}"))
        };
        let is_share = |key, value| match (0.0..=1.0).contains(&value) {
            true => Ok(()),
            false => fail(key, value, "a share from 0 to 1"),
        };
        let is_positive = |key, value: f64| match value >= 0.0 && value.is_finite() {
            true => Ok(()),
            false => fail(key, value, "a number from 0"),
        };
        let has_rungs = |first: f64, reduction: f64| {
            if !(first > 0.0 && first <= 1.0) {
                return fail("first", first, "a share above 0");
            }
            if !(reduction > 1.0 && reduction.is_finite()) {
                return fail("reduction", reduction, "more than 1");
            }
            Ok(())
        };
        match *self {
            PrunerConfig::Prospect(Prospect { keep, sure, swing, fall, from, trials: _ }) => {
                is_share("keep", keep)
                    .and(is_share("from", from))
                    .and(is_positive("sure", sure))
                    .and(swing.map_or(Ok(()), |swing| is_positive("swing", swing)))
                    .and(is_positive("fall", fall))
            }
            PrunerConfig::Median(Median { from, trials: _ }) => is_share("from", from),
            PrunerConfig::Percentile(Percentile { keep, from, trials: _ }) => {
                is_share("keep", keep).and(is_share("from", from))
            }
            PrunerConfig::Extrapolation(Extrapolation { from, sure, trials: _ }) => {
                is_share("from", from).and(is_positive("sure", sure))
            }
            PrunerConfig::Asha(Asha { first, reduction })
            | PrunerConfig::Hyperband(Hyperband { first, reduction }) => {
                has_rungs(first, reduction)
            }
        }
    }

    fn pruner(&self) -> &dyn Pruner {
        match self {
            PrunerConfig::Prospect(pruner) => pruner,
            PrunerConfig::Median(pruner) => pruner,
            PrunerConfig::Percentile(pruner) => pruner,
            PrunerConfig::Extrapolation(pruner) => pruner,
            PrunerConfig::Asha(pruner) => pruner,
            PrunerConfig::Hyperband(pruner) => pruner,
        }
    }
}

impl Pruner for PrunerConfig {
    fn name(&self) -> &'static str {
        self.pruner().name()
    }

    fn judge(&self, trial: &LearningCurve, others: &[LearningCurve]) -> Option<PruneReason> {
        self.pruner().judge(trial, others)
    }
}

impl<'de> Deserialize<'de> for PrunerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PrunerConfig, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = PrunerConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a pruner, or a table with its `name` and settings")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<PrunerConfig, E> {
        name.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PrunerConfig, A::Error> {
        #[derive(Deserialize)]
        #[serde(tag = "name", rename_all = "snake_case")]
        enum Table {
            Prospect(Prospect),
            Median(Median),
            Percentile(Percentile),
            Extrapolation(Extrapolation),
            Asha(Asha),
            Hyperband(Hyperband),
        }
        let table = Table::deserialize(MapAccessDeserializer::new(map))?;
        let choice = match table {
            Table::Prospect(pruner) => PrunerConfig::Prospect(pruner),
            Table::Median(pruner) => PrunerConfig::Median(pruner),
            Table::Percentile(pruner) => PrunerConfig::Percentile(pruner),
            Table::Extrapolation(pruner) => PrunerConfig::Extrapolation(pruner),
            Table::Asha(pruner) => PrunerConfig::Asha(pruner),
            Table::Hyperband(pruner) => PrunerConfig::Hyperband(pruner),
        };
        choice.check().map_err(A::Error::custom)?;
        Ok(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_pruner_of_that_name() {
        for name in NAMES {
            let choice: PrunerConfig = name.parse().unwrap();
            assert_eq!(choice.name(), name);
            let json = serde_json::to_string(&choice).unwrap();
            assert_eq!(serde_json::from_str::<PrunerConfig>(&json).unwrap(), choice);
        }
    }

    #[test]
    fn a_name_or_a_table_will_do() {
        let read = |json: &str| serde_json::from_str::<PrunerConfig>(json).unwrap();
        assert_eq!(read(r#""median""#), PrunerConfig::Median(Median::default()));
        let table = read(r#"{"trials": 9, "name": "median"}"#);
        let median = Median { trials: 9, ..Median::default() };
        assert_eq!(table, PrunerConfig::Median(median));
    }

    #[test]
    fn errors_name_what_there_is() {
        let error =
            |json: &str| serde_json::from_str::<PrunerConfig>(json).unwrap_err().to_string();
        assert!(error(r#""medain""#).contains("there are prospect, median, "));
        assert!(error(r#"{"name": "medain"}"#).contains("expected one of `prospect`, `median`"));
        assert!(error(r#"{"name": "median", "trails": 5}"#).contains("`from` or `trials`"));
        assert!(error("5").contains("the name of a pruner"));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        for (table, said) in [
            (r#"{"name": "median", "from": 7}"#, "`from` is 7, not a share from 0 to 1"),
            (r#"{"name": "percentile", "keep": -0.5}"#, "`keep` is -0.5"),
            (r#"{"name": "prospect", "sure": -1}"#, "`sure` is -1, not a number from 0"),
            (r#"{"name": "asha", "reduction": 1}"#, "`reduction` is 1, not more than 1"),
            (r#"{"name": "hyperband", "first": 0}"#, "`first` is 0, not a share above 0"),
        ] {
            let error = serde_json::from_str::<PrunerConfig>(table).expect_err("refused");
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
