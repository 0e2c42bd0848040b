//! Typed access to the JSON configuration of a Keras layer.

use std::cell::RefCell;

use serde_json::{Map, Value};

use super::{KerasErrorKind, Result, Version};
use crate::Initializer;
use crate::language::{Fields, Record, Rule, Term};

/// The configuration of one Keras layer. `null` counts as absent.
#[derive(Clone, Copy)]
pub(crate) struct LayerConfig<'a> {
    pub(crate) class: &'a str,
    /// Name of the layer in the plan.
    pub(crate) layer: &'a str,
    pub(super) version: Version,
    pub(super) values: &'a Map<String, Value>,
    /// Number of dimensions of the input, without the batch, if known.
    pub(super) rank: Option<usize>,
    /// Options that are ignored, one sentence each.
    pub(super) warnings: &'a RefCell<Vec<String>>,
}

impl<'a> LayerConfig<'a> {
    /// Fills a layer with the values of all keys that Keras has under the same name.
    pub(crate) fn read<R: Record>(&self, mut layer: R) -> Result<R> {
        let mut reader = KerasReader { config: self, error: None };
        layer.fields(&mut reader);
        match reader.error {
            Some(error) => Err(error),
            None => Ok(layer),
        }
    }

    /// Fills a normalization layer. Here these always start as the identity.
    pub(crate) fn read_norm<R: Record>(&self, layer: R) -> Result<R> {
        self.last_axis()?;
        for (key, usual) in [
            ("beta_initializer", Initializer::Zeros),
            ("gamma_initializer", Initializer::Ones),
            ("moving_mean_initializer", Initializer::Zeros),
            ("moving_variance_initializer", Initializer::Ones),
        ] {
            if self.get(key).is_some() && self.known_initializer(key) != Some(usual) {
                self.ignore(&[key]);
            }
        }
        self.read(layer)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>> {
        self.typed(key, "a string", Value::as_str)
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", Value::as_bool)
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<f64>> {
        Ok(self.typed(key, "a number", Value::as_f64)?.map(tidy))
    }

    pub(super) fn number_or(&self, key: &str, default: f64) -> Result<f64> {
        Ok(self.number(key)?.unwrap_or(default))
    }

    /// One number for all directions, or a list of `N`.
    pub(crate) fn sizes<const N: usize>(&self, key: &str) -> Result<Option<[usize; N]>> {
        let expected =
            if N == 1 { "a whole number above zero" } else { "whole numbers above zero" };
        self.typed(key, expected, |value| match value {
            Value::Array(list) => {
                let list: Vec<usize> = list.iter().map(positive).collect::<Option<_>>()?;
                list.try_into().ok()
            }
            single => positive(single).map(|size| [size; N]),
        })
    }

    /// A list of whole numbers.
    pub(crate) fn list(&self, key: &str) -> Result<Option<Vec<i64>>> {
        self.typed(key, "a list of whole numbers", |value| {
            value.as_array()?.iter().map(Value::as_i64).collect()
        })
    }

    /// Rejects every value of `key` but `allowed`, which must be the default of Keras.
    pub(crate) fn only(&self, key: &str, allowed: impl Into<Value>) -> Result<()> {
        let allowed = allowed.into();
        match self.get(key) {
            Some(value) if *value != allowed => {
                Err(self.unsupported(key, &format!("only {allowed}")))
            }
            _ => Ok(()),
        }
    }

    /// Rejects every value of `key` but `null`.
    pub(crate) fn absent(&self, key: &str) -> Result<()> {
        self.only(key, Value::Null)
    }

    pub(crate) fn channels_last(&self) -> Result<()> {
        self.only("data_format", "channels_last")
    }

    /// Warns about keys that only matter in training and have no counterpart here.
    pub(crate) fn ignore(&self, keys: &[&str]) {
        for key in keys {
            if let Some(value) = self.get(key) {
                self.warn(format!("`{key}` {} is not supported and is ignored", short(value)));
            }
        }
    }

    pub(super) fn warn(&self, warning: String) {
        self.warnings.borrow_mut().push(format!("layer `{}`: {warning}", self.layer));
    }

    /// The error for a value of `key` that would change what the layer computes.
    pub(crate) fn unsupported(&self, key: &str, supported: &str) -> KerasErrorKind {
        let value = self.values.get(key).map(short).unwrap_or_default();
        self.refuse(format!("its `{key}` is {value}; supported: {supported}"))
    }

    /// A configuration inside this one.
    pub(super) fn inner(&self, class: &'a str, values: &'a Map<String, Value>) -> Self {
        Self { class, values, ..*self }
    }

    fn typed<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        self.get(key)
            .map(|value| {
                read(value).ok_or_else(|| {
                    self.wrong(key, &format!("is {}, expected {expected}", short(value)))
                })
            })
            .transpose()
    }

    fn wrong(&self, key: &str, reason: &str) -> KerasErrorKind {
        KerasErrorKind::damaged(format!("layer `{}`", self.layer), format!("`{key}` {reason}"))
    }

    /// The error for a layer that cannot be represented.
    pub(super) fn refuse(&self, reason: impl Into<String>) -> KerasErrorKind {
        KerasErrorKind::unsupported(self.layer, reason)
    }
}

/// Fills the keys of a layer from its Keras configuration. The first error is kept.
struct KerasReader<'c> {
    config: &'c LayerConfig<'c>,
    error: Option<KerasErrorKind>,
}

impl KerasReader<'_> {
    fn value<T: Term>(&mut self, key: &str, rule: Rule<T>) -> Option<T> {
        if self.error.is_some() {
            return None;
        }
        let read = T::from_keras(self.config, key).and_then(|value| {
            if let Some(Err(requirement)) = value.as_ref().map(rule) {
                return Err(self.config.unsupported(key, &format!("it must {requirement}")));
            }
            Ok(value)
        });
        read.unwrap_or_else(|error| {
            self.error = Some(error);
            None
        })
    }
}

impl<'a> Fields<'a> for KerasReader<'_> {
    fn required<T: Term>(&mut self, key: &'static str, value: &'a mut T, rule: Rule<T>) {
        match self.value(key, rule) {
            Some(read) => *value = read,
            None if self.error.is_none() && self.config.get(key).is_none() => {
                self.error = Some(self.config.wrong(key, "is missing"));
            }
            None => {}
        }
    }

    fn optional<T: Term>(&mut self, key: &'static str, value: &'a mut T, rule: Rule<T>) {
        if let Some(read) = self.value(key, rule) {
            *value = read;
        }
    }

    fn maybe<T: Term>(&mut self, key: &'static str, value: &'a mut Option<T>, rule: Rule<T>) {
        if let Some(read) = self.value(key, rule) {
            *value = Some(read);
        }
    }
}

fn positive(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok().filter(|&size| size > 0)
}

/// A value, shortened to fit into a message.
pub(super) fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Class and configuration of an object as Keras writes it: `{"class_name": .., "config": {..}}`,
/// a function `{"class_name": "function", "config": "name"}`, or only the name.
pub(super) fn object(value: &Value) -> Option<(&str, Option<&Map<String, Value>>)> {
    match value {
        Value::String(name) => Some((name, None)),
        Value::Object(fields) => {
            let class = fields.get("class_name")?.as_str()?;
            match fields.get("config") {
                Some(Value::String(function)) => Some((function, None)),
                config => Some((unregistered(class), config.and_then(Value::as_object))),
            }
        }
        _ => None,
    }
}

/// Removes the package prefix with which Keras 2 registered its own optimizers and initializers.
fn unregistered(class: &str) -> &str {
    ["Custom>", "Keras>"].iter().find_map(|package| class.strip_prefix(package)).unwrap_or(class)
}

/// Returns the shortest number with the same single-precision value. Keras holds many options in
/// single precision and writes them in double: 0.001 becomes 0.0010000000474974513.
pub(super) fn tidy(value: f64) -> f64 {
    let single = value as f32;
    // The JSON parser may be off by a few units in the last place.
    if (f64::from(single) - value).abs() <= 1e-15 * value.abs() {
        single.to_string().parse().unwrap_or(value)
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config<'a>(values: &'a Value, warnings: &'a RefCell<Vec<String>>) -> LayerConfig<'a> {
        LayerConfig {
            class: "Dense",
            layer: "dense",
            version: Version::Three,
            values: values.as_object().unwrap(),
            rank: None,
            warnings,
        }
    }

    #[test]
    fn single_precision_numbers_are_shortened() {
        assert_eq!(tidy(0.001_000_000_047_497_451_3), 0.001);
        assert_eq!(tidy(0.029_999_999_329_447_743), 0.03);
        assert_eq!(tidy(0.001), 0.001);
        assert_eq!(tidy(1e300), 1e300);
        assert_eq!(tidy(3.0), 3.0);
    }

    #[test]
    fn sizes_are_one_number_or_a_list() {
        let warnings = RefCell::default();
        let values = json!({"a": 3, "b": [1, 2], "c": [1], "d": 0, "e": null});
        let config = config(&values, &warnings);
        assert_eq!(config.sizes("a").unwrap(), Some([3, 3]));
        assert_eq!(config.sizes("b").unwrap(), Some([1, 2]));
        assert_eq!(config.sizes("c").unwrap(), Some([1]));
        assert_eq!(config.sizes::<2>("e").unwrap(), None);
        assert!(config.sizes::<2>("c").is_err());
        assert!(config.sizes::<2>("d").is_err());
    }

    #[test]
    fn a_wrong_type_is_reported_with_its_layer() {
        let warnings = RefCell::default();
        let values = json!({"units": "many"});
        let error = config(&values, &warnings).sizes::<1>("units").unwrap_err();
        assert_eq!(
            error.to_string(),
            "is damaged: layer `dense`: `units` is \"many\", expected a whole number above zero"
        );
        let error = config(&values, &warnings).read(crate::Conv1d::new(1, 1)).unwrap_err();
        assert!(error.to_string().ends_with("`filters` is missing"));
    }

    #[test]
    fn objects_are_read_in_every_form() {
        let named = json!("relu");
        let function = json!({"class_name": "function", "config": "mine", "module": "builtins"});
        let class = json!({"class_name": "Custom>Adam", "config": {"beta_1": 0.9}});
        assert_eq!(object(&named), Some(("relu", None)));
        assert_eq!(object(&function), Some(("mine", None)));
        assert_eq!(object(&class), Some(("Adam", class["config"].as_object())));
        assert_eq!(object(&json!(3)), None);
    }
}
