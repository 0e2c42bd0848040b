//! The summary of a run, for people.

use super::Role;
use super::facts::facts;
use super::number::{counted, metric, time};
use surefoot_diagnose::detectors;
use surefoot_record::RunSummary;

/// A summary with facts that are not recorded in it.
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
        if !summary.problems.is_empty() {
            lines.push(("problems", self.problems()));
        }
        if !summary.remedies.is_empty() {
            lines.push(("remedies", summary.remedies.join(", ")));
        }
        if !summary.failed_detectors.is_empty() {
            let failed = summary.failed_detectors.join(", ");
            lines.push(("detectors", Role::Warning.paint(format!("crashed: {failed}"))));
        }
        let (before, after) = (summary.metric.before, summary.metric.after);
        let mut value = metric(name, after);
        if !summary.remedies.is_empty() {
            let after = Role::Strong.paint(value);
            value = format!("{} → {after}", metric(name, before));
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
        let lines: Vec<_> =
            lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        facts(&lines)
    }

    fn problems(&self) -> String {
        let known: Vec<_> = detectors::all().iter().map(|d| d.problem()).collect();
        let title = |id: &String| {
            let problem = known.iter().find(|problem| problem.id() == id);
            problem.map_or_else(|| id.clone(), |problem| problem.title())
        };
        let titles: Vec<String> = self.summary.problems.iter().map(title).collect();
        titles.join(", ")
    }

    /// Suggested next commands.
    pub(crate) fn next(&self) -> String {
        let run = &self.summary.run;
        let model = Role::Strong.paint(format!("{run}/model.safetensors"));
        if self.summary.problems.is_empty() {
            let query = format!("duckdb -c \"from '{run}/observations.layers.parquet'\"");
            return format!(
                "\n  The model is in {model}, everything observed in Parquet files beside it:\n  {}",
                Role::Literal.paint(query)
            );
        }
        let mut lines = vec![("model", model)];
        if !self.summary.remedies.is_empty() {
            let plan = Role::Strong.paint(format!("{run}/plan.final.toml"));
            lines.push(("repaired plan", plan));
        }
        let report = Role::Literal.paint(format!("surefoot report {run}"));
        lines.push(("see what happened", report));
        let lines: Vec<_> =
            lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        format!("\n{}", facts(&lines))
    }

    fn status(&self) -> String {
        let status = self.summary.status;
        let role = if status.is_success() { Role::Good } else { Role::Error };
        role.paint(status.name())
    }
}
