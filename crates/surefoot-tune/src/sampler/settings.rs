//! Which sampler a study wants, and how it is set.

use super::{Gp, Random, Sampler, Smac, Sobol, Tpe};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A sampler by its name and settings. TPE unless something else is said.
///
/// A study writes the name alone, or a table with the name and what differs from the default:
///
/// ```
/// use surefoot_tune::sampler::{SamplerConfig, Tpe};
///
/// let given: SamplerConfig = serde_json::from_str(r#"{"name": "tpe", "startup": 20}"#)?;
/// assert_eq!(given, SamplerConfig::Tpe(Tpe { startup: 20, ..Tpe::default() }));
/// let given: SamplerConfig = serde_json::from_str(r#""sobol""#)?;
/// assert_eq!(given.name(), "sobol");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum SamplerConfig {
    /// Independent draws.
    Random(Random),
    /// Points that fill the space evenly.
    Sobol(Sobol),
    /// Tree-structured Parzen estimators.
    Tpe(Tpe),
    /// A Gaussian process.
    Gp(Gp),
    /// A random forest.
    Smac(Smac),
}

impl Default for SamplerConfig {
    fn default() -> SamplerConfig {
        SamplerConfig::Tpe(Tpe::default())
    }
}

impl SamplerConfig {
    /// All samplers, with their default settings.
    pub fn all() -> impl Iterator<Item = SamplerConfig> {
        [
            SamplerConfig::Random(Random::default()),
            SamplerConfig::Sobol(Sobol::default()),
            SamplerConfig::Tpe(Tpe::default()),
            SamplerConfig::Gp(Gp::default()),
            SamplerConfig::Smac(Smac::default()),
        ]
        .into_iter()
    }

    /// The default settings of the sampler of a name.
    pub fn named(name: &str) -> Option<SamplerConfig> {
        SamplerConfig::all().find(|settings| settings.name() == name)
    }

    /// The name of the sampler.
    pub fn name(&self) -> &'static str {
        match self {
            SamplerConfig::Random(sampler) => sampler.name(),
            SamplerConfig::Sobol(sampler) => sampler.name(),
            SamplerConfig::Tpe(sampler) => sampler.name(),
            SamplerConfig::Gp(sampler) => sampler.name(),
            SamplerConfig::Smac(sampler) => sampler.name(),
        }
    }

    /// Whether the points it gives depend on how other trials ended.
    pub fn learns(&self) -> bool {
        match self {
            SamplerConfig::Random(_) | SamplerConfig::Sobol(_) => false,
            SamplerConfig::Tpe(_) | SamplerConfig::Gp(_) | SamplerConfig::Smac(_) => true,
        }
    }

    /// The sampler.
    pub fn sampler(self) -> Box<dyn Sampler> {
        match self {
            SamplerConfig::Random(sampler) => Box::new(sampler),
            SamplerConfig::Sobol(sampler) => Box::new(sampler),
            SamplerConfig::Tpe(sampler) => Box::new(sampler),
            SamplerConfig::Gp(sampler) => Box::new(sampler),
            SamplerConfig::Smac(sampler) => Box::new(sampler),
        }
    }

    /// These settings with those of a table in their place.
    fn with<E: Error>(self, table: Map<String, Value>) -> Result<SamplerConfig, E> {
        let name = self.name();
        let table = Value::Object(table);
        let read = match self {
            SamplerConfig::Random(_) => Random::deserialize(table).map(SamplerConfig::Random),
            SamplerConfig::Sobol(_) => Sobol::deserialize(table).map(SamplerConfig::Sobol),
            SamplerConfig::Tpe(_) => Tpe::deserialize(table).map(SamplerConfig::Tpe),
            SamplerConfig::Gp(_) => Gp::deserialize(table).map(SamplerConfig::Gp),
            SamplerConfig::Smac(_) => Smac::deserialize(table).map(SamplerConfig::Smac),
        };
        read.map_err(|error| E::custom(format!("sampler `{name}`: {error}")))
    }
}

impl<'de> Deserialize<'de> for SamplerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SamplerConfig, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

/// Reads a share, which is from 0 to 1.
pub(super) fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(D::Error::custom(format!("{share} is no share from 0 to 1")))
    }
}

/// Reads a name, or a table that has one.
struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = SamplerConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a sampler, or a table with its `name` and settings")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<SamplerConfig, E> {
        SamplerConfig::named(name).ok_or_else(|| {
            let known: Vec<String> = super::names().map(|name| format!("`{name}`")).collect();
            E::custom(format!("unknown sampler `{name}`, expected one of {}", known.join(", ")))
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SamplerConfig, A::Error> {
        let mut table = Map::new();
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            table.insert(key, value);
        }
        match table.remove("name") {
            Some(Value::String(name)) => self.visit_str::<A::Error>(&name)?.with(table),
            Some(other) => {
                Err(A::Error::custom(format!("the `name` of a sampler is a word, not {other}")))
            }
            None => Err(A::Error::missing_field("name")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SamplerConfig, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn every_name_leads_to_the_sampler_that_has_it() {
        for settings in SamplerConfig::all() {
            let name = settings.name();
            assert_eq!(read(&format!("\"{name}\"")).expect("settings"), settings);
            assert_eq!(super::super::named(name).expect("a sampler").name(), name);
        }
        assert!(super::super::named("hill").is_none());
    }

    #[test]
    fn settings_survive_being_written() {
        for settings in SamplerConfig::all() {
            let text = serde_json::to_string(&settings).expect("text");
            assert_eq!(read(&text).expect("settings"), settings);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_there_are() {
        let error = read("\"hill\"").expect_err("refused").to_string();
        let wanted =
            "unknown sampler `hill`, expected one of `random`, `sobol`, `tpe`, `gp`, `smac`";
        assert!(error.starts_with(wanted), "{error}");
        let error = read(r#"{"name": "hill"}"#).expect_err("refused").to_string();
        assert!(error.starts_with(wanted), "{error}");
    }

    #[test]
    fn an_unknown_key_is_answered_with_those_there_are() {
        let error = read(r#"{"name": "tpe", "start": 3}"#).expect_err("refused");
        let error = error.to_string();
        assert!(error.starts_with("sampler `tpe`: unknown field `start`, expected"), "{error}");
        assert!(error.contains("`startup`"), "{error}");
    }

    #[test]
    fn values_that_cannot_be_are_refused() {
        for (text, message) in [
            (r#"{"name": "tpe", "good": 1.5}"#, "sampler `tpe`: 1.5 is no share from 0 to 1"),
            (r#"{"name": "smac", "interleave": -1}"#, "sampler `smac`: -1 is no share from 0 to 1"),
            (
                r#"{"name": "gp", "candidates": 0}"#,
                "sampler `gp`: invalid value: integer `0`, expected a nonzero usize",
            ),
        ] {
            let error = read(text).expect_err("refused").to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn a_table_without_a_name_is_refused() {
        let error = read(r#"{"startup": 3}"#).expect_err("refused").to_string();
        assert!(error.starts_with("missing field `name`"), "{error}");
    }
}
