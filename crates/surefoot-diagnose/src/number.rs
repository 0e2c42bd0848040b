//! Floating-point numbers in JSON.
//!
//! JSON has no NaN and no infinity, and training has both. They are written as the strings `"NaN"`,
//! `"Infinity"` and `"-Infinity"`, which Python's `float` and JavaScript's `Number` understand as
//! they stand. All other numbers are JSON numbers and are read back to the same bits.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserializer, Serialize, Serializer};

/// Writes a number.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        value.serialize(serializer)
    } else if value.is_nan() {
        "NaN".serialize(serializer)
    } else if *value > 0.0 {
        "Infinity".serialize(serializer)
    } else {
        "-Infinity".serialize(serializer)
    }
}

/// Reads a number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer.deserialize_any(Number)
}

struct Number;

impl Visitor<'_> for Number {
    type Value = f64;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(r#"a number, "NaN", "Infinity" or "-Infinity""#)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<f64, E> {
        match value {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(E::invalid_value(Unexpected::Str(value), &self)),
        }
    }
}

/// The same for a number that may be missing (`null`).
pub mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Present(#[serde(with = "super")] f64);

    /// Writes a number or `null`.
    pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(Present).serialize(serializer)
    }

    /// Reads a number or `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        Ok(Option::<Present>::deserialize(deserializer)?.map(|Present(value)| value))
    }
}

/// A number as one says it in a message: two or three digits.
pub fn rough(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || !value.is_finite() {
        format!("{value}")
    } else if (0.01..1e5).contains(&size) {
        let digits = (2 - size.log10().floor() as i32).clamp(0, 4) as usize;
        let text = format!("{value:.digits$}");
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    } else {
        format!("{value:.1e}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Pair {
        #[serde(with = "super")]
        sure: f64,
        #[serde(with = "super::optional")]
        maybe: Option<f64>,
    }

    fn round_trip(sure: f64, maybe: Option<f64>) -> (String, Pair) {
        let text = serde_json::to_string(&Pair { sure, maybe }).unwrap();
        let pair = serde_json::from_str(&text).unwrap();
        (text, pair)
    }

    #[test]
    fn rough_numbers_have_few_digits() {
        let numbers = [0.0, 0.5, 12.345, 200.0, 54321.0, 1.23456e-6, f64::INFINITY];
        let texts = numbers.map(super::rough);
        assert_eq!(texts, ["0", "0.5", "12.3", "200", "54321", "1.2e-6", "inf"]);
    }

    #[test]
    fn what_json_cannot_say_is_a_string() {
        let (text, pair) = round_trip(f64::NAN, Some(f64::NEG_INFINITY));
        assert_eq!(text, r#"{"sure":"NaN","maybe":"-Infinity"}"#);
        assert!(pair.sure.is_nan());
        assert_eq!(pair.maybe, Some(f64::NEG_INFINITY));
        let (text, pair) = round_trip(f64::INFINITY, None);
        assert_eq!(text, r#"{"sure":"Infinity","maybe":null}"#);
        assert_eq!((pair.sure, pair.maybe), (f64::INFINITY, None));
    }

    #[test]
    fn another_string_is_refused() {
        let error = serde_json::from_str::<Pair>(r#"{"sure":"much","maybe":null}"#);
        assert!(error.is_err_and(|e| e.to_string().contains("a number, \"NaN\"")));
    }

    proptest! {
        #[test]
        fn every_finite_number_survives_to_the_bit(value in any::<f64>()) {
            let (_, pair) = round_trip(value, Some(value));
            prop_assert_eq!(pair.sure.to_bits(), value.to_bits());
            prop_assert_eq!(pair.maybe.map(f64::to_bits), Some(value.to_bits()));
        }
    }
}
