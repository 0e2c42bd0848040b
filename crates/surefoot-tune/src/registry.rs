//! Samplers and pruners by name, with options read from a study.
//!
//! A study names a component (`sampler = "tpe"`) or gives a table with its name and the options that
//! differ from the defaults (`pruner = { name = "median", warmup = 0.5 }`).

use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A trait whose implementations studies choose by name: `dyn Sampler`, `dyn Pruner`.
pub trait Component: Send + Sync + 'static {
    /// The word for one of them in messages.
    const KIND: &'static str;

    /// All implementations, in the order in which messages list them.
    fn registered() -> &'static [Registered<Self>];

    /// The name in studies.
    fn component_name(&self) -> &'static str;
}

/// Builds one implementation from its options.
pub struct Registered<T: ?Sized>(
    pub(crate) fn(Map<String, Value>) -> Result<Configured<T>, serde_json::Error>,
);

/// A component together with its options.
pub struct Configured<T: ?Sized> {
    component: Arc<T>,
    options: Map<String, Value>,
}

/// A component that cannot be built as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// The option at fault, if it is a single one.
    pub option: Option<String>,
    /// Names the component, the option, and the values it takes.
    pub message: String,
}

impl<T: Component + ?Sized> Configured<T> {
    pub(crate) fn from_parts(component: Arc<T>, options: &impl Serialize) -> Configured<T> {
        let options = match serde_json::to_value(options) {
            Ok(Value::Object(options)) => options,
            _ => Map::new(),
        };
        Configured { component, options }
    }

    /// All components with their default options.
    pub fn all() -> impl Iterator<Item = Configured<T>> {
        T::registered().iter().filter_map(|entry| entry.0(Map::new()).ok())
    }

    /// The names of all components.
    pub fn names() -> Vec<&'static str> {
        Self::all().map(|config| config.component_name()).collect()
    }

    /// The component of a name, with its default options.
    pub fn named(name: &str) -> Result<Configured<T>, ConfigError> {
        Self::all().find(|config| config.component_name() == name).ok_or_else(|| {
            let available = Self::names().join(", ");
            let message = format!("unknown {} `{name}`; available: {available}", T::KIND);
            ConfigError { option: None, message }
        })
    }

    /// Reads a name, or a table with a `name` and options.
    pub fn from_value(value: &Value) -> Result<Configured<T>, ConfigError> {
        let (name, options) = match value {
            Value::String(name) => (Some(name.as_str()), Map::new()),
            Value::Object(table) => {
                let mut options = table.clone();
                options.remove("name");
                (table.get("name").and_then(Value::as_str), options)
            }
            _ => (None, Map::new()),
        };
        match name {
            Some(name) => Self::named(name)?.with(options),
            None => Err(ConfigError {
                option: None,
                message: format!("a {0} is a name, or a table with a `name` and options", T::KIND),
            }),
        }
    }

    /// The value of an option.
    pub fn option(&self, key: &str) -> Option<&Value> {
        self.options.get(key)
    }

    /// Returns the component with some options changed.
    pub fn with(&self, changes: Map<String, Value>) -> Result<Configured<T>, ConfigError> {
        let fail = |key: Option<&str>, message: String| ConfigError {
            option: key.map(str::to_owned),
            message: format!("{} `{}`: {message}", T::KIND, self.component_name()),
        };
        for (key, value) in &changes {
            if !self.options.contains_key(key) {
                let keys: Vec<&str> = self.options.keys().map(String::as_str).collect();
                let available = match keys.as_slice() {
                    [] => "it has no options".to_owned(),
                    keys => format!("available: {}", keys.join(", ")),
                };
                return Err(fail(Some(key), format!("unknown key `{key}`; {available}")));
            }
            if let Err(error) = self.rebuilt([(key.clone(), value.clone())].into_iter().collect()) {
                let message = format!("`{key}` {}, not {value}", requirement(&error.to_string()));
                return Err(fail(Some(key), message));
            }
        }
        let mut options = self.options.clone();
        options.extend(changes);
        self.rebuilt(options).map_err(|error| fail(None, error.to_string()))
    }

    fn rebuilt(&self, options: Map<String, Value>) -> Result<Configured<T>, serde_json::Error> {
        let name = self.component_name();
        let is_same = |entry: &&Registered<T>| {
            entry.0(Map::new()).is_ok_and(|config| config.component_name() == name)
        };
        match T::registered().iter().find(is_same) {
            Some(entry) => entry.0(options),
            None => Err(serde_json::Error::custom(format!("{name} is not registered"))),
        }
    }
}

/// The requirement that a serde message states, in plain words.
fn requirement(message: &str) -> &str {
    let words = [
        ("expected a nonzero", "must be an integer of at least 1"),
        ("expected u", "must be an integer of at least 0"),
        ("expected f64", "must be a number"),
        ("expected a boolean", "must be true or false"),
    ];
    let known = words.iter().find(|(part, _)| message.contains(part));
    known.map_or(message, |(_, words)| words)
}

/// Defines `deserialize_with` functions for numbers in a range.
macro_rules! ranges {
    ($($(#[$doc:meta])* $name:ident: $requirement:literal, $test:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
            let number = f64::deserialize(deserializer)?;
            let test: fn(f64) -> bool = $test;
            test(number).then_some(number).ok_or_else(|| D::Error::custom($requirement))
        }
    )*};
}

ranges! {
    /// From 0 to 1.
    fraction: "must be a fraction from 0 to 1", |x| (0.0..=1.0).contains(&x);
    /// Above 0, up to 1.
    positive_fraction: "must be a fraction above 0, up to 1", |x| x > 0.0 && x <= 1.0;
    /// Finite and not negative.
    non_negative: "must be a number of at least 0", |x| x >= 0.0 && x.is_finite();
    /// Finite and above 1.
    above_one: "must be a number above 1", |x| x > 1.0 && x.is_finite();
}

impl<T: ?Sized> Clone for Configured<T> {
    fn clone(&self) -> Self {
        Configured { component: Arc::clone(&self.component), options: self.options.clone() }
    }
}

impl<T: ?Sized> Deref for Configured<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.component
    }
}

impl<T: Component + ?Sized> PartialEq for Configured<T> {
    fn eq(&self, other: &Self) -> bool {
        self.component_name() == other.component_name() && self.options == other.options
    }
}

impl<T: Component + ?Sized> fmt::Debug for Configured<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.component_name(), self.options)
    }
}

impl<T: Component + ?Sized> Serialize for Configured<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.options.len() + 1))?;
        map.serialize_entry("name", self.component_name())?;
        for (key, value) in &self.options {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de, T: Component + ?Sized> Deserialize<'de> for Configured<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Bounds of the options of a registered component.
pub(crate) trait Options: Default + Serialize + DeserializeOwned + 'static {}

impl<T: Default + Serialize + DeserializeOwned + 'static> Options for T {}

#[cfg(test)]
mod tests {
    use crate::pruner::PrunerConfig;
    use crate::sampler::SamplerConfig;

    fn sampler(json: &str) -> Result<SamplerConfig, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    fn pruner(json: &str) -> Result<PrunerConfig, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn components_survive_a_round_trip_through_json() {
        for config in SamplerConfig::all() {
            let json = serde_json::to_string(&config).expect("JSON");
            assert_eq!(sampler(&json), Ok(config));
        }
        for config in PrunerConfig::all() {
            let json = serde_json::to_string(&config).expect("JSON");
            assert_eq!(pruner(&json), Ok(config));
        }
    }

    #[test]
    fn a_name_and_an_empty_table_are_the_same() {
        assert_eq!(pruner(r#""median""#), pruner(r#"{"name": "median"}"#));
        let changed = pruner(r#"{"name": "median", "n_startup_trials": 9}"#).expect("a pruner");
        assert_eq!(changed.option("n_startup_trials"), Some(&9.into()));
    }

    #[test]
    fn names_are_unique() {
        for mut names in [SamplerConfig::names(), PrunerConfig::names()] {
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }

    #[test]
    fn errors_name_the_key_and_the_available_ones() {
        for (json, message) in [
            (r#""hill""#, "unknown sampler `hill`; available: random, sobol, tpe, gp, smac"),
            (r#"{"name": "tpe", "gama": 3}"#, "sampler `tpe`: unknown key `gama`; available: "),
            (r#"{"name": "sobol", "x": 3}"#, "sampler `sobol`: unknown key `x`; it has no options"),
            (r#"{"name": "tpe", "gamma": 1.5}"#, "`gamma` must be a fraction from 0 to 1, not 1.5"),
            (r#"{"name": "gp", "n_candidates": 0}"#, "must be an integer of at least 1, not 0"),
            (r#"{"startup": 3}"#, "a sampler is a name, or a table with a `name` and options"),
        ] {
            let error = sampler(json).expect_err("refused");
            assert!(error.contains(message), "{error}");
        }
        for (json, message) in [
            (r#""medain""#, "unknown pruner `medain`; available: prospect, median, "),
            (
                r#"{"name": "median", "warmup": 7}"#,
                "`warmup` must be a fraction from 0 to 1, not 7",
            ),
            (r#"{"name": "median", "warmup": "x"}"#, "`warmup` must be a number, not \"x\""),
            (r#"{"name": "prospect", "z": -1}"#, "`z` must be a number of at least 0, not -1"),
            (r#"{"name": "asha", "reduction_factor": 1}"#, "must be a number above 1, not 1"),
            (r#"{"name": "asha", "first_rung": 0}"#, "must be a fraction above 0, up to 1, not 0"),
            ("5", "a pruner is a name, or a table"),
        ] {
            let error = pruner(json).expect_err("refused");
            assert!(error.contains(message), "{error}");
        }
    }
}
