//! What ends the trials of a study, as it is written down.

use super::Prospect;
use super::config::PrunerConfig;
use super::set::PrunerSet;
use crate::study::{is_not, wrong_key};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use surefoot_diagnose::indicators::{self, Limits};
use surefoot_diagnose::{Detector, Problem};

/// What a study calls all indicators together.
pub const DIAGNOSIS: &str = "diagnosis";

/// What a study says that has neither pruners nor indicators.
pub const NONE: &str = "none";

/// Which pruners and indicators a study has, and their settings: any combination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PruningConfig {
    /// The pruners. Each may end a trial.
    pub pruners: Vec<PrunerConfig>,
    /// The indicators, by their ids. Each may end a trial.
    pub indicators: Vec<Problem>,
    /// Where the indicators alert.
    pub limits: Limits,
    /// A trial that is among so many best after as many epochs goes on, whatever is said of it,
    /// unless it is no number. A mistake then costs one of the lesser trials and not the best.
    pub protect: usize,
}

impl Default for PruningConfig {
    fn default() -> Self {
        Self {
            pruners: vec![PrunerConfig::Prospect(Prospect::default())],
            indicators: indicators::PROBLEMS.to_vec(),
            limits: Limits::default(),
            protect: 3,
        }
    }
}

/// What cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {message}")]
pub struct PruningConfigError {
    /// The key that was to be set.
    pub key: String,
    /// What is wrong with it.
    pub message: String,
}

impl PruningConfig {
    /// Nothing ends a trial.
    pub fn none() -> PruningConfig {
        PruningConfig { pruners: Vec::new(), indicators: Vec::new(), ..PruningConfig::default() }
    }

    /// Only this pruner, with nothing protected: the rule as others have it.
    pub fn only(pruner: PrunerConfig) -> PruningConfig {
        PruningConfig { pruners: vec![pruner], protect: 0, ..PruningConfig::none() }
    }

    /// Those that a study lists: `diagnosis` for all indicators, the id of one, or a pruner, each by its
    /// name or as a table with its name and settings.
    pub fn listed(entries: &[Value], protect: usize) -> Result<PruningConfig, String> {
        let mut settings = PruningConfig { protect, ..PruningConfig::none() };
        for entry in entries {
            let name = entry.as_str().or_else(|| entry.get("name")?.as_str());
            if name == Some(DIAGNOSIS) {
                settings.indicators = indicators::PROBLEMS.to_vec();
                settings.set_limits(entry)?;
                continue;
            }
            let indicator = |problem: &&Problem| Some(problem.id()) == name;
            if let Some(problem) = indicators::PROBLEMS.iter().find(indicator) {
                settings.indicators.push(problem.clone());
                settings.set_limits(entry)?;
                continue;
            }
            if name == Some(NONE) {
                return Err(format!("`{NONE}` stands alone, not in a list"));
            }
            let pruner: PrunerConfig = serde_json::from_value(entry.clone()).map_err(|error| {
                let problems = indicators::PROBLEMS;
                let ids: Vec<&str> = problems.iter().map(Problem::id).collect();
                match name {
                    Some(name) if !super::NAMES.contains(&name) => format!(
                        "`{name}` ends no trials; there are {DIAGNOSIS}, {} and the indicators {}",
                        super::NAMES.join(", "),
                        ids.join(", ")
                    ),
                    Some(name) => blamed(name, entry, &error.to_string()),
                    None => error.to_string(),
                }
            })?;
            settings.pruners.push(pruner);
        }
        Ok(settings)
    }

    /// Takes the limits of a table that names an indicator, or all of them.
    fn set_limits(&mut self, entry: &Value) -> Result<(), String> {
        for (key, value) in entry.as_object().into_iter().flatten() {
            if key != "name" {
                let number = value.as_f64();
                let number = number.ok_or_else(|| format!("`{key}` must be a number"))?;
                self.limits.set(key, number)?;
            }
        }
        Ok(())
    }

    /// The same with what depends on whether the sampler learns from trials, where it is not set.
    #[must_use]
    pub fn for_sampler(mut self, learns: bool) -> PruningConfig {
        for pruner in &mut self.pruners {
            if let PrunerConfig::Prospect(prospect) = pruner {
                prospect.swing.get_or_insert(Prospect::swing_for(learns));
            }
        }
        self
    }

    /// The pruners, ready to judge.
    pub fn pruner_set(&self) -> PrunerSet {
        PrunerSet {
            pruners: self.pruners.clone(),
            ends_non_finite: !self.pruners.is_empty() || self.indicators.contains(&Problem::AGV),
            protect: self.protect,
        }
    }

    /// A new set of the indicators, to diagnose one trial with.
    pub fn detectors(&self) -> Vec<Box<dyn Detector>> {
        let mut detectors = indicators::all(&self.limits);
        detectors.retain(|detector| self.indicators.contains(&detector.problem()));
        detectors
    }

    /// The same with a number set: `protect`, a limit of the indicators by its name (`plc`), or a setting
    /// of one of the pruners (`prospect.keep`).
    pub fn with(&self, key: &str, value: f64) -> Result<PruningConfig, PruningConfigError> {
        let fail = |message: String| PruningConfigError { key: key.to_owned(), message };
        let mut changed = self.clone();
        match key.split_once('.') {
            None if key == "protect" => {
                let count = value >= 0.0 && value.fract() == 0.0;
                if !count {
                    return Err(fail(format!("it is a count, not {value}")));
                }
                changed.protect = value as usize;
            }
            None => changed.limits.set(key, value).map_err(fail)?,
            Some((name, field)) => {
                use super::Pruner;
                let found = changed.pruners.iter_mut().find(|s| s.name() == name);
                let pruner = found.ok_or_else(|| {
                    let names: Vec<&str> = self.pruners.iter().map(|s| s.name()).collect();
                    fail(match names.as_slice() {
                        [] => format!(
                            "there is no pruner here; the limits of indicators have names without a dot, such as `{}`",
                            Problem::PLC.id()
                        ),
                        _ => format!(
                            "there is no pruner `{name}` here, only {}",
                            names.join(", ")
                        ),
                    })
                })?;
                *pruner = set(*pruner, field, value).map_err(fail)?;
            }
        }
        Ok(changed)
    }
}

/// What is wrong with the table of a pruner, with its name and the key to which it belongs.
fn blamed(name: &str, entry: &Value, message: &str) -> String {
    let read = |table: Value| serde_json::from_value::<PrunerConfig>(table).is_ok();
    let whose = format!("pruner `{name}`: ");
    let message = match wrong_key(entry, message, read) {
        Some((_, message)) => message,
        None => message.trim_start_matches(&whose).to_owned(),
    };
    format!("{whose}{message}")
}

/// Goes by way of JSON, which knows the names of the fields and which of them are counts.
fn set(pruner: PrunerConfig, field: &str, value: f64) -> Result<PrunerConfig, String> {
    let mut table = serde_json::to_value(pruner).map_err(|e| e.to_string())?;
    let number = if value.fract() == 0.0 && value.abs() < 2f64.powi(53) {
        Value::from(value as i64)
    } else {
        Value::from(value)
    };
    if field == "name" {
        return Err("the name is not a setting".to_owned());
    }
    table[field] = number.clone();
    serde_json::from_value(table).map_err(|error| {
        let message = error.to_string();
        match message.starts_with("invalid") {
            true => format!("it is {}", is_not(&number, &message)),
            false => message,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_be_written_and_read() {
        let json = serde_json::to_string(&PruningConfig::default()).unwrap();
        assert_eq!(serde_json::from_str::<PruningConfig>(&json).unwrap(), PruningConfig::default());
        assert_eq!(serde_json::from_str::<PruningConfig>("{}").unwrap(), PruningConfig::default());
        assert!(serde_json::from_str::<PruningConfig>(r#"{"stopers": []}"#).is_err());
    }

    #[test]
    fn a_list_of_names_and_tables_is_a_combination() {
        let entries = [
            Value::from("erg"),
            serde_json::json!({"name": "nmg", "gain": 0.25}),
            serde_json::json!({"name": "median", "trials": 9}),
        ];
        let settings = PruningConfig::listed(&entries, 2).unwrap();
        assert_eq!(settings.indicators, [Problem::ERG, Problem::NMG]);
        assert_eq!((settings.limits.gain, settings.protect), (0.25, 2));
        assert!(
            matches!(settings.pruners[..], [PrunerConfig::Median(median)] if median.trials == 9)
        );
        let all = PruningConfig::listed(&[Value::from(DIAGNOSIS), Value::from("prospect")], 3);
        assert_eq!(all, Ok(PruningConfig::default()));
    }

    #[test]
    fn a_list_with_what_is_none_is_refused() {
        let error = |entry: Value| PruningConfig::listed(&[entry], 0).unwrap_err();
        assert!(error(Value::from("mediam")).contains("there are diagnosis, prospect, median"));
        assert!(error(serde_json::json!({"name": "diagnosis", "plk": 1})).contains("plk"));
        let text = error(serde_json::json!({"name": "median", "from": "x"}));
        assert_eq!(text, "pruner `median`: `from` is \"x\", not a number");
        let text = error(serde_json::json!({"name": "median", "trials": -3}));
        assert_eq!(text, "pruner `median`: `trials` is -3, not a whole number, 0 or more");
        let text = error(serde_json::json!({"name": "median", "from": 7}));
        assert_eq!(text, "pruner `median`: `from` is 7, not a share from 0 to 1");
        let text = error(serde_json::json!({"name": "median", "keep": 7}));
        assert!(text.starts_with("pruner `median`: unknown field `keep`"), "{text}");
    }

    #[test]
    fn numbers_are_set_by_their_names() {
        let settings = PruningConfig::default();
        assert_eq!(settings.with("protect", 5.0).unwrap().protect, 5);
        assert_eq!(settings.with("plc", 0.5).unwrap().limits.plc, 0.5);
        let narrower = settings.with("prospect.keep", 0.1).unwrap();
        let more = narrower.with("prospect.trials", 7.0).unwrap();
        let PrunerConfig::Prospect(prospect) = more.pruners[0] else {
            panic!("{more:?}");
        };
        assert_eq!((prospect.keep, prospect.trials), (0.1, 7));
    }

    #[test]
    fn the_swing_depends_on_the_sampler_unless_it_is_set() {
        let swing = |settings: PruningConfig| match settings.pruners[0] {
            PrunerConfig::Prospect(prospect) => prospect.swing,
            _ => panic!("{settings:?}"),
        };
        let default = PruningConfig::default();
        assert_eq!(swing(default.clone().for_sampler(true)), Some(1.0));
        assert_eq!(swing(default.clone().for_sampler(false)), Some(3.0));
        let set = default.with("prospect.swing", 2.0).unwrap();
        assert_eq!(swing(set.for_sampler(true)), Some(2.0));
    }

    #[test]
    fn what_cannot_be_set_is_said() {
        let error = |key: &str, value: f64| {
            PruningConfig::default().with(key, value).unwrap_err().to_string()
        };
        assert!(error("prospect.kep", 1.0).contains("expected one of `keep`"));
        assert!(error("median.from", 1.0).contains("only prospect"));
        assert!(error("plk", 1.0).contains("there are late"));
        assert!(error("protect", 0.5).contains("count"));
        assert_eq!(
            error("prospect.trials", 0.5),
            "`prospect.trials`: it is 0.5, not a whole number, 0 or more"
        );
        let indicator = PruningConfig::listed(&[Value::from("plc")], 3).unwrap();
        let error = indicator.with("plc.limit", 1.0).unwrap_err().to_string();
        assert!(error.contains("there is no pruner here; "), "{error}");
    }

    #[test]
    fn only_the_indicators_that_are_named_look() {
        let settings = PruningConfig {
            indicators: vec![Problem::NMG, Problem::AGV],
            ..PruningConfig::default()
        };
        let problems: Vec<_> = settings.detectors().iter().map(|d| d.problem()).collect();
        assert_eq!(problems, [Problem::AGV, Problem::NMG]);
    }
}
