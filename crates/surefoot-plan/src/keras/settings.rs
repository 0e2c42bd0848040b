//! Typed access to the JSON that configures a layer.

use serde_json::{Map, Value};

use super::{Fault, Version};

/// The configuration of one layer. `null` counts as absent throughout.
#[derive(Clone, Copy)]
pub(super) struct Settings<'a> {
    /// The layer's name, for errors.
    pub(super) layer: &'a str,
    pub(super) version: Version,
    pub(super) values: &'a Map<String, Value>,
}

impl<'a> Settings<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, Fault> {
        self.typed(key, "a string", Value::as_str)
    }

    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool, Fault> {
        Ok(self.typed(key, "true or false", Value::as_bool)?.unwrap_or(default))
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, Fault> {
        Ok(self.typed(key, "a number", Value::as_f64)?.map(tidy))
    }

    pub(super) fn number_or(&self, key: &str, default: f64) -> Result<f64, Fault> {
        Ok(self.number(key)?.unwrap_or(default))
    }

    /// A whole number above zero that must be there.
    pub(super) fn count(&self, key: &str) -> Result<usize, Fault> {
        self.typed(key, "a whole number above zero", positive)?
            .ok_or_else(|| self.wrong(key, "is missing"))
    }

    /// One number, or a list of `N`, or one number for all.
    pub(super) fn sizes<const N: usize>(&self, key: &str) -> Result<Option<[usize; N]>, Fault> {
        self.typed(key, "whole numbers above zero", |value| match value {
            Value::Array(list) => {
                let list: Vec<usize> = list.iter().map(positive).collect::<Option<_>>()?;
                list.try_into().ok()
            }
            single => positive(single).map(|size| [size; N]),
        })
    }

    /// A configuration inside this one.
    pub(super) fn inner(&self, values: &'a Map<String, Value>) -> Self {
        Self { values, ..*self }
    }

    fn typed<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        self.get(key)
            .map(|value| {
                read(value).ok_or_else(|| {
                    self.wrong(key, &format!("is {}, expected {expected}", short(value)))
                })
            })
            .transpose()
    }

    fn wrong(&self, key: &str, reason: &str) -> Fault {
        Fault::damaged(format!("layer `{}`", self.layer), format!("`{key}` {reason}"))
    }

    /// Refuses a setting that would change what the layer computes.
    pub(super) fn refuse(&self, reason: impl Into<String>) -> Fault {
        Fault::unsupported(self.layer, reason)
    }
}

fn positive(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok().filter(|&size| size > 0)
}

/// A value as it fits into a sentence.
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

/// Keras 2 registered its own optimizers and initializers as it does those of users.
fn unregistered(class: &str) -> &str {
    ["Custom>", "Keras>"].iter().find_map(|package| class.strip_prefix(package)).unwrap_or(class)
}

/// Keras holds many settings in single precision and writes them in double: 0.001 becomes
/// 0.0010000000474974513. This is the shortest number that means the same.
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

    fn settings(values: &Value) -> Settings<'_> {
        Settings { layer: "dense", version: Version::Three, values: values.as_object().unwrap() }
    }

    #[test]
    fn single_precision_numbers_get_their_short_form() {
        assert_eq!(tidy(0.001_000_000_047_497_451_3), 0.001);
        assert_eq!(tidy(0.029_999_999_329_447_743), 0.03);
        assert_eq!(tidy(0.001), 0.001);
        assert_eq!(tidy(1e300), 1e300);
        assert_eq!(tidy(3.0), 3.0);
    }

    #[test]
    fn sizes_are_one_number_or_a_list() {
        let values = json!({"a": 3, "b": [1, 2], "c": [1], "d": 0, "e": null});
        let settings = settings(&values);
        assert_eq!(settings.sizes("a").unwrap(), Some([3, 3]));
        assert_eq!(settings.sizes("b").unwrap(), Some([1, 2]));
        assert_eq!(settings.sizes("c").unwrap(), Some([1]));
        assert_eq!(settings.sizes::<2>("e").unwrap(), None);
        assert!(settings.sizes::<2>("c").is_err());
        assert!(settings.sizes::<2>("d").is_err());
    }

    #[test]
    fn a_setting_of_the_wrong_type_is_named_with_its_layer() {
        let values = json!({"units": "many"});
        let error = settings(&values).count("units").unwrap_err();
        assert_eq!(
            error.to_string(),
            "is damaged: layer `dense`: `units` is \"many\", expected a whole number above zero"
        );
        let error = settings(&values).count("filters").unwrap_err();
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
