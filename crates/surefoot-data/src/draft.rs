//! Drafts a plan for a CSV file: target, encodings, excluded columns and a small model.

use std::fmt::Write as _;
use std::path::Path;

use surefoot_plan::{Data, Missing, Scale, Source, SplitFractions, Task};

use crate::csv::{Profile, profile};
use crate::error::DataError;
use crate::table::label_columns;

/// A text column with more categories than this is left out.
const MOST_CATEGORIES: usize = 50;

/// Column names that are usually the target, in lower case.
const TARGETS: [&str; 6] = ["target", "label", "class", "y", "outcome", "output"];

/// Optimizer steps that a drafted plan trains for, about.
const STEPS: usize = 3000;

/// A plan for a file, and the choices that were made.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The plan as commented TOML.
    pub text: String,
    /// Column of the target.
    pub target: String,
    /// Inferred task.
    pub task: Task,
    /// Encoded columns with their number of categories.
    pub categorical: Vec<(String, usize)>,
    /// Excluded columns with the reasons.
    pub excluded: Vec<(String, String)>,
    /// Number of samples.
    pub samples: usize,
    /// Number of inputs of the model.
    pub inputs: usize,
}

/// Drafts a plan for the CSV file `path`, which the plan refers to as `name`. Without a `target`, a
/// column with a usual name is taken, or else the last one.
///
/// # Errors
///
/// If the file cannot be trained on, see [`DataError`].
pub fn draft(path: &Path, name: &Path, target: Option<&str>) -> Result<Draft, DataError> {
    let columns = profile(path)?;
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let usual = names.iter().find(|name| TARGETS.contains(&name.to_ascii_lowercase().as_str()));
    let chosen: Vec<String> = target.map(str::to_owned).or(usual.cloned()).into_iter().collect();
    // One name, or the last column.
    let label = label_columns(path, &names, &chosen)?[0];
    let why_target = match (target, usual) {
        (Some(_), _) => "as given",
        (None, Some(_)) => "by its name",
        (None, None) => "the last column",
    };
    let (mut categorical, mut excluded) = (Vec::new(), Vec::new());
    let mut has_gaps = false;
    for (at, column) in columns.iter().enumerate() {
        if at == label {
            continue;
        }
        if let Some(reason) = reason_to_exclude(column) {
            excluded.push((column.name.clone(), reason));
            continue;
        }
        has_gaps |= column.missing > 0;
        if column.texts > 0 {
            categorical.push((column.name.clone(), column.distinct));
        }
    }
    let missing = match (columns[label].missing > 0, has_gaps) {
        (true, _) => Missing::Drop,
        (false, true) => Missing::Impute,
        (false, false) => Missing::Keep,
    };
    let first = |pairs: &[(String, String)]| pairs.iter().map(|pair| pair.0.clone()).collect();
    let data = Data {
        missing,
        scale: Scale::Standardise,
        split: SplitFractions { validation: 0.2, test: 0.0 },
        ..Data::new(Source::Csv {
            path: path.to_owned(),
            label: Some(names[label].as_str().into()),
            exclude: first(&excluded),
            categorical: categorical.iter().map(|(name, _)| name.clone()).collect(),
        })
    };
    // Loading finds whatever else is wrong with the file.
    let set = crate::load(&data, 0, Path::new(""))?;
    let mut draft = Draft {
        text: String::new(),
        target: names[label].clone(),
        task: set.task,
        categorical,
        excluded,
        samples: set.train.len + set.validation.len,
        inputs: set.input_shape.iter().product(),
    };
    draft.text = draft.write(name, why_target, missing, &set.class_names, set.train.len);
    Ok(draft)
}

/// The reason why a column is of no use as a feature.
fn reason_to_exclude(column: &Profile) -> Option<String> {
    let rows = column.rows;
    let name = column.name.to_ascii_lowercase();
    let is_id = matches!(name.as_str(), "" | "id" | "index" | "uuid" | "key" | "unnamed: 0")
        || name.ends_with("_id")
        || column.name.ends_with("Id");
    if column.missing == rows {
        Some("empty".to_owned())
    } else if column.distinct < 2 && column.missing == 0 {
        Some("constant".to_owned())
    } else if 2 * column.missing > rows {
        Some(format!("{}% empty", 100 * column.missing / rows))
    } else if column.is_counter || is_id && column.distinct == rows {
        Some("numbers the rows".to_owned())
    } else if column.texts > 0 && column.distinct > MOST_CATEGORIES {
        Some("too many different texts".to_owned())
    } else {
        None
    }
}

impl Draft {
    fn write(
        &self,
        name: &Path,
        why_target: &str,
        missing: Missing,
        classes: &[String],
        train: usize,
    ) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let mut line = |content: &str| {
            let _ = writeln!(text, "{content}");
        };
        let stem = name.file_stem().map_or("plan".into(), |stem| stem.to_string_lossy());
        line(&format!("# Drafted by `surefoot init` from {} samples.", self.samples));
        line("# Train it with `surefoot train`; docs/plan.md describes every key.");
        line("version = 1");
        line(&format!("name = {}", quoted(&stem)));
        line("seed = 1");
        line("");
        line("[data]");
        let task = match self.task {
            Task::Regression => "numbers".to_owned(),
            Task::MultiLabel => format!("{} labels", classes.len()),
            Task::Binary | Task::MultiClass => format!("{} classes", classes.len()),
        };
        line(&format!("task = {}  # inferred: the target has {task}", quoted(self.task.name())));
        match missing {
            Missing::Keep | Missing::Refuse => {}
            Missing::Impute => line("missing = \"impute\"  # empty cells become the mean"),
            Missing::Drop => line("missing = \"drop\"  # some rows have no target"),
        }
        line("scale = \"standardise\"  # each input has mean 0 and variance 1");
        line("split = { validation = 0.2 }");
        line("");
        line("[data.source]");
        line("kind = \"csv\"");
        line(&format!("path = {}", quoted(&name.to_string_lossy())));
        line(&format!("label = {}  # the target: {why_target}", quoted(&self.target)));
        if !self.categorical.is_empty() {
            line("# Text columns, one input per category:");
            line("categorical = [");
            for (column, count) in &self.categorical {
                line(&format!("    {},  # {count} categories", quoted(column)));
            }
            line("]");
        }
        if !self.excluded.is_empty() {
            line("# Columns that are not used:");
            line("exclude = [");
            for (column, reason) in &self.excluded {
                line(&format!("    {},  # {reason}", quoted(column)));
            }
            line("]");
        }
        let (units, outputs, activation, loss) = self.model(classes.len(), train);
        line("");
        line(&format!("# {} inputs", self.inputs));
        for _ in 0..2 {
            line("[[model]]");
            line("layer = \"dense\"");
            line(&format!("units = {units}"));
            line("activation = \"relu\"");
            line("kernel_initializer = \"he_normal\"");
            line("");
        }
        line("[[model]]");
        line("layer = \"dense\"");
        line(&format!("units = {outputs}"));
        if let Some(activation) = activation {
            line(&format!("activation = {}", quoted(activation)));
        }
        let batch = 32;
        let epochs = (STEPS / train.div_ceil(batch).max(1)).clamp(5, 200);
        line("");
        line("[training]");
        line(&format!("epochs = {epochs}"));
        line(&format!("batch_size = {batch}"));
        line(&format!("loss = {}", quoted(loss)));
        line("optimizer = { name = \"adam\", learning_rate = 0.001 }");
        text
    }

    /// Hidden units, output units, output activation and loss.
    fn model(&self, classes: usize, train: usize) -> (usize, usize, Option<&str>, &str) {
        let units = match train {
            0..400 => 16,
            400..4000 => 32,
            _ => 64,
        };
        match self.task {
            Task::Binary => (units, 1, Some("sigmoid"), "binary_crossentropy"),
            Task::MultiLabel => (units, classes, Some("sigmoid"), "binary_crossentropy"),
            Task::MultiClass => {
                (units, classes, Some("softmax"), "sparse_categorical_crossentropy")
            }
            Task::Regression => (units, 1, None, "mse"),
        }
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_plan::Plan;

    fn drafted(text: &str, target: Option<&str>) -> Result<Draft, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.csv");
        std::fs::write(&path, text).unwrap();
        let draft =
            draft(&path, Path::new("data.csv"), target).map_err(|error| error.to_string())?;
        // The plan is valid, and its data load.
        let plan = Plan::parse(&draft.text, "plan.toml").unwrap();
        let set = crate::load(&plan.data, plan.seed, dir.path()).unwrap();
        assert_eq!(set.input_shape, [draft.inputs]);
        Ok(draft)
    }

    /// Rows of `ID,constant,note,city,age,size,TARGET`.
    fn table(target: &str, value: impl Fn(u32) -> String) -> String {
        let mut text = format!("id,same,note,city,age,size,{target}\n");
        for row in 0..100 {
            let age = if row % 10 == 3 { String::new() } else { (row * 7 % 50).to_string() };
            let city = ["Rome", "Oslo", "O\"Brien"][(row % 3) as usize].replace('"', "\"\"");
            let value = value(row);
            let size = f64::from(row * 13 % 40) / 4.0;
            text.push_str(&format!("{row},1,text {row},\"{city}\",{age},{size},{value}\n"));
        }
        text
    }

    #[test]
    fn identifiers_constants_and_texts_are_left_out_and_categories_encoded() {
        let text = table("sick", |row| if row % 3 == 0 { "yes".into() } else { "no".into() });
        let found = drafted(&text, None).unwrap();
        assert_eq!((found.target.as_str(), found.task), ("sick", Task::Binary));
        assert_eq!(found.categorical, [("city".to_owned(), 3)]);
        let excluded: Vec<(&str, &str)> =
            found.excluded.iter().map(|(name, why)| (name.as_str(), why.as_str())).collect();
        assert_eq!(
            excluded,
            [
                ("id", "numbers the rows"),
                ("same", "constant"),
                ("note", "too many different texts")
            ]
        );
        assert!(found.text.contains("missing = \"impute\""), "{}", found.text);
        assert!(found.text.contains("loss = \"binary_crossentropy\""));
        assert_eq!(found.inputs, 5);
    }

    #[test]
    fn the_target_decides_the_task() {
        let found = drafted(&table("grade", |row| (row % 4).to_string()), None).unwrap();
        assert_eq!(found.task, Task::MultiClass);
        assert!(found.text.contains("units = 4\nactivation = \"softmax\""), "{}", found.text);
        let found = drafted(&table("price", |row| format!("{row}.5")), None).unwrap();
        assert_eq!(found.task, Task::Regression);
        assert!(found.text.contains("loss = \"mse\""));
    }

    #[test]
    fn a_column_with_a_usual_name_is_the_target() {
        let text = "Class,a,b\n0,1.5,2\n1,2.5,1\n0,1,4\n1,3,3\n0,2,2\n";
        assert_eq!(drafted(text, None).unwrap().target, "Class");
        let found = drafted(text, Some("a")).unwrap();
        assert_eq!((found.target.as_str(), found.task), ("a", Task::Regression));
        let error = drafted(text, Some("c")).unwrap_err();
        assert!(error.contains("has no column \"c\""), "{error}");
    }

    #[test]
    fn rows_without_a_target_are_dropped() {
        let text = table("y", |row| if row == 5 { String::new() } else { format!("{row}.25") });
        let found = drafted(&text, None).unwrap();
        assert!(found.text.contains("missing = \"drop\""), "{}", found.text);
        assert_eq!(found.samples, 89);
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a \"b\" \\ c\u{7}"), "\"a \\\"b\\\" \\\\ c\\u0007\"");
    }
}
