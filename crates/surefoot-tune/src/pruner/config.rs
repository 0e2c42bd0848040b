//! The `pruner` and `protect` keys of a study: pruners, indicators and their limits.

use super::{Prospect, PrunerConfig, PrunerSet};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use surefoot_diagnose::indicators::{self, Limits};
use surefoot_diagnose::{Detector, Problem};

/// The word in a study for all indicators.
pub const DIAGNOSIS: &str = "diagnosis";

/// The word in a study for no pruners and no indicators.
pub const NONE: &str = "none";

/// Pruners and indicators of a study, in any combination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PruningConfig {
    /// Pruners, each of which may stop a trial.
    pub pruners: Vec<PrunerConfig>,
    /// Indicators, each of which may stop a trial.
    pub indicators: Vec<Problem>,
    /// Thresholds of the indicators.
    pub limits: Limits,
    /// The best trials at each epoch, this many, are never pruned unless their cost is NaN or
    /// infinite. A wrong decision then costs a mediocre trial instead of the best one.
    pub protect: usize,
}

impl Default for PruningConfig {
    fn default() -> Self {
        Self {
            pruners: vec![PrunerConfig::new(Prospect::default())],
            indicators: indicators::PROBLEMS.to_vec(),
            limits: Limits::default(),
            protect: 3,
        }
    }
}

/// An invalid change of a [`PruningConfig`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {message}")]
pub struct PruningConfigError {
    /// The key that was set.
    pub key: String,
    /// The problem.
    pub message: String,
}

impl PruningConfig {
    /// No pruners and no indicators.
    pub fn none() -> PruningConfig {
        PruningConfig { pruners: Vec::new(), indicators: Vec::new(), ..PruningConfig::default() }
    }

    /// One pruner without protection: the rule as published.
    pub fn only(pruner: PrunerConfig) -> PruningConfig {
        PruningConfig { pruners: vec![pruner], protect: 0, ..PruningConfig::none() }
    }

    /// The indicators as BTTackler published them, without pruners and protection.
    pub fn bttackler() -> PruningConfig {
        PruningConfig {
            indicators: indicators::PROBLEMS.to_vec(),
            limits: Limits::bttackler(),
            protect: 0,
            ..PruningConfig::none()
        }
    }

    /// Replaces pruners and indicators by the list of a study: `diagnosis` for all indicators, the id of an
    /// indicator, or a pruner, each as a name or as a table with a name and options.
    pub fn listed(self, entries: &[Value]) -> Result<PruningConfig, String> {
        let mut config = PruningConfig { pruners: Vec::new(), indicators: Vec::new(), ..self };
        for entry in entries {
            let name = entry.as_str().or_else(|| entry.get("name")?.as_str()).unwrap_or_default();
            let indicator = indicators::PROBLEMS.into_iter().find(|problem| problem.id() == name);
            match (name, indicator) {
                (DIAGNOSIS, _) => config.indicators = indicators::PROBLEMS.to_vec(),
                (_, Some(problem)) => config.indicators.push(problem),
                (NONE, _) => return Err(format!("`{NONE}` must stand alone, not in a list")),
                (_, None) => {
                    config.pruners.push(pruner(name, entry)?);
                    continue;
                }
            }
            config.set_limits(entry)?;
        }
        Ok(config)
    }

    /// Takes the limits from a table that names an indicator or all of them.
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

    /// Fills in the defaults that depend on the sampler.
    #[must_use]
    pub fn for_sampler(mut self, learns: bool) -> PruningConfig {
        for pruner in &mut self.pruners {
            if pruner.option("noise_factor") == Some(&Value::Null) {
                let factor = Prospect::default_noise_factor(learns).into();
                let change = Map::from_iter([("noise_factor".to_owned(), factor)]);
                *pruner = pruner.with(change).unwrap_or_else(|_| pruner.clone());
            }
        }
        self
    }

    /// The pruners, ready to decide.
    pub fn pruner_set(&self) -> PrunerSet {
        PrunerSet {
            pruners: self.pruners.clone(),
            prunes_non_finite: !self.pruners.is_empty() || self.indicators.contains(&Problem::AGV),
            protect: self.protect,
        }
    }

    /// New instances of the indicators, to diagnose one trial with.
    pub fn detectors(&self) -> Vec<Box<dyn Detector>> {
        let mut detectors = indicators::all(&self.limits);
        detectors.retain(|detector| self.indicators.contains(&detector.problem()));
        detectors
    }

    /// Returns a copy with one number changed: `protect`, a limit of the indicators (`plc`), or an
    /// option of a pruner (`prospect.quantile`).
    pub fn with(&self, key: &str, value: f64) -> Result<PruningConfig, PruningConfigError> {
        let fail = |message: String| PruningConfigError { key: key.to_owned(), message };
        let is_whole = value.fract() == 0.0 && value.abs() < 2f64.powi(53);
        let mut changed = self.clone();
        match key.split_once('.') {
            None if key == "protect" => {
                if !is_whole || value < 0.0 {
                    return Err(fail(format!("must be an integer of at least 0, not {value}")));
                }
                changed.protect = value as usize;
            }
            None => changed.limits.set(key, value).map_err(fail)?,
            Some((name, option)) => {
                let Some(pruner) = changed.pruners.iter_mut().find(|p| p.name() == name) else {
                    let names: Vec<&str> = self.pruners.iter().map(|p| p.name()).collect();
                    return Err(fail(match names.as_slice() {
                        [] => format!(
                            "no pruner is active; limits of indicators have no dot, such as `{}`",
                            Problem::PLC.id()
                        ),
                        _ => format!("`{name}` is not active; active: {}", names.join(", ")),
                    }));
                };
                let number = if is_whole { (value as i64).into() } else { value.into() };
                let change = Map::from_iter([(option.to_owned(), number)]);
                *pruner = pruner.with(change).map_err(|error| fail(error.message))?;
            }
        }
        Ok(changed)
    }
}

fn pruner(name: &str, entry: &Value) -> Result<PrunerConfig, String> {
    PrunerConfig::from_value(entry).map_err(|error| {
        if name.is_empty() || PrunerConfig::names().contains(&name) {
            return error.message;
        }
        let problems = indicators::PROBLEMS;
        let ids: Vec<&str> = problems.iter().map(Problem::id).collect();
        format!(
            "unknown pruner `{name}`; available: {DIAGNOSIS}, {} and the indicators {}",
            PrunerConfig::names().join(", "),
            ids.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_defaults_survive_a_round_trip_through_json() {
        let json = serde_json::to_string(&PruningConfig::default()).unwrap();
        let default = PruningConfig::default();
        assert_eq!(serde_json::from_str::<PruningConfig>(&json).unwrap(), default);
        assert_eq!(serde_json::from_str::<PruningConfig>("{}").unwrap(), default);
        assert!(serde_json::from_str::<PruningConfig>(r#"{"pruner": []}"#).is_err());
    }

    #[test]
    fn a_list_mixes_pruners_and_indicators() {
        let entries = [
            Value::from("erg"),
            json!({"name": "nmg", "gain": 0.25}),
            json!({"name": "median", "n_startup_trials": 9}),
        ];
        let config =
            PruningConfig { protect: 2, ..PruningConfig::none() }.listed(&entries).unwrap();
        assert_eq!(config.indicators, [Problem::ERG, Problem::NMG]);
        assert_eq!((config.limits.gain, config.protect), (0.25, 2));
        assert_eq!(config.pruners[0].name(), "median");
        assert_eq!(config.pruners[0].option("n_startup_trials"), Some(&9.into()));
        let all = PruningConfig::none().listed(&[Value::from(DIAGNOSIS), Value::from("prospect")]);
        assert_eq!(all, Ok(PruningConfig::default()));
    }

    #[test]
    fn invalid_entries_are_refused() {
        let error = |entry: Value| PruningConfig::none().listed(&[entry]).unwrap_err();
        let text = error(Value::from("mediam"));
        assert!(text.starts_with("unknown pruner `mediam`; available: diagnosis, prospect, "));
        assert!(error(json!({"name": "diagnosis", "plk": 1})).contains("plk"));
        assert_eq!(error(Value::from("none")), "`none` must stand alone, not in a list");
        let text = error(json!({"name": "median", "n_startup_trials": -3}));
        let expected =
            "pruner `median`: `n_startup_trials` must be an integer of at least 0, not -3";
        assert_eq!(text, expected);
        assert!(error(json!(7)).starts_with("a pruner is a name"));
    }

    #[test]
    fn numbers_are_set_by_key() {
        let config = PruningConfig::default();
        assert_eq!(config.with("protect", 5.0).unwrap().protect, 5);
        assert_eq!(config.with("plc", 0.5).unwrap().limits.plc, 0.5);
        let changed = config.with("prospect.quantile", 0.1).unwrap();
        let changed = changed.with("prospect.n_startup_trials", 7.0).unwrap();
        let expected = Prospect { quantile: 0.1, n_startup_trials: 7, ..Prospect::default() };
        assert_eq!(changed.pruners[0], PrunerConfig::new(expected));
    }

    #[test]
    fn the_noise_factor_depends_on_the_sampler_unless_it_is_set() {
        let factor = |config: PruningConfig| config.pruners[0].option("noise_factor").cloned();
        let default = PruningConfig::default();
        assert_eq!(factor(default.clone().for_sampler(true)), Some(1.0.into()));
        assert_eq!(factor(default.clone().for_sampler(false)), Some(3.0.into()));
        let set = default.with("prospect.noise_factor", 2.5).unwrap();
        assert_eq!(factor(set.for_sampler(true)), Some(2.5.into()));
    }

    #[test]
    fn invalid_changes_name_the_allowed_keys() {
        let error = |key: &str, value: f64| {
            PruningConfig::default().with(key, value).unwrap_err().to_string()
        };
        assert!(error("prospect.quantil", 1.0).contains("unknown key `quantil`; available: "));
        assert!(error("median.warmup", 1.0).contains("`median` is not active; active: prospect"));
        assert!(error("plk", 1.0).contains("plk"));
        assert!(error("protect", 0.5).contains("an integer of at least 0, not 0.5"));
        let indicator = PruningConfig::default().listed(&[Value::from("plc")]).unwrap();
        let error = indicator.with("plc.limit", 1.0).unwrap_err().to_string();
        assert!(error.contains("no pruner is active"), "{error}");
    }

    #[test]
    fn only_listed_indicators_are_built() {
        let indicators = vec![Problem::NMG, Problem::AGV];
        let config = PruningConfig { indicators, ..PruningConfig::default() };
        let problems: Vec<_> = config.detectors().iter().map(|d| d.problem()).collect();
        assert_eq!(problems, [Problem::AGV, Problem::NMG]);
    }
}
