//! Data: where samples come from and how they are prepared.

use crate::Source;
use crate::error::Fault;
use crate::language::{
    Choice, Fields, Record, Term, Variant, alias, any, read_record, share, variant, write_record,
};
use crate::tree::Node;

/// What a run learns from.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// A generator or files.
    pub source: Source,
    /// What the targets are; inferred from them if absent.
    pub task: Option<Task>,
    /// What to do about missing features.
    pub missing: Missing,
    /// What to do about outliers among the features; fitted on the training part alone.
    pub outliers: Outliers,
    /// How to scale the features; fitted on the training part alone.
    pub scale: Scale,
    /// How to divide the samples.
    pub split: Split,
}

/// What the targets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// One of two classes.
    Binary,
    /// One of several classes.
    MultiClass,
    /// One or more numbers.
    Regression,
}

/// What is done about features that are missing: empty, NaN or infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// The first one is an error that names its place.
    #[default]
    Refuse,
    /// Samples that lack a feature or a target are left out.
    Drop,
    /// The mean of the feature (images: of the channel) over the training part stands in.
    Impute,
}

/// What is done about features far from the others of their kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outliers {
    /// They are left as they are.
    #[default]
    Keep,
    /// They are cut to three times the interquartile range beyond the quartiles.
    Clip,
}

/// How features are scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// To mean 0 and variance 1, feature by feature (images: channel by channel).
    Standardise,
    /// To 0..1, likewise.
    MinMax,
    /// Left as they are.
    #[default]
    None,
}

/// How samples are divided, by key: the same sample is always in the same part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// Share of samples used to judge the model after each epoch.
    pub validation: f64,
    /// Share of samples kept for the end.
    pub test: f64,
}

impl Default for Split {
    fn default() -> Self {
        Self { validation: 0.2, test: 0.0 }
    }
}

impl Data {
    /// Data from a source, as they are.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            task: None,
            missing: Missing::Refuse,
            outliers: Outliers::Keep,
            scale: Scale::None,
            split: Split::default(),
        }
    }

    /// The task as stated, or that of the generator.
    pub fn known_task(&self) -> Option<Task> {
        self.task.or(self.source.task())
    }
}

impl Record for Data {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        f.required("source", &mut self.source, any);
        f.maybe("task", &mut self.task, any);
        f.optional("missing", &mut self.missing, any);
        f.optional("outliers", &mut self.outliers, any);
        f.optional("scale", &mut self.scale, any);
        f.optional("split", &mut self.split, any);
    }
}

impl Record for Task {}

impl Choice for Task {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "a task";
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("binary", || Self::Binary),
        variant("multi_class", || Self::MultiClass),
        variant("regression", || Self::Regression),
    ];
}

impl Task {
    /// The name it has in a plan.
    pub fn name(&self) -> &'static str {
        self.variant()
    }
}

impl Record for Missing {}

impl Choice for Missing {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "a treatment of missing values";
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("refuse", || Self::Refuse),
        variant("drop", || Self::Drop),
        variant("impute", || Self::Impute),
    ];
}

impl Record for Outliers {}

impl Choice for Outliers {
    const TAG: &'static str = "name";
    const NOUN: &'static str = "a treatment of outliers";
    const VARIANTS: &'static [Variant<Self>] =
        &[variant("keep", || Self::Keep), variant("clip", || Self::Clip)];
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

impl Record for Split {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        f.optional("validation", &mut self.validation, share);
        f.optional("test", &mut self.test, share);
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

impl Term for Split {
    const NOUN: &'static str = "a table with `validation` and `test`";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        read_record(node, key)
    }

    fn write(&self) -> String {
        write_record(self)
    }
}
