//! One step with the statistics of every layer.

use super::Role;
use super::facts::table;
use super::number::{grouped, short};
use super::replay::{Disagreement, value};
use serde_json::{Value, json};
use surefoot_diagnose::Summary;
use surefoot_record::CapsuleFacts;
use surefoot_train::{Origin, Repeated};

/// A step repeated from a capsule.
pub(crate) struct Step<'a> {
    pub(crate) file: String,
    pub(crate) facts: &'a CapsuleFacts,
    pub(crate) repeated: &'a Repeated,
    pub(crate) disagreement: Option<Disagreement>,
}

impl Step<'_> {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let file = Role::Strong.paint(&self.file);
        let (step, epoch) = (grouped(self.facts.step), grouped(self.facts.epoch));
        let run = &self.facts.run;
        let mut lines = vec![
            format!("{file}: step {step} of {run}, in epoch {epoch}"),
            String::new(),
            self.table(),
            String::new(),
            format!("  the loss is {}", short(self.repeated.observation.loss)),
        ];
        if let Some(origin) = &self.repeated.origin {
            lines.push(Role::Error.paint(format!("  {}", sentence(origin))));
        }
        lines.push(match &self.disagreement {
            None => format!("  {}", Role::Good.paint("the digest agrees")),
            Some(found) => {
                let no = Role::Error.paint("the digest differs");
                format!("  {no}: {}", found.what("here, recorded as"))
            }
        });
        lines.join("\n")
    }

    fn table(&self) -> String {
        let seen = &self.repeated.observation;
        let layers = self.repeated.layers.iter().zip(&seen.layers);
        let mut rows =
            vec![["input".to_owned(), size(seen.input.as_ref()), String::new(), String::new()]];
        rows.extend(layers.map(|(info, seen)| {
            [
                info.name.clone(),
                size(seen.output.as_ref()),
                size(seen.gradient.as_ref()),
                size(seen.weight.as_ref()),
            ]
        }));
        table(["layer", "output", "gradient", "weights after"], &rows)
    }

    /// For programs.
    pub(crate) fn event(&self) -> Value {
        let seen = &self.repeated.observation;
        let layers = self.repeated.layers.iter().zip(&seen.layers);
        let layers = layers.map(|(info, seen)| {
            json!({
                "name": info.name,
                "output": numbers(seen.output.as_ref()),
                "gradient": numbers(seen.gradient.as_ref()),
                "weight": numbers(seen.weight.as_ref()),
            })
        });
        let mismatch = self.disagreement.as_ref().map(Disagreement::event);
        json!({
            "event": "step",
            "file": self.file,
            "run": self.facts.run,
            "step": self.facts.step,
            "epoch": self.facts.epoch,
            "loss": value(seen.loss),
            "learning_rate": seen.learning_rate,
            "input": numbers(seen.input.as_ref()),
            "layers": layers.collect::<Vec<_>>(),
            "first_non_finite": self.repeated.origin.as_ref().map(place),
            "digest": self.repeated.digest.digest,
            "agrees": self.disagreement.is_none(),
            "mismatch": mismatch,
        })
    }
}

/// The norm of an array and its non-finite values.
fn size(summary: Option<&Summary>) -> String {
    let Some(summary) = summary else {
        return String::new();
    };
    let mut parts = Vec::new();
    if summary.count > 0 {
        parts.push(format!("norm {}", short(summary.l2)));
    }
    for (count, what) in [(summary.nan, "NaN"), (summary.inf, "infinite")] {
        if count > 0 {
            parts.push(format!("{} {what}", grouped(count)));
        }
    }
    parts.join(", ")
}

fn numbers(summary: Option<&Summary>) -> Value {
    summary.map_or(Value::Null, |summary| {
        json!({
            "count": summary.count,
            "nan": summary.nan,
            "inf": summary.inf,
            "l2": value(summary.l2),
            "min": value(summary.min),
            "max": value(summary.max),
            "mean": value(summary.mean),
        })
    })
}

fn sentence(origin: &Origin) -> String {
    match origin {
        Origin::Before(layer) => {
            format!("the parameters of {layer} were NaN or infinite before the step")
        }
        Origin::Input => "the samples contain NaN or infinity".to_owned(),
        Origin::Output(layer) => format!("NaN or infinity first appears in the output of {layer}"),
        Origin::Loss => "the loss is not finite, although all outputs are".to_owned(),
        Origin::Gradient(layer) => {
            format!("NaN or infinity first appears in the gradient of {layer}")
        }
        Origin::Update(layer) => {
            format!("NaN or infinity first appears in the weight update of {layer}")
        }
    }
}

fn place(origin: &Origin) -> Value {
    let (place, layer) = match origin {
        Origin::Before(layer) => ("parameters_before", Some(layer)),
        Origin::Input => ("input", None),
        Origin::Output(layer) => ("output", Some(layer)),
        Origin::Loss => ("loss", None),
        Origin::Gradient(layer) => ("gradient", Some(layer)),
        Origin::Update(layer) => ("update", Some(layer)),
    };
    json!({"place": place, "layer": layer})
}
