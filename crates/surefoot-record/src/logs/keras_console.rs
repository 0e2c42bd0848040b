//! Console output of `model.fit` of Keras.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::role::Map;
use crate::logs::rows::{Rows, opening, text};
use crate::logs::text::{is_loss, pairs};
use std::path::Path;

/// What Keras prints while it trains, with or without progress bars. The last values of an epoch count.
pub(crate) struct KerasConsole;

impl LogFormat for KerasConsole {
    fn name(&self) -> &'static str {
        "Keras output"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        let opening = opening(path)?;
        let mut lines = lines(&opening).skip_while(|line| epoch(line).is_none()).skip(1);
        Ok(lines.any(|line| line.contains(" - ") && pairs(line).iter().any(is_loss)))
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
        let text = text(path)?;
        let mut rows = Rows::default();
        let mut current: Option<(u64, Vec<(String, f64)>)> = None;
        let mut end = |ended: Option<(u64, Vec<(String, f64)>)>| {
            if let Some((epoch, pairs)) = ended.filter(|(_, pairs)| !pairs.is_empty()) {
                let epoch = ("epoch".to_owned(), Some(epoch as f64));
                let pairs = pairs.into_iter().map(|(name, value)| (name, Some(value)));
                rows.push([epoch].into_iter().chain(pairs));
            }
        };
        for line in lines(&text) {
            if let Some(epoch) = epoch(line) {
                end(current.replace((epoch, Vec::new())));
            } else if let Some((_, values)) = &mut current {
                let found = pairs(line);
                if found.iter().any(is_loss) {
                    *values = found;
                }
            }
        }
        end(current);
        rows.logs(path, self.name(), map)
    }
}

/// Lines of the text. A progress bar returns to the start of its line, or deletes what it wrote.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r', '\u{8}']).map(str::trim).filter(|line| !line.is_empty())
}

/// The epoch of `Epoch 3/40`.
fn epoch(line: &str) -> Option<u64> {
    let (part, whole) = line.strip_prefix("Epoch ")?.split_once('/')?;
    let _: u64 = whole.trim().parse().ok()?;
    part.trim().parse().ok()
}
