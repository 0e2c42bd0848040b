//! The curve files of TaskSet (Metz et al., 2020).

use super::record::{RecordedTrial, Task};
use crate::space::{Point, Value};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use surefoot_diagnose::{Evaluation, Quantity, Split};

/// Error in a curve file.
#[derive(Debug, thiserror::Error)]
pub enum TaskSetError {
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// Path.
        file: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file is not a JSON list.
    #[error("{}: {message}", file.display())]
    File {
        /// Path.
        file: PathBuf,
        /// Cause.
        message: String,
    },
    /// An entry is not a trial.
    #[error("{}: entry {entry}: {message}", file.display())]
    Entry {
        /// Path.
        file: PathBuf,
        /// 0-based index of the entry.
        entry: usize,
        /// Cause.
        message: String,
    },
}

/// A loss. Python writes NaN and infinities as bare words, others as strings or `null`.
#[derive(Deserialize)]
#[serde(transparent)]
struct Loss(#[serde(with = "surefoot_diagnose::number::optional")] Option<f64>);

#[derive(Deserialize)]
struct Curve {
    loss: Vec<Loss>,
}

impl Curve {
    fn losses(&self) -> Vec<f64> {
        self.loss.iter().map(|loss| loss.0.unwrap_or(f64::NAN)).collect()
    }
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    hp: BTreeMap<String, Value>,
    train: Curve,
    valid: Curve,
}

/// Reads a list of `{"hp": {..}, "train": {"loss": [..]}, "valid": {"loss": [..]}}`, one entry per
/// configuration. Indicators use the training losses; the validation losses are the costs.
pub fn read_taskset(file: &Path) -> Result<Task, TaskSetError> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| TaskSetError::Read { file: file.to_owned(), source })?;
    let entries: Vec<serde_json::Value> =
        serde_json::from_str(&quoted(&text)).map_err(|error| TaskSetError::File {
            file: file.to_owned(),
            message: error.to_string(),
        })?;
    let trials = entries.into_iter().enumerate().map(|(entry, value)| {
        trial(value).map_err(|message| TaskSetError::Entry {
            file: file.to_owned(),
            entry,
            message,
        })
    });
    let name = file.file_stem().unwrap_or(file.as_os_str());
    Ok(Task {
        name: name.to_string_lossy().into_owned(),
        trials: trials.collect::<Result<_, _>>()?,
    })
}

fn trial(value: serde_json::Value) -> Result<RecordedTrial, String> {
    let entry: Entry = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let (training, costs) = (entry.train.losses(), entry.valid.losses());
    if training.len() != costs.len() || costs.is_empty() {
        return Err(format!(
            "it has {} training losses and {} validation losses; it takes as many of both, and some",
            training.len(),
            costs.len()
        ));
    }
    let mut trial = RecordedTrial::from_losses(&training, &costs);
    for (number, epoch) in (1..).zip(&mut trial.epochs) {
        epoch.evaluations.push(Evaluation {
            epoch: number,
            step: number,
            split: Split::Validation,
            loss: epoch.cost,
            metric: None,
        });
    }
    trial.available.insert(Quantity::Validation);
    trial.point = Some(Point(entry.hp));
    Ok(trial)
}

/// Quotes bare `NaN`, `Infinity` and `-Infinity` outside strings, for `surefoot_diagnose::number`.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = text;
    let mut in_string = false;
    while let Some(next) = rest.chars().next() {
        let bare = ["NaN", "Infinity", "-Infinity"]
            .into_iter()
            .find(|word| !in_string && rest.starts_with(word));
        if let Some(word) = bare {
            out.extend(["\"", word, "\""]);
            rest = &rest[word.len()..];
            continue;
        }
        // An escaped quote does not end a string.
        let taken = if in_string && next == '\\' {
            rest.chars().take(2).map(char::len_utf8).sum()
        } else {
            in_string ^= next == '"';
            next.len_utf8()
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Task, TaskSetError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("made_up.json");
        std::fs::write(&file, text).unwrap();
        read_taskset(&file)
    }

    #[test]
    fn all_spellings_of_nan_are_read() {
        let task = read(
            r#"[{"hp": {"rate": 0.1, "note": "a \"NaN\""}, "train": {"loss": [1.0, NaN, null]},
                 "valid": {"loss": [Infinity, -Infinity, "NaN"]}, "test": {"loss": []}}]"#,
        )
        .unwrap();
        assert_eq!(task.name, "made_up");
        let trial = &task.trials[0];
        let costs: Vec<f64> = trial.epochs.iter().map(|epoch| epoch.cost).collect();
        assert_eq!(costs[..2], [f64::INFINITY, f64::NEG_INFINITY]);
        assert!(costs[2].is_nan() && trial.truth.is_some_and(f64::is_nan));
        assert!(trial.epochs[1].observations[0].loss.is_nan());
        let point = trial.point.as_ref().unwrap();
        assert_eq!(point.get("note"), Some(&Value::Text("a \"NaN\"".to_owned())));
    }

    #[test]
    fn errors_name_file_and_entry() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        let good = r#"{"train": {"loss": [1]}, "valid": {"loss": [1]}}"#;
        let short = r#"{"train": {"loss": [1, 2]}, "valid": {"loss": [1]}}"#;
        let both = error(&format!("[{good}, {short}]"));
        assert!(both.contains("made_up.json: entry 1: it has 2 training"), "{both}");
        let word = error(r#"[{"train": {"loss": ["much"]}, "valid": {"loss": [1]}}]"#);
        assert!(word.contains("entry 0: invalid value"), "{word}");
        assert!(error(r#"[{"valid": {"loss": []}}]"#).contains("missing field `train`"));
        assert!(error("[").contains("made_up.json: EOF"));
        let nowhere = read_taskset(Path::new("nowhere.json")).unwrap_err();
        assert!(nowhere.to_string().starts_with("nowhere.json: "));
    }
}
