//! Console output of `model.fit` of Keras.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::role::Map;
use crate::logs::rows::{Rows, is_loss, lines, opening, text};
use crate::logs::text::pairs;
use std::path::Path;

/// Console output of Keras during training, with or without progress bars. The last values of an epoch count.
pub(crate) struct KerasConsole;

impl LogFormat for KerasConsole {
    fn name(&self) -> &'static str {
        "Keras output"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        let opening = opening(path)?;
        let mut lines = lines(&opening).skip_while(|line| epoch(line).is_none()).skip(1);
        Ok(lines.any(is_bar))
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
        let text = text(path)?;
        let mut rows = Rows::default();
        let mut end = |epoch: Option<u64>, pairs: Vec<(String, f64)>| {
            if !pairs.is_empty() {
                let epoch = ("epoch".to_owned(), epoch.map(|epoch| epoch as f64));
                let pairs = pairs.into_iter().map(|(name, value)| (name, Some(value)));
                rows.push([epoch].into_iter().chain(pairs));
            }
        };
        let (mut current, mut values) = (None, Vec::new());
        for line in lines(&text) {
            if is_bar(line) {
                values = pairs(line);
            } else if let Some(next) = epoch(line) {
                // Values above the first heading are those of the epoch before it.
                end(current.or(next.checked_sub(1)), std::mem::take(&mut values));
                current = Some(next);
            }
        }
        end(current, values);
        rows.logs(path, self.name(), map)
    }
}

/// Returns true for a line such as `25/25 [====] - 2s - loss: 0.5` or `2s - loss: 0.5`.
fn is_bar(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit())
        && line.contains(" - ")
        && pairs(line).iter().any(|(name, _)| is_loss(name))
}

/// The epoch of a heading: `Epoch 3/40`, or `Epoch 3` before Keras 1.
fn epoch(line: &str) -> Option<u64> {
    let number = line.strip_prefix("Epoch ")?;
    let (part, whole) = number.split_once('/').unwrap_or((number, "0"));
    let _: u64 = whole.trim().parse().ok()?;
    part.trim().parse().ok()
}
