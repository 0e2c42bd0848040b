//! Reports of a command: JSON objects, one a line, on its standard output.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use surefoot_diagnose::{Facts, LayerInfo, LayerObservation, Observation, Summary};

/// A report. All other output of the command is ignored.
///
/// `{"epoch": 3, "epochs": 20, "loss": 0.31, "value": 0.88}` is enough for most commands. ReportLayers let
/// more indicators work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportLine {
    /// Objective value.
    #[serde(with = "surefoot_diagnose::number::optional", skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// True if the value is the result of the trial, whatever was reported before.
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not")]
    pub is_final: bool,
    /// Training loss.
    #[serde(with = "surefoot_diagnose::number::optional", skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// 1-based training step; the next one if missing.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Total number of training steps.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Epoch.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Total number of epochs.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u64>,
    /// Learning rate.
    #[serde(with = "surefoot_diagnose::number::optional", skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// ReportLayers by name, from input to output.
    #[serde(skip_serializing_if = "ReportLayers::is_empty")]
    pub layers: ReportLayers,
}

/// ReportLayers in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportLayers(pub Vec<(String, ReportLayer)>);

/// Statistics of one layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReportLayer {
    /// Root mean square of the gradient.
    #[serde(with = "surefoot_diagnose::number::optional", skip_serializing_if = "Option::is_none")]
    pub gradient: Option<f64>,
    /// Largest absolute gradient.
    #[serde(with = "surefoot_diagnose::number::optional", skip_serializing_if = "Option::is_none")]
    pub gradient_max: Option<f64>,
    /// Fraction of outputs that are zero.
    #[serde(with = "surefoot_diagnose::number::optional", skip_serializing_if = "Option::is_none")]
    pub zero_outputs: Option<f64>,
    /// Name of the activation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<String>,
}

impl ReportLayers {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for ReportLayers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, layer) in &self.0 {
            map.serialize_entry(name, layer)?;
        }
        map.end()
    }
}

/// Reads a count, also one written as 3.0.
fn count<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let whole = |number: f64| {
        let is_count = number >= 0.0 && number.fract() == 0.0 && number < 2f64.powi(64);
        is_count.then_some(number as u64)
    };
    let count = number.as_u64().or_else(|| number.as_f64().and_then(whole));
    count.map(Some).ok_or_else(|| serde::de::Error::custom(format!("{number} is not a count")))
}

impl<'de> Deserialize<'de> for ReportLayers {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ReportLayers, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = ReportLayers;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("layers by name")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<ReportLayers, A::Error> {
                let mut layers = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    layers.push(entry);
                }
                Ok(ReportLayers(layers))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl ReportLine {
    /// Reads a line of output: `None` if it is not a report, an error if it is an invalid one.
    pub fn read(line: &str) -> Option<Result<ReportLine, String>> {
        let line = line.trim();
        if !line.starts_with('{') {
            return None;
        }
        let line = quote_numbers(line);
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&line).ok()?;
        if !(object.contains_key("value") || object.contains_key("loss")) {
            return None;
        }
        // Parsed again from the text, which keeps the order of the layers.
        Some(serde_json::from_str(&line).map_err(|error| error.to_string()))
    }

    /// The report of a training step that was observed, by the layers of `facts`.
    pub fn of(seen: &Observation, facts: &Facts) -> ReportLine {
        let layers = facts.layers.iter().zip(&seen.layers);
        let layers = layers.map(|(info, seen)| (info.name.clone(), ReportLayer::of(info, seen)));
        let steps = facts
            .epochs
            .zip(facts.steps_per_epoch)
            .map(|(epochs, steps)| epochs.saturating_mul(steps));
        ReportLine {
            loss: Some(seen.loss),
            step: Some(seen.step),
            steps,
            epoch: Some(seen.epoch),
            epochs: facts.epochs,
            learning_rate: seen.learning_rate,
            layers: ReportLayers(layers.collect()),
            ..ReportLine::default()
        }
    }

    /// The report as an observation of the given layers; `None` without a loss.
    pub fn observation(&self, step: u64, layers: &[LayerInfo]) -> Option<Observation> {
        let named: BTreeMap<&str, &ReportLayer> =
            self.layers.0.iter().map(|(name, layer)| (name.as_str(), layer)).collect();
        let seen = layers.iter().map(|info| {
            let layer = named.get(info.name.as_str());
            layer.map_or_else(LayerObservation::default, |layer| layer.observation())
        });
        let observation = Observation::new(step, self.loss?)
            .with_epoch(self.epoch.unwrap_or(1))
            .with_learning_rate(self.learning_rate.filter(|rate| rate.is_finite()));
        Some(match self.layers.0.is_empty() {
            true => observation,
            false => observation.with_layers(seen.collect()),
        })
    }

    /// Descriptions of the named layers.
    pub fn layer_infos(&self) -> Vec<LayerInfo> {
        let layers = self.layers.0.iter();
        let info = |(name, layer): &(String, ReportLayer)| LayerInfo {
            name: name.clone(),
            activation: layer.activation.as_deref().map(Into::into),
            // The number is unknown; a gradient shows that there are some.
            parameters: u64::from(layer.gradient.is_some()),
            ..LayerInfo::default()
        };
        layers.map(info).collect()
    }
}

impl ReportLayer {
    fn of(info: &LayerInfo, seen: &LayerObservation) -> ReportLayer {
        let gradient = seen.gradient.as_ref();
        ReportLayer {
            gradient: gradient.map(|gradient| match gradient.nan + gradient.inf {
                0 => gradient.l2 / (gradient.count.max(1) as f64).sqrt(),
                _ => f64::NAN,
            }),
            gradient_max: gradient.map(|gradient| gradient.linf),
            zero_outputs: seen.output.as_ref().map(Summary::zero_ratio),
            activation: info.activation.as_ref().map(ToString::to_string),
        }
    }

    fn observation(&self) -> LayerObservation {
        LayerObservation {
            gradient: self.gradient.map(|rms| {
                let largest = self.gradient_max.unwrap_or(rms);
                // Treated as one weight, whose norm is the root mean square.
                Summary {
                    count: u64::from(rms.is_finite()),
                    nan: u64::from(rms.is_nan() || largest.is_nan()),
                    inf: u64::from(rms.is_infinite() || largest.is_infinite()),
                    l1: finite(rms),
                    l2: finite(rms),
                    abs_mean: finite(rms),
                    linf: finite(largest),
                    max: finite(largest),
                    zeros: u64::from(rms == 0.0),
                    ..Summary::default()
                }
            }),
            output: self.zero_outputs.filter(|share| !share.is_nan()).map(|share| {
                /// Nominal number of outputs.
                const OUTPUTS: f64 = 1e6;
                Summary {
                    count: OUTPUTS as u64,
                    zeros: (share.clamp(0.0, 1.0) * OUTPUTS).round() as u64,
                    ..Summary::default()
                }
            }),
            ..LayerObservation::default()
        }
    }
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

/// Quotes NaN and infinities, which Python's `json` writes although JSON has none.
fn quote_numbers(line: &str) -> String {
    if !(line.contains("NaN") || line.contains("Infinity")) {
        return line.to_owned();
    }
    let mut quoted = String::with_capacity(line.len() + 8);
    let (mut rest, mut in_text) = (line, false);
    while let Some(c) = rest.chars().next() {
        let word = ["NaN", "-Infinity", "Infinity"].into_iter().find(|word| rest.starts_with(word));
        match word {
            Some(word) if !in_text => {
                quoted.extend(["\"", word, "\""]);
                rest = &rest[word.len()..];
                continue;
            }
            _ => {}
        }
        let escaped = in_text && c == '\\';
        let take = match escaped {
            true => rest.chars().take(2).map(char::len_utf8).sum(),
            false => c.len_utf8(),
        };
        in_text ^= c == '"';
        quoted.push_str(&rest[..take]);
        rest = &rest[take..];
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> ReportLine {
        ReportLine::read(line).expect("a report").expect("a valid report")
    }

    #[test]
    fn other_output_is_not_a_report() {
        for line in ["", "epoch 1", "[1, 2]", "{broken", r#"{"epoch": 1}"#, r#"{'value': 1}"#] {
            assert_eq!(ReportLine::read(line), None, "{line}");
        }
    }

    #[test]
    fn an_invalid_report_is_an_error() {
        let answer = ReportLine::read(r#"{"value": "good"}"#).expect("a report");
        assert!(answer.is_err());
    }

    #[test]
    fn nan_and_infinity_are_read_as_python_writes_them() {
        let line = read(r#"{"value": NaN, "loss": -Infinity, "note": "a \"NaN\" here"}"#);
        assert!(line.value.is_some_and(f64::is_nan));
        assert_eq!(line.loss, Some(f64::NEG_INFINITY));
        assert_eq!(quote_numbers(r#"{"a": "NaN\\", "b": NaN}"#), r#"{"a": "NaN\\", "b": "NaN"}"#);
    }

    #[test]
    fn nan_can_be_reported_everywhere() {
        let line = read(
            r#"{"loss": NaN, "epoch": 2.0, "learning_rate": NaN, "layers": {"a": {"zero_outputs": NaN, "gradient": NaN}}}"#,
        );
        assert_eq!(line.epoch, Some(2));
        let seen = line.observation(1, &line.layer_infos()).expect("a loss");
        assert_eq!(seen.learning_rate, None);
        assert_eq!(seen.layers[0].output, None);
        for count in ["-1", "1.5", "1e30", "\"2\""] {
            let answer = ReportLine::read(&format!(r#"{{"loss": 1.0, "epoch": {count}}}"#));
            assert!(answer.expect("a report").is_err(), "{count}");
        }
    }

    #[test]
    fn an_observed_step_can_be_read_back() {
        let facts = Facts {
            layers: vec![LayerInfo {
                name: "fc1".to_owned(),
                activation: Some("relu".into()),
                ..LayerInfo::default()
            }],
            epochs: Some(3),
            steps_per_epoch: Some(5),
            ..Facts::default()
        };
        let gradient = Summary { count: 4, l2: 2.0, linf: 1.5, ..Summary::default() };
        let output = Summary { count: 10, zeros: 5, ..Summary::default() };
        let layer = LayerObservation {
            gradient: Some(gradient),
            output: Some(output),
            ..LayerObservation::default()
        };
        let seen = Observation::new(7, f64::NAN).with_epoch(2).with_layers(vec![layer]);
        let line = ReportLine::of(&seen, &facts);
        let again = read(&serde_json::to_string(&line).expect("text"));
        assert!(again.loss.is_some_and(f64::is_nan));
        assert_eq!((again.step, again.steps, again.epoch), (Some(7), Some(15), Some(2)));
        assert_eq!(again.layers, line.layers);
        let (name, layer) = &again.layers.0[0];
        assert_eq!((name.as_str(), layer.activation.as_deref()), ("fc1", Some("relu")));
        assert_eq!((layer.gradient, layer.gradient_max), (Some(1.0), Some(1.5)));
        assert_eq!(layer.zero_outputs, Some(0.5));
        let empty = ReportLine::of(&Observation::new(1, 0.5), &Facts::default());
        assert_eq!(
            serde_json::to_string(&empty).expect("text"),
            r#"{"loss":0.5,"step":1,"epoch":1}"#
        );
    }

    #[test]
    fn layers_keep_their_order() {
        let text =
            r#"{"loss": 1.0, "layers": {"z": {"gradient": 0.5}, "a": {"zero_outputs": 0.25}}}"#;
        let line = read(text);
        let infos = line.layer_infos();
        assert_eq!(infos.iter().map(|i| i.name.as_str()).collect::<Vec<_>>(), ["z", "a"]);
        let seen = line.observation(1, &infos).expect("a loss");
        assert_eq!(seen.layers[0].gradient.map(|g| g.l2), Some(0.5));
        assert_eq!(seen.layers[1].output.map(|o| o.zero_ratio()), Some(0.25));
    }
}
