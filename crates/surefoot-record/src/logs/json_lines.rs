//! JSON lines: one object a line, as Detectron2, fairseq and many scripts write.

use crate::logs::LogFormat;
use crate::logs::error::Error;
use crate::logs::log::Log;
use crate::logs::role::Map;
use crate::logs::rows::{Rows, has_extension, opening, pairs, parse_json, text};
use std::path::Path;

/// Files with one JSON object a line.
pub(crate) struct JsonLines;

impl LogFormat for JsonLines {
    fn name(&self) -> &'static str {
        "JSON lines"
    }

    fn recognizes(&self, path: &Path) -> Result<bool, Error> {
        let opening = opening(path)?;
        let mut lines = opening.lines().map(str::trim).filter(|line| !line.is_empty());
        let object = |line: &str| parse_json(line).is_ok_and(|value| value.is_object());
        let first = lines.next().is_some_and(object);
        Ok(first
            && (has_extension(path, &["jsonl", "ndjson"])
                || lines.next().is_some_and(|line| line.starts_with('{'))))
    }

    fn read(&self, path: &Path, map: &Map) -> Result<Vec<Log>, Error> {
        let text = text(path)?;
        let mut rows = Rows::default();
        let mut warnings = Vec::new();
        let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        for (line, number) in lines {
            match parse_json(line) {
                Ok(value) if value.is_object() => rows.push(pairs(&value)),
                _ => warnings.push(format!("line {number} is not a JSON object and is ignored")),
            }
        }
        let mut logs = rows.logs(path, self.name(), map)?;
        if let Some(log) = logs.first_mut() {
            log.warnings.extend(warnings);
        }
        Ok(logs)
    }
}
