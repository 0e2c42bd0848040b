//! Text logs of training loops: lines such as `iter 250: loss 2.33, time 135ms`.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::name::{Kind, kind, meaning};
use crate::logs::number;
use crate::logs::role::{Map, Role};
use crate::logs::rows::{Rows, has_extension, is_loss, lines, opening, text};
use std::path::Path;

/// Text with names and numbers in its lines. Other lines are skipped.
pub(crate) struct Text;

impl LogFormat for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        if path.is_dir() || has_extension(path, &["csv", "tsv", "json", "jsonl"]) {
            return Ok(false);
        }
        let has_loss = |text: &str| rows(text).flatten().any(|(name, _)| is_loss(&name));
        let opening = opening(path)?;
        // A long summary of the model may come first, and the loss may have an unknown name.
        let named = rows(&opening).filter(|pairs| !pairs.is_empty()).count();
        Ok(has_loss(&opening) || 2 * named > lines(&opening).count() || has_loss(&text(path)?))
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
        let text = text(path)?;
        let role = |name: &str| meaning(name, None).map(|meaning| meaning.role);
        let is_position = |name: &str| matches!(role(name), Some(Role::Step | Role::Epoch));
        // Without a loss, the names of all numbers are of interest.
        let all = !rows(&text).flatten().any(|(name, _)| is_loss(&name));
        let mapped = |name: &str| all || map.values().any(|column| column == name);
        let mut table = Rows::default();
        // Headings such as `Epoch 3/40` belong to the line below.
        let mut heading: Vec<(String, f64)> = Vec::new();
        for pairs in rows(&text) {
            let known = |(name, _): &&(String, f64)| mapped(name) || role(name).is_some();
            let mut known = pairs.iter().filter(known).peekable();
            if known.peek().is_none() {
                continue;
            }
            if known.all(|(name, _)| is_position(name) && !mapped(name)) {
                heading = pairs;
                continue;
            }
            let missing = |(name, _): &(String, f64)| {
                is_position(name) && !pairs.iter().any(|(other, _)| role(other) == role(name))
            };
            let heading = std::mem::take(&mut heading).into_iter().filter(missing);
            let row: Vec<(String, f64)> = heading.chain(pairs.iter().cloned()).collect();
            table.push(row.into_iter().map(|(name, value)| (name, Some(value))));
        }
        table.logs(path, self.name(), map)
    }
}

/// Names and numbers of each line: those in the line itself, or numbers below a line of names.
fn rows(text: &str) -> impl Iterator<Item = Vec<(String, f64)>> {
    let mut header: Vec<String> = Vec::new();
    lines(text).map(move |line| {
        let tokens: Vec<&str> = line.split_whitespace().collect();
        if tokens.len() > 2 && tokens.iter().all(|token| is_name(token)) {
            let names: Vec<String> = tokens.iter().map(|token| snake(token)).collect();
            if names.iter().any(|name| is_loss(name)) {
                header = names;
                return Vec::new();
            }
        }
        let numbers = tokens.iter().map_while(|token| Number::parse(token.trim_end_matches(':')));
        let last = header.iter().rposition(|name| meaning(name, None).is_some());
        let below: Vec<(String, f64)> =
            header.iter().zip(numbers).map(|(n, v)| (n.clone(), v.value(n))).collect();
        if last.is_some_and(|last| below.len() > last) { below } else { pairs(line) }
    })
}

/// Returns true for a word without punctuation that is not a number.
fn is_name(token: &str) -> bool {
    token.starts_with(char::is_alphabetic)
        && !token.contains([':', '=', ','])
        && Number::parse(token).is_none()
}

/// Names and numbers in a line. A name is the longest known one that ends before its number.
pub(super) fn pairs(line: &str) -> Vec<(String, f64)> {
    let mut pairs: Vec<(String, f64)> = Vec::new();
    // The step inside an epoch: `Epoch [3][50/1749]`.
    let mut inner = None;
    for field in line.split([',', ';', '|', '\t']) {
        let mut words: Vec<String> = Vec::new();
        let (mut numbers, mut leading, mut after_epoch) = (0, None, false);
        for token in field.split(|c: char| c.is_whitespace() || "[]{}".contains(c)).flat_map(split)
        {
            let token = token.trim_matches(|c: char| "()<>\"'`:=".contains(c));
            let sentence_ends = token.ends_with('.');
            let token = token.trim_end_matches('.');
            if token.is_empty() {
                continue;
            }
            if let Some(number) = Number::parse(token) {
                if !words.is_empty() {
                    let name = name(&words);
                    after_epoch = has_role(&name, &Role::Epoch);
                    pairs.push((name.clone(), number.value(&name)));
                    words.clear();
                } else {
                    if let Number::Fraction(part, _) = number
                        && after_epoch
                    {
                        inner = Some(part);
                    }
                    leading = Some(number).filter(|_| numbers == 0);
                    after_epoch = false;
                }
                numbers += 1;
            } else if token.contains(char::is_alphabetic) {
                let word = snake(token);
                if sentence_ends || word == BREAK {
                    words.clear();
                } else if !FILLERS.contains(&word.as_str()) {
                    words.push(word);
                }
            } else {
                words.clear();
            }
        }
        // Darknet writes the number first: `0.085 avg loss, 0.001 rate`.
        if let Some(Number::Plain(number)) = leading.filter(|_| numbers == 1) {
            let name = name(&words);
            if is_loss(&name) {
                pairs.push((name, number));
            }
        }
    }
    let has = |role: &Role| pairs.iter().any(|(name, _)| has_role(name, role));
    let position = match (round(line), inner) {
        (Some(_), _) if has(&Role::Epoch) || has(&Role::Step) => None,
        (Some((name, number)), _) => Some((name.to_owned(), number)),
        (None, Some(step)) if !has(&Role::Step) => Some(("step".to_owned(), step)),
        _ => None,
    };
    let position = position.filter(|_| pairs.iter().any(|(name, _)| is_loss(name)));
    pairs.splice(0..0, position);
    assign_split(&mut pairs);
    pairs
}

/// Longest name, in words.
const LONGEST: usize = 4;
/// Words between a name and its number.
const FILLERS: &[&str] = &["is", "was", "of", "at", "to"];
/// Word that begins a new phrase: `Model diverged with loss = NaN`.
const BREAK: &str = "with";

/// The number that a line begins with: the round of `[12]\ttrain-rmse:0.5` of XGBoost, which sees all
/// data as an epoch does, or the step of `12: 0.5 avg loss` of Darknet.
fn round(line: &str) -> Option<(&'static str, f64)> {
    let line = line.trim_start();
    let bracketed = line.strip_prefix('[').and_then(|line| line.split_once(']'));
    let (name, (number, rest)) = match bracketed {
        Some(parts) => ("epoch", parts),
        None => ("step", line.split_once(": ")?),
    };
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    (is_number && !rest.is_empty()).then(|| Some((name, number.parse().ok()?)))?
}

fn has_role(name: &str, role: &Role) -> bool {
    meaning(name, None).is_some_and(|meaning| meaning.role == *role)
}

/// Adds the split of a line's losses to its metrics: `Test set: loss 0.05, accuracy 98%`.
fn assign_split(pairs: &mut [(String, f64)]) {
    let has = |role: Role| pairs.iter().any(|(name, _)| has_role(name, &role));
    if has(Role::ValidationLoss) && !has(Role::Loss) {
        for (name, _) in pairs.iter_mut().filter(|(name, _)| has_role(name, &Role::Metric)) {
            *name = format!("val {name}");
        }
    }
}

/// Divides `loss=0.5`, `loss:0.5` and `loss(0.5)`. The names of loggers are removed from
/// `INFO:tensorflow:loss`.
fn split(token: &str) -> Vec<&str> {
    let divided = |place: usize| {
        let (name, value) = token.split_at(place);
        (name, &value[1..])
    };
    match token.find(['=', ':']).map(divided) {
        Some((name, value)) if name.contains(char::is_alphabetic) => {
            return match value.rsplit_once(':') {
                Some((_, last)) if last.starts_with(char::is_alphabetic) => vec![last],
                _ => vec![name, value],
            };
        }
        _ => {}
    }
    match token.find('(').map(divided) {
        Some((name, value)) if number::parse(token).is_none() && Number::parse(value).is_some() => {
            vec![name, value]
        }
        _ => vec![token],
    }
}

/// The token in small letters, with `trainLoss` as `train_loss`.
fn snake(token: &str) -> String {
    let mut snake = String::with_capacity(token.len() + 2);
    let mut before = None;
    for c in token.chars() {
        if c.is_uppercase() && before.is_some_and(char::is_lowercase) {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
        before = Some(c);
    }
    snake
}

fn name(words: &[String]) -> String {
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
        let token = token.trim_end_matches(')');
        if let Some((part, whole)) = token.split_once('/') {
            return Some(Number::Fraction(part.parse().ok()?, whole.parse().ok()?));
        }
        let digits = token.trim_end_matches('%');
        if let Some(number) = number::parse(digits) {
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
                Kind::Accuracy => part / whole,
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
            ("Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.300", "step=0 train epoch=1 loss=2.3"),
            (
                "Test set: Average loss: 0.0580, Accuracy: 98/100 (98%)",
                "test set average loss=0.058 val accuracy=0.98",
            ),
            (
                "{'loss': 2.2, 'learning_rate': 0.1, 'epoch': 0.26}",
                "loss=2.2 learning_rate=0.1 epoch=0.26",
            ),
            (
                "11000: 0.05, 0.0857 avg loss, 0.001 rate, 0.88 seconds, 2816000 images",
                "step=11000 avg loss=0.0857",
            ),
            ("[7]\ttrain-rmse:0.5\teval-rmse:0.6", "epoch=7 train-rmse=0.5 eval-rmse=0.6"),
            (
                "[2021/06/03 00:17:35] root INFO: epoch: [1/600], iter: 10, loss: nanxxx",
                "epoch=1 iter=10 loss=NaN",
            ),
            (
                "[Epoch 64 736/1281][Iteration 457] 40.4 records/second. Loss is Infinity. Current \
                 learning rate is 0.04.",
                "epoch=64 iteration=457 loss=inf learning rate=0.04",
            ),
            ("Epoch [3][50/1749]\tlr: 2e-2, loss: 0.7", "step=50 epoch=3 lr=0.02 loss=0.7"),
            ("Loss: tensor(2.3, grad_fn=<NllLossBackward>)", "loss=2.3"),
            ("trainLoss 0.5 trainAcc 0.9", "train_loss=0.5 train_acc=0.9"),
            ("val Loss: 0.5 Acc: 0.75", "val loss=0.5 val acc=0.75"),
            ("INFO:tensorflow:loss = 1.8, step = 316 (18.2 sec)", "loss=1.8 step=316"),
            ("ERROR:tensorflow:Model diverged with loss = NaN.", "loss=NaN"),
            ("Average loss for training: 0.5", "average loss for training=0.5"),
            ("Saving the model to out/ckpt.pt", ""),
        ] {
            assert_eq!(found(line), expected);
        }
    }
}
