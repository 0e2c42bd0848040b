//! Axis of a parameter.

use surefoot_tune::{Domain, Parameter, Point, Value};

use crate::format;

/// Fraction of an axis reserved at its low end for trials without the parameter.
const ABSENT: f64 = 0.16;

/// Maximum number of discrete values that are jittered to separate trials with
/// equal values.
const FEW: f64 = 16.0;

/// Maximum length of names and choices.
const LETTERS: usize = 40;

/// The axis of a parameter.
#[derive(Debug)]
pub(super) struct Axis<'a> {
    parameter: &'a Parameter,
    /// Start of the values: above 0 if trials may lack the parameter.
    start: f64,
}

/// A tick on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// From 0 to 1.
    pub(super) place: f64,
    pub(super) label: String,
}

impl<'a> Axis<'a> {
    pub(super) fn of(parameter: &'a Parameter) -> Axis<'a> {
        let start = if parameter.conditions.is_empty() { 0.0 } else { ABSENT };
        Axis { parameter, start }
    }

    /// Value of the parameter.
    pub(super) fn value<'p>(&self, point: &'p Point) -> Option<&'p Value> {
        point.get(&self.parameter.name)
    }

    /// Position of a trial. Its number separates trials with equal values.
    pub(super) fn place(&self, point: &Point, number: u64) -> f64 {
        match point.get(&self.parameter.name) {
            Some(value) => self.on_axis(self.parameter.domain.place(value), number),
            None => self.start * (0.25 + 0.5 * spread(number)),
        }
    }

    fn on_axis(&self, place: f64, number: u64) -> f64 {
        let place = match self.values() {
            Some(count) if count <= FEW => place + 0.5 * (spread(number) - 0.5) / count,
            _ => place,
        };
        self.start + (1.0 - self.start) * place
    }

    /// Number of values, if finite.
    fn values(&self) -> Option<f64> {
        match &self.parameter.domain {
            Domain::Uniform(..) | Domain::LogUniform(..) => None,
            // Values are not evenly spaced on a logarithmic axis.
            Domain::LogInt(..) => None,
            Domain::Int(low, high) => Some(*high as f64 - *low as f64 + 1.0),
            Domain::Choice(values) => Some(values.len() as f64),
        }
    }

    /// Ticks that are at least `gap` apart, including both ends.
    pub(super) fn ticks(&self, gap: f64) -> Vec<Tick> {
        let domain = &self.parameter.domain;
        let float = |value: f64| Value::Float(value);
        let whole = |value: f64| Value::Int(value as i64);
        let mut values: Vec<Value> = match domain {
            Domain::Choice(values) => values.clone(),
            Domain::Uniform(low, high) => ended(*low, even(*low, *high), *high, float),
            Domain::LogUniform(low, high) => ended(*low, by_powers(*low, *high), *high, float),
            Domain::Int(low, high) | Domain::LogInt(low, high) => {
                let (low, high) = (*low as f64, *high as f64);
                let inner = match domain {
                    Domain::LogInt(..) => by_powers(low, high),
                    _ => even(low, high),
                };
                let inner = inner.into_iter().filter(|value| value.fract() == 0.0);
                ended(low, inner.collect(), high, whole)
            }
        };
        values.dedup();
        let is_written_out = values.iter().all(|value| match value {
            Value::Float(value) if self.is_log() => (1e-4..1e6).contains(value),
            _ => true,
        });
        let tick = |value: &Value| Tick {
            place: self.start + (1.0 - self.start) * domain.place(value),
            label: match value {
                Value::Float(value) if self.is_log() => label(*value, is_written_out),
                value => shown(value),
            },
        };
        let ticks: Vec<Tick> = values.iter().map(tick).collect();
        let mut kept: Vec<Tick> = Vec::new();
        let last = ticks.last().map_or(1.0, |tick| tick.place);
        for tick in ticks {
            let is_last = tick.place >= last;
            let free = kept.last().is_none_or(|k| tick.place - k.place >= gap);
            if is_last && !free && kept.len() > 1 {
                kept.pop();
            }
            if (free && (is_last || last - tick.place >= gap || kept.is_empty())) || is_last {
                kept.push(tick);
            }
        }
        kept
    }

    /// Position of trials without the parameter, if there may be any.
    pub(super) fn absent(&self) -> Option<f64> {
        (self.start > 0.0).then_some(self.start / 2.0)
    }

    /// Start of the values.
    pub(super) fn start(&self) -> f64 {
        self.start
    }

    /// Name of the parameter, shortened.
    pub(super) fn name(&self) -> String {
        cut(&self.parameter.name, LETTERS + 20)
    }

    /// Returns true for a logarithmic axis.
    pub(super) fn is_log(&self) -> bool {
        matches!(self.parameter.domain, Domain::LogUniform(..) | Domain::LogInt(..))
    }
}

/// A jitter from 0 to 1 for each trial, with distant values for neighbors.
fn spread(number: u64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    (number as f64 * GOLDEN).fract()
}

/// Display form of a value.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Float(value) => format::number(*value),
        value => cut(&value.to_string(), LETTERS),
    }
}

/// Label of a tick on a logarithmic axis; powers of ten share one notation.
fn label(value: f64, is_written_out: bool) -> String {
    let power = value.log10().round() as i32;
    match value == 10_f64.powi(power) {
        true => format::power_of_ten(power, is_written_out),
        false if is_written_out && value < 1e-3 => {
            format::trimmed(&format!("{value:.6}")).to_owned()
        }
        false => format::number(value),
    }
}

/// Adds both ends to the values between them.
fn ended(low: f64, inner: Vec<f64>, high: f64, value: impl Fn(f64) -> Value) -> Vec<Value> {
    let inner = inner.into_iter().filter(|v| *v > low && *v < high);
    let all = [low].into_iter().chain(inner).chain([high]);
    all.map(value).collect()
}

/// Evenly spaced round values.
fn even(low: f64, high: f64) -> Vec<f64> {
    let ticks = crate::scale::Scale::linear(low, high).ticks(3);
    ticks.into_iter().map(|tick| tick.value).collect()
}

/// Round values on a logarithmic axis: powers of two between powers of two (as for units of a layer),
/// powers of ten, or 1, 2 and 5 times powers of ten for short ranges.
fn by_powers(low: f64, high: f64) -> Vec<f64> {
    let is_of_two = |value: f64| value >= 1.0 && value.log2().fract() == 0.0;
    if is_of_two(low) && is_of_two(high) && high < 1e6 {
        let powers = low.log2() as i32..=high.log2() as i32;
        return powers.map(|power| 2_f64.powi(power)).collect();
    }
    let steps: &[f64] = match high / low {
        ..100.0 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let times = |power: i32| steps.iter().map(move |step| step * 10_f64.powi(power));
    powers.flat_map(times).collect()
}

/// Parameters of a trial on one line, in the order of the space.
pub(super) fn point_text(parameters: &[Parameter], point: Option<&Point>) -> String {
    let Some(point) = point else {
        return "not sampled yet".to_owned();
    };
    let entries = parameters.iter().filter_map(|parameter| {
        let value = point.get(&parameter.name)?;
        Some(format!("{} = {}", cut(&parameter.name, 60), shown(value)))
    });
    let entries: Vec<String> = entries.collect();
    match entries.is_empty() {
        true => "no parameters".to_owned(),
        false => cut(&entries.join(", "), 600),
    }
}

/// Truncates a text to a number of letters.
pub(super) fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_tune::Condition;

    fn parameter(domain: Domain) -> Parameter {
        Parameter { name: "x".to_owned(), domain, conditions: Vec::new() }
    }

    fn labels(domain: Domain) -> Vec<String> {
        let parameter = parameter(domain);
        let ticks = Axis::of(&parameter).ticks(0.12);
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn the_ends_of_an_axis_have_ticks() {
        assert_eq!(labels(Domain::LogUniform(1e-4, 1.0)), ["0.0001", "0.001", "0.01", "0.1", "1"]);
        assert_eq!(
            labels(Domain::LogUniform(1e-5, 1.0)),
            ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]
        );
        assert_eq!(labels(Domain::LogUniform(2e-4, 0.1)), ["0.0002", "0.001", "0.01", "0.1"]);
        assert_eq!(labels(Domain::LogInt(2, 32)), ["2", "4", "8", "16", "32"]);
        assert_eq!(labels(Domain::LogInt(3, 90)), ["3", "5", "10", "20", "50", "90"]);
        assert_eq!(labels(Domain::Int(3, 3)), ["3"]);
        assert_eq!(labels(Domain::Uniform(0.5, 0.5)), ["0.5"]);
        let many = labels(Domain::Int(0, 1_000_000));
        assert_eq!(many.first().map(String::as_str), Some("0"));
        assert_eq!(many.last().map(String::as_str), Some("1000000"));
    }

    #[test]
    fn trials_without_the_parameter_are_separate() {
        let mut parameter = parameter(Domain::Uniform(0.0, 1.0));
        parameter.conditions.push(Condition { parameter: "other".to_owned(), values: Vec::new() });
        let axis = Axis::of(&parameter);
        let without = axis.place(&Point::default(), 7);
        let mut point = Point::default();
        point.0.insert("x".to_owned(), Value::Float(0.0));
        assert!(without < axis.place(&point, 7));
        assert!(axis.absent().is_some());
    }

    #[test]
    fn jitter_stays_within_the_choice() {
        let choices = ["a", "b"].map(|word| Value::Text(word.to_owned()));
        let parameter = parameter(Domain::Choice(choices.to_vec()));
        let axis = Axis::of(&parameter);
        let mut point = Point::default();
        point.0.insert("x".to_owned(), choices[0].clone());
        let places: Vec<f64> = (0..100).map(|n| axis.place(&point, n)).collect();
        assert!(places.iter().all(|place| (0.0..0.5).contains(place)));
        assert!(places[0] != places[1]);
    }

    #[test]
    fn long_texts_are_cut_at_characters() {
        assert_eq!(cut("ééé", 2), "éé…");
        assert_eq!(cut("éé", 2), "éé");
    }
}
