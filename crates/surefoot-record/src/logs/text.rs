//! Text logs of training loops: lines such as `iter 250: loss 2.33, time 135ms`.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::name::{kind, meaning};
use crate::logs::role::{Map, Role};
use crate::logs::rows::{Rows, has_extension, opening, text};
use std::path::Path;

/// Text with names and numbers in its lines. Other lines are skipped.
pub(crate) struct Text;

impl LogFormat for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        if has_extension(path, &["csv", "tsv", "json", "jsonl"]) {
            return Ok(false);
        }
        let opening = opening(path)?;
        let mut lines = opening.lines().filter(|line| pairs(line).iter().any(is_loss));
        Ok(lines.next().is_some())
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
        let mut rows = Rows::default();
        let mapped = |name: &str| map.values().any(|column| column == name);
        for line in text(path)?.lines() {
            let pairs = pairs(line);
            if pairs.iter().any(|(name, _)| mapped(name) || meaning(name, None).is_some()) {
                rows.push(pairs.into_iter().map(|(name, value)| (name, Some(value))));
            }
        }
        rows.logs(path, self.name(), map)
    }
}

/// Returns true for the name and value of a loss.
pub(super) fn is_loss((name, _): &(String, f64)) -> bool {
    let role = meaning(name, None).map(|meaning| meaning.role);
    matches!(role, Some(Role::Loss | Role::ValidationLoss))
}

/// Names and numbers in a line. A name is the longest known one that ends before its number.
pub(super) fn pairs(line: &str) -> Vec<(String, f64)> {
    let mut pairs = Vec::new();
    for field in line.split([',', ';', '|', '\t']) {
        let mut words: Vec<String> = Vec::new();
        for token in field.split_whitespace().flat_map(split) {
            let token = token.trim_matches(|c: char| "()[]{}<>\"'`:=".contains(c));
            if token.is_empty() {
                continue;
            }
            if let Some(number) = Number::parse(token) {
                if !words.is_empty() {
                    let name = name(&words);
                    pairs.push((number.value(&name), name));
                    words.clear();
                }
            } else if token.contains(char::is_alphabetic) {
                words.push(token.to_lowercase());
            } else {
                words.clear();
            }
        }
    }
    pairs.into_iter().map(|(value, name)| (name, value)).collect()
}

/// Divides `loss=0.5` and `loss:0.5`.
fn split(token: &str) -> Vec<&str> {
    let place = token.find(['=', ':']);
    match place.map(|place| token.split_at(place)) {
        Some((name, value)) if name.contains(char::is_alphabetic) => vec![name, &value[1..]],
        _ => vec![token],
    }
}

fn name(words: &[String]) -> String {
    const LONGEST: usize = 4;
    let from = words.len().saturating_sub(LONGEST);
    let mut names = (from..words.len()).map(|first| words[first..].join(" "));
    let known = names.clone().find(|name| meaning(name, None).is_some());
    known.or_else(|| names.next_back()).unwrap_or_default()
}

/// A number as logs write it.
enum Number {
    Plain(f64),
    /// `3/40`.
    Fraction(f64, f64),
}

impl Number {
    fn parse(token: &str) -> Option<Number> {
        if let Some((part, whole)) = token.split_once('/') {
            return Some(Number::Fraction(part.parse().ok()?, whole.parse().ok()?));
        }
        let digits = token.trim_end_matches('%');
        if let Ok(number) = digits.parse() {
            return Some(Number::Plain(number));
        }
        // With a unit, such as `135.2ms`.
        let end = digits.rfind(|c: char| c.is_ascii_digit())? + 1;
        let starts = digits.starts_with(|c: char| c.is_ascii_digit());
        starts.then(|| digits[..end].parse().ok().map(Number::Plain))?
    }

    /// The part of a count; the share of an accuracy.
    fn value(&self, name: &str) -> f64 {
        match self {
            Number::Plain(number) => *number,
            Number::Fraction(part, whole) => match kind(name) {
                crate::logs::name::Kind::Accuracy => part / whole,
                _ => *part,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> String {
        let pairs = pairs(line);
        let texts: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        texts.join(" ")
    }

    #[test]
    fn names_and_numbers_are_found_in_many_styles() {
        for (line, expected) in [
            (
                "step 250: train loss 2.3311, val loss 2.5642",
                "step=250 train loss=2.3311 val loss=2.5642",
            ),
            (
                "iter 250: loss nan, time 135.2ms, mfu 22.1%",
                "iter=250 loss=NaN time=135.2 mfu=22.1",
            ),
            (
                "[2026-01-02 10:00:01] INFO: Epoch 3/40 - train_loss=0.5 | lr: 1e-4",
                "epoch=3 train_loss=0.5 lr=0.0001",
            ),
            ("Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.300", "train epoch=1 loss=2.3"),
            (
                "Test set: Average loss: 0.0580, Accuracy: 98/100 (98%)",
                "test set average loss=0.058 accuracy=0.98",
            ),
            (
                "{'loss': 2.2, 'learning_rate': 0.1, 'epoch': 0.26}",
                "loss=2.2 learning_rate=0.1 epoch=0.26",
            ),
            ("Saving the model to out/ckpt.pt", ""),
        ] {
            assert_eq!(found(line), expected);
        }
    }
}
