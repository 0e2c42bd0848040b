//! The summary of a run, for people.

use super::Role;
use super::facts::facts;
use super::number::{counted, metric, time};
use surefoot_record::{RunSummary, Status};

/// A summary with what is known besides.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) summary: &'a RunSummary,
    /// The epoch the delivered model is from.
    pub(crate) epoch: Option<u64>,
    /// The delivered model's metric on the test split, if there is one.
    pub(crate) test: Option<Option<f64>>,
}

impl Ending<'_> {
    /// The summary, a line for each fact.
    pub(crate) fn text(&self) -> String {
        let Self { summary, .. } = *self;
        let name = &summary.metric.name;
        let mut lines = vec![("status", self.status())];
        let (before, after) = (summary.metric.before, summary.metric.after);
        let mut value = metric(name, after);
        if before != after {
            value = format!("{} before, {value} after", metric(name, before));
        }
        if let Some(epoch) = self.epoch {
            value.push_str(&format!(" (epoch {epoch})"));
        }
        lines.push((name, value));
        if let Some(test) = self.test {
            lines.push(("test", metric(name, test)));
        }
        let steps = counted(summary.steps, "step");
        lines.push(("trained", format!("{steps} in {}", time(summary.seconds))));
        lines.push(("digest", summary.digest.to_string()));
        lines.push(("run", Role::Strong.paint(&summary.run)));
        let lines: Vec<_> = lines
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        facts(&lines)
    }

    /// How to read the record.
    pub(crate) fn next(&self) -> String {
        let query = format!(
            "duckdb -c \"from '{}/observations.layers.parquet'\"",
            self.summary.run
        );
        format!(
            "\n  The model is in {}, everything observed in Parquet files beside it:\n  {}",
            Role::Strong.paint(format!("{}/model.safetensors", self.summary.run)),
            Role::Literal.paint(query)
        )
    }

    fn status(&self) -> String {
        match self.summary.status {
            Status::Normal => Role::Good.paint("normal"),
            Status::Repaired => Role::Good.paint("repaired"),
            Status::Failed => Role::Error.paint("failed"),
        }
    }
}
