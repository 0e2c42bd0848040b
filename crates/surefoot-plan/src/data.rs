//! Data: source and preparation of samples.

use crate::Source;
use crate::error::Fault;
use crate::language::{
    Choice, Fields, Record, Term, Variant, alias, keys, read_record, share, variant, write_record,
};
use crate::tree::Node;

/// Data of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// A generator or files.
    pub source: Source,
    /// File to evaluate the model on after each epoch, instead of a fraction of the samples. Same kind
    /// as `source`.
    pub validation: Option<Source>,
    /// Kind of the targets; inferred if absent.
    pub task: Option<Task>,
    /// Treatment of missing features.
    pub missing: Missing,
    /// Treatment of outliers among the features; fitted on the training split only.
    pub outliers: Outliers,
    /// Scaling of the features; fitted on the training split only.
    pub scale: Scale,
    /// Scaling of the targets of a regression; fitted on the training split only.
    pub target_scale: Scale,
    /// Division into training, validation and test split.
    pub split: SplitFractions,
}

/// Kind of the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// One of two classes.
    Binary,
    /// One of several classes.
    MultiClass,
    /// One or more numbers.
    Regression,
    /// Any number of labels, each 0 or 1.
    MultiLabel,
}

/// Treatment of missing features: empty, NaN or infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Keeps them. The diagnosis reports them, and the repair imputes them.
    #[default]
    Keep,
    /// The first one is an error that names its position.
    Refuse,
    /// Drops samples that lack a feature or a target.
    Drop,
    /// Replaces them with the mean of the feature (images: of the channel) in the training split.
    Impute,
}

/// Treatment of outliers among the features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outliers {
    /// Keeps them.
    #[default]
    Keep,
    /// Clips them at three interquartile ranges beyond the quartiles.
    Clip,
    /// Drops training samples with values that `Clip` would clip.
    Drop,
}

/// Scaling of the features or targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// To mean 0 and variance 1, for each feature (images: each channel).
    Standardise,
    /// To 0..1, for each feature (images: each channel).
    MinMax,
    /// No scaling.
    #[default]
    None,
}

/// Fractions of the splits. A keyed draw assigns samples, so each sample is always in the same split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitFractions {
    /// Fraction of samples used to evaluate the model after each epoch. Not used if there is a
    /// validation file.
    pub validation: f64,
    /// Fraction of samples held out for the end.
    pub test: f64,
}

impl Default for SplitFractions {
    fn default() -> Self {
        Self { validation: 0.2, test: 0.0 }
    }
}

impl Data {
    /// Data from a source, without preparation.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            validation: None,
            task: None,
            missing: Missing::Keep,
            outliers: Outliers::Keep,
            scale: Scale::None,
            target_scale: Scale::None,
            split: SplitFractions::default(),
        }
    }

    /// The task in the plan, or that of the generator.
    pub fn known_task(&self) -> Option<Task> {
        self.task.or(self.source.task())
    }
}

impl Record for Data {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        keys! { f, self;
            required: source;
            maybe: validation, task;
            optional: missing, outliers, scale, target_scale, split;
        }
    }

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let Some(validation) = &self.validation else {
            return Ok(());
        };
        if validation.kind() != self.source.kind() {
            return Err(("validation", "`validation` must have the kind of `source`"));
        }
        match validation {
            Source::Csv { label: None, exclude, categorical, .. }
                if exclude.is_empty() && categorical.is_empty() =>
            {
                Ok(())
            }
            Source::Parquet { label: None, .. } => Ok(()),
            Source::Csv { .. } | Source::Parquet { .. } => {
                Err(("validation", "`validation` has the columns of `source`: give `path` alone"))
            }
            Source::Images { size: None, .. } => Ok(()),
            Source::Images { .. } => {
                Err(("validation", "`validation` has the image size of `source`: leave out `size`"))
            }
            Source::Npy { .. } | Source::Npz { .. } | Source::Idx { .. } => Ok(()),
            _ => Err(("validation", "`validation` must be a file")),
        }
    }
}

impl Record for Task {}

impl Choice for Task {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "a task";
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("binary", || Self::Binary),
        variant("multi_class", || Self::MultiClass),
        variant("multi_label", || Self::MultiLabel),
        variant("regression", || Self::Regression),
    ];
}

impl Task {
    /// The task with this name in a plan.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Binary, Self::MultiClass, Self::MultiLabel, Self::Regression]
            .into_iter()
            .find(|task| task.name() == name)
    }

    /// Name in a plan.
    pub fn name(&self) -> &'static str {
        self.variant()
    }
}

impl Record for Missing {}

impl Choice for Missing {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "a treatment of missing values";
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("keep", || Self::Keep),
        variant("refuse", || Self::Refuse),
        variant("drop", || Self::Drop),
        variant("impute", || Self::Impute),
    ];
}

impl Record for Outliers {}

impl Choice for Outliers {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "a treatment of outliers";
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("keep", || Self::Keep),
        variant("clip", || Self::Clip),
        variant("drop", || Self::Drop),
    ];
}

impl Record for Scale {}

impl Choice for Scale {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "a scale";
    const VARIANTS: &'static [Variant<Self>] = &[
        alias("standardise", &["standardize"], || Self::Standardise),
        variant("min_max", || Self::MinMax),
        variant("none", || Self::None),
    ];
}

impl Record for SplitFractions {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        keys! { f, self; optional: validation(share), test(share); }
    }

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        match self.validation + self.test < 1.0 {
            true => Ok(()),
            false => Err((
                "test",
                "`validation` and `test` must leave samples to train on: together below 1",
            )),
        }
    }
}

impl Term for SplitFractions {
    const NOUN: &'static str = "a table with `validation` and `test`";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        read_record(node, key)
    }

    fn write(&self) -> String {
        write_record(self)
    }
}

#[cfg(test)]
mod tests {
    use crate::Plan;

    fn data(lines: &str) -> Result<(), String> {
        let text = format!(
            "[data]\n{lines}\n[[model]]\nlayer = \"dense\"\nunits = 1\n[training]\nepochs = 1\n\
             loss = \"mse\"\n"
        );
        let plan = Plan::parse(&text, "plan.toml").map_err(|error| error.message)?;
        assert_eq!(Plan::parse(&plan.to_toml(), "again").unwrap(), plan);
        Ok(())
    }

    #[test]
    fn a_validation_file_has_the_kind_and_the_columns_of_the_source() {
        let csv = |more: &str| {
            data(&format!(
                "source = {{ kind = \"csv\", path = \"a.csv\", label = \"y\" }}\n\
                 validation = {{ kind = \"csv\", path = \"b.csv\"{more} }}"
            ))
        };
        assert_eq!(csv(""), Ok(()));
        let error = csv(", label = \"z\"").unwrap_err();
        assert_eq!(error, "`validation` has the columns of `source`: give `path` alone");
        let error = data("source = \"moons\"\nvalidation = { kind = \"npz\", path = \"b.npz\" }");
        assert_eq!(error.unwrap_err(), "`validation` must have the kind of `source`");
        let error = data("source = \"moons\"\nvalidation = \"moons\"").unwrap_err();
        assert_eq!(error, "`validation` must be a file");
    }

    #[test]
    fn a_label_is_a_column_or_several_columns() {
        let csv = |label: &str| {
            data(&format!("source = {{ kind = \"csv\", path = \"a.csv\", label = {label} }}"))
        };
        assert_eq!(csv("\"y\""), Ok(()));
        assert_eq!(csv("[\"y\", \"z\"]"), Ok(()));
        assert_eq!(csv("[\"y\", \"y\"]").unwrap_err(), "`label` names the column \"y\" twice");
        assert!(csv("[]").is_err());
        assert!(csv("5").is_err());
    }
}
