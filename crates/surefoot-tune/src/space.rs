//! Search spaces: parameters and their domains.

use libm::{exp, log};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A string.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => value.fmt(f),
            Value::Int(value) => value.fmt(f),
            Value::Float(value) => fmt::Debug::fmt(value, f),
            Value::Text(value) => f.write_str(value),
        }
    }
}

/// Set of values of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// Numbers between two bounds, both included.
    Uniform(f64, f64),
    /// Numbers on a logarithmic scale.
    LogUniform(f64, f64),
    /// Integers between two bounds, both included.
    Int(i64, i64),
    /// Integers on a logarithmic scale.
    LogInt(i64, i64),
    /// Unordered values.
    Choice(Vec<Value>),
}

/// A parameter is active only if another one has one of these values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// Name of the other parameter.
    pub parameter: String,
    /// Its values.
    pub values: Vec<Value>,
}

/// A parameter of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Unique name.
    pub name: String,
    /// Possible values.
    pub domain: Domain,
    /// The parameter is active only if all of these hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A value for each active parameter: the configuration of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(pub BTreeMap<String, Value>);

impl Point {
    /// The value of a parameter, if it is active.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}

/// Parameters of a search, sorted so that conditions refer to earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Space {
    parameters: Vec<Parameter>,
}

/// An invalid space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}: {message}")]
pub struct SpaceError {
    /// The parameter at fault.
    pub parameter: String,
    /// The problem.
    pub message: String,
}

impl Space {
    /// Validates parameters and sorts them by their conditions.
    pub fn new(parameters: Vec<Parameter>) -> Result<Space, SpaceError> {
        let mut names = BTreeSet::new();
        for parameter in &parameters {
            let fail = |message: String| SpaceError { parameter: parameter.name.clone(), message };
            if !names.insert(parameter.name.as_str()) {
                return Err(fail("duplicate parameter name".to_owned()));
            }
            parameter.domain.check().map_err(fail)?;
        }
        for parameter in &parameters {
            for condition in &parameter.conditions {
                let fail =
                    |message: String| SpaceError { parameter: parameter.name.clone(), message };
                let Some(other) = parameters.iter().find(|p| p.name == condition.parameter) else {
                    return Err(fail(format!(
                        "the condition refers to `{}`, which is not a parameter",
                        condition.parameter
                    )));
                };
                let never = condition.values.iter().find(|v| !other.domain.contains(v));
                if let Some(never) = never {
                    return Err(fail(format!(
                        "the condition requires `{}` = {never}, which is not one of its values",
                        condition.parameter
                    )));
                }
            }
        }
        Ok(Space { parameters: in_order(parameters)? })
    }

    /// Parameters, each after those that its conditions refer to.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Builds a point by calling `value` for each active parameter.
    pub fn point(&self, mut value: impl FnMut(&Parameter) -> Value) -> Point {
        let mut point = Point::default();
        for parameter in &self.parameters {
            if parameter.holds(&point) {
                point.0.insert(parameter.name.clone(), value(parameter));
            }
        }
        point
    }

    /// The point at places from 0 to 1, by calling `place` with the index of each active parameter.
    pub fn at(&self, mut place: impl FnMut(usize) -> f64) -> Point {
        let mut point = Point::default();
        for (index, parameter) in self.parameters.iter().enumerate() {
            if parameter.holds(&point) {
                let value = parameter.domain.at(place(index));
                point.0.insert(parameter.name.clone(), value);
            }
        }
        point
    }

    /// True if the point has a valid value for exactly the active parameters.
    pub fn contains(&self, point: &Point) -> bool {
        let mut seen = 0;
        for parameter in &self.parameters {
            match (parameter.holds(point), point.get(&parameter.name)) {
                (true, Some(value)) if parameter.domain.contains(value) => seen += 1,
                (false, None) => {}
                _ => return false,
            }
        }
        seen == point.0.len()
    }
}

/// Sorts parameters after those that their conditions refer to, and keeps their order otherwise.
fn in_order(mut parameters: Vec<Parameter>) -> Result<Vec<Parameter>, SpaceError> {
    let mut ordered: Vec<Parameter> = Vec::with_capacity(parameters.len());
    while !parameters.is_empty() {
        let ready = parameters.iter().position(|parameter| {
            let known = |name: &String| ordered.iter().any(|o| o.name == *name);
            parameter.conditions.iter().all(|c| known(&c.parameter))
        });
        match ready {
            Some(index) => ordered.push(parameters.remove(index)),
            None => {
                return Err(SpaceError {
                    parameter: parameters[0].name.clone(),
                    message: "circular condition".to_owned(),
                });
            }
        }
    }
    Ok(ordered)
}

impl Parameter {
    /// True if the parameter is active, given the values of the parameters before it.
    pub fn holds(&self, point: &Point) -> bool {
        self.conditions.iter().all(|condition| {
            let value = point.get(&condition.parameter);
            value.is_some_and(|value| condition.values.contains(value))
        })
    }
}

impl Domain {
    fn check(&self) -> Result<(), String> {
        let finite = |low: f64, high: f64| {
            if !(low.is_finite() && high.is_finite()) {
                return Err("bounds must be finite".to_owned());
            }
            if low > high {
                return Err(format!("lower bound {low} is above upper bound {high}"));
            }
            // `at` interpolates, so the difference must be finite.
            if !(high - low).is_finite() {
                return Err(format!("bounds {low} and {high} are too far apart"));
            }
            Ok(())
        };
        let ordered = |low: i64, high: i64| match low <= high {
            true => Ok(()),
            false => Err(format!("lower bound {low} is above upper bound {high}")),
        };
        match *self {
            Domain::Uniform(low, high) => finite(low, high),
            Domain::LogUniform(low, high) => {
                finite(low, high)?;
                (low > 0.0)
                    .then_some(())
                    .ok_or_else(|| "a logarithmic scale needs bounds above 0".to_owned())
            }
            Domain::Int(low, high) => ordered(low, high),
            Domain::LogInt(low, high) => {
                ordered(low, high)?;
                (low > 0)
                    .then_some(())
                    .ok_or_else(|| "a logarithmic scale needs bounds above 0".to_owned())
            }
            Domain::Choice(ref values) => {
                if values.is_empty() {
                    return Err("no choices".to_owned());
                }
                let twice = (1..values.len()).find(|&i| values[..i].contains(&values[i]));
                match twice {
                    Some(i) => Err(format!("duplicate choice {}", values[i])),
                    None => Ok(()),
                }
            }
        }
    }

    /// True if the domain contains the value.
    pub fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Domain::Uniform(low, high) | Domain::LogUniform(low, high), &Value::Float(value)) => {
                (*low..=*high).contains(&value)
            }
            (Domain::Int(low, high) | Domain::LogInt(low, high), Value::Int(value)) => {
                (low..=high).contains(&value)
            }
            (Domain::Choice(values), value) => values.contains(value),
            _ => false,
        }
    }

    /// The value at a place from 0 to 1.
    pub fn at(&self, place: f64) -> Value {
        let place = place.clamp(0.0, 1.0);
        let between = |low: f64, high: f64| (low + place * (high - low)).clamp(low, high);
        match *self {
            Domain::Uniform(low, high) => Value::Float(between(low, high)),
            // Exact bounds, without the rounding of logarithms.
            Domain::LogUniform(low, _) if place == 0.0 => Value::Float(low),
            Domain::LogUniform(_, high) if place == 1.0 => Value::Float(high),
            Domain::LogUniform(low, high) => {
                Value::Float(exp(between(log(low), log(high))).clamp(low, high))
            }
            // Every integer has the same share, including the outer ones.
            Domain::Int(low, high) => {
                let value = between(low as f64 - 0.5, high as f64 + 0.5).round();
                Value::Int((value as i64).clamp(low, high))
            }
            Domain::LogInt(low, high) => {
                let value = between(log(low as f64 - 0.5), log(high as f64 + 0.5));
                Value::Int((exp(value).round() as i64).clamp(low, high))
            }
            Domain::Choice(ref values) => {
                let index = (place * values.len() as f64) as usize;
                values[index.min(values.len() - 1)].clone()
            }
        }
    }

    /// Converts an integer to a float if the domain has floats.
    #[must_use]
    pub fn converted(&self, value: &Value) -> Value {
        match (self, value) {
            (Domain::Uniform(..) | Domain::LogUniform(..), Value::Int(value)) => {
                Value::Float(*value as f64)
            }
            _ => value.clone(),
        }
    }

    /// The nearest value that is the lower bound or a multiple of `step` above it. Choices have no steps.
    pub fn stepped(&self, value: &Value, step: f64) -> Value {
        let nearest = |value: f64, low: f64, high: f64| {
            let most = ((high - low) / step + 1e-9).floor();
            low + ((value - low) / step).round().clamp(0.0, most.max(0.0)) * step
        };
        match (self, value) {
            (&Domain::Uniform(low, high), &Value::Float(value)) => {
                Value::Float(nearest(value, low, high).min(high))
            }
            (&Domain::Int(low, high), &Value::Int(value)) => {
                Value::Int(nearest(value as f64, low as f64, high as f64) as i64)
            }
            _ => value.clone(),
        }
    }

    /// The place of a value, the inverse of [`at`](Self::at): the middle of the share of an integer or
    /// choice, 0.5 for a value outside the domain.
    pub fn place(&self, value: &Value) -> f64 {
        let share = |value: f64, low: f64, high: f64| {
            if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
        };
        match (self, value) {
            (&Domain::Uniform(low, high), &Value::Float(value)) => share(value, low, high),
            (&Domain::LogUniform(low, high), &Value::Float(value)) => {
                share(log(value), log(low), log(high))
            }
            (&Domain::Int(low, high), &Value::Int(value)) => {
                share(value as f64, low as f64 - 0.5, high as f64 + 0.5)
            }
            (&Domain::LogInt(low, high), &Value::Int(value)) => {
                share(log(value as f64), log(low as f64 - 0.5), log(high as f64 + 0.5))
            }
            (Domain::Choice(values), value) => {
                let index = values.iter().position(|v| v == value);
                index.map_or(0.5, |index| (index as f64 + 0.5) / values.len() as f64)
            }
            _ => 0.5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parameter(name: &str, domain: Domain) -> Parameter {
        Parameter { name: name.to_owned(), domain, conditions: Vec::new() }
    }

    fn conditional() -> Space {
        let words = ["adam", "sgd"].map(|word| Value::Text(word.to_owned()));
        let mut momentum = parameter("momentum", Domain::Uniform(0.0, 0.99));
        momentum
            .conditions
            .push(Condition { parameter: "optimizer".to_owned(), values: vec![words[1].clone()] });
        let optimizer = parameter("optimizer", Domain::Choice(words.to_vec()));
        Space::new(vec![momentum, optimizer]).expect("a space")
    }

    #[test]
    fn a_parameter_is_active_only_if_its_conditions_hold() {
        let space = conditional();
        let first = space.point(|p| p.domain.at(0.0));
        assert_eq!(first.get("momentum"), None);
        let last = space.point(|p| p.domain.at(1.0));
        assert_eq!(last.get("momentum"), Some(&Value::Float(0.99)));
        assert!(space.contains(&first) && space.contains(&last));
    }

    #[test]
    fn a_point_with_an_inactive_parameter_is_invalid() {
        let space = conditional();
        let mut point = space.point(|p| p.domain.at(0.0));
        point.0.insert("momentum".to_owned(), Value::Float(0.5));
        assert!(!space.contains(&point));
    }

    #[test]
    fn invalid_domains_are_rejected() {
        let cases = [
            (Domain::Uniform(2.0, 1.0), "lower bound 2 is above upper bound 1"),
            (Domain::Uniform(0.0, f64::NAN), "bounds must be finite"),
            (Domain::LogUniform(0.0, 1.0), "a logarithmic scale needs bounds above 0"),
            (Domain::LogInt(0, 8), "a logarithmic scale needs bounds above 0"),
            (Domain::Choice(vec![]), "no choices"),
            (Domain::Choice(vec![Value::Int(1), Value::Int(1)]), "duplicate choice 1"),
        ];
        for (domain, message) in cases {
            let error = Space::new(vec![parameter("x", domain)]).expect_err("refused");
            assert_eq!(error.message, message);
        }
    }

    #[test]
    fn a_condition_that_never_holds_is_rejected() {
        let mut b = parameter("b", Domain::Uniform(0.0, 1.0));
        b.conditions.push(Condition { parameter: "a".to_owned(), values: vec![Value::Int(9)] });
        let a = parameter("a", Domain::Int(1, 3));
        let error = Space::new(vec![a, b]).expect_err("refused");
        assert_eq!(
            error.to_string(),
            "b: the condition requires `a` = 9, which is not one of its values"
        );
    }

    #[test]
    fn circular_conditions_are_rejected() {
        let condition =
            |on: &str| Condition { parameter: on.to_owned(), values: vec![Value::Int(1)] };
        let mut a = parameter("a", Domain::Int(1, 3));
        let mut b = parameter("b", Domain::Int(1, 3));
        a.conditions.push(condition("b"));
        b.conditions.push(condition("a"));
        assert!(Space::new(vec![a, b]).is_err());
    }

    #[test]
    fn stepped_values_are_multiples_above_the_lower_bound() {
        let int = Domain::Int(3, 10);
        let stepped: Vec<Value> = (3..=10).map(|n| int.stepped(&Value::Int(n), 3.0)).collect();
        assert_eq!(stepped, [3, 3, 6, 6, 6, 9, 9, 9].map(Value::Int));
        let float = Domain::Uniform(0.0, 1.0);
        assert_eq!(float.stepped(&Value::Float(0.33), 0.25), Value::Float(0.25));
        assert_eq!(float.stepped(&Value::Float(1.0), 0.1), Value::Float(1.0));
        assert_eq!(float.stepped(&Value::Float(1.0), 0.3), Value::Float(0.3 * 3.0));
    }

    fn domains() -> impl Strategy<Value = Domain> {
        prop_oneof![
            (-1e3..1e3, 0.0..1e3).prop_map(|(low, width)| Domain::Uniform(low, low + width)),
            (1e-6..1e3, 1.0..1e3).prop_map(|(low, by)| Domain::LogUniform(low, low * by)),
            (-100_i64..100, 0_i64..50).prop_map(|(low, width)| Domain::Int(low, low + width)),
            (1_i64..100, 0_i64..50).prop_map(|(low, width)| Domain::LogInt(low, low + width)),
            (1_i64..9).prop_map(|n| Domain::Choice((0..n).map(Value::Int).collect())),
        ]
    }

    proptest! {
        #[test]
        fn every_place_has_a_valid_value(domain in domains(), place in 0.0..=1.0) {
            prop_assert!(domain.contains(&domain.at(place)));
        }

        #[test]
        fn places_round_trip_to_values(domain in domains(), place in 0.0..=1.0) {
            let value = domain.at(place);
            let again = domain.at(domain.place(&value));
            match (value, again) {
                (Value::Float(a), Value::Float(b)) => {
                    prop_assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0));
                }
                (a, b) => prop_assert_eq!(a, b),
            }
        }

        #[test]
        fn values_survive_a_round_trip_through_json(domain in domains(), place in 0.0..=1.0) {
            let value = domain.at(place);
            let text = serde_json::to_string(&value).expect("text");
            prop_assert_eq!(serde_json::from_str::<Value>(&text).expect("value"), value);
        }
    }
}
