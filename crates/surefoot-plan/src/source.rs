//! Data sources: generators and files.

use crate::Task;
use crate::error::Fault;
use crate::language::{
    Choice, Fields, Record, Term, Variant, at_least_two, keys, non_negative, positive, share,
    variant,
};
use crate::tree::{Node, Tree};
use std::path::PathBuf;

/// Names of one or more columns. In TOML: a string or a list of strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(
    /// At least one name.
    pub Vec<String>,
);

impl From<&str> for Columns {
    fn from(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }
}

impl Term for Columns {
    const NOUN: &'static str = "the name of a column or a list of names";

    fn read(node: &Node, key: &str) -> Result<Self, Fault> {
        match &node.value {
            Tree::Text(name) => Ok(name.as_str().into()),
            Tree::List(nodes) if !nodes.is_empty() => {
                let names: Vec<String> = Vec::read(node, key)?;
                match (1..names.len()).find(|&i| names[..i].contains(&names[i])) {
                    Some(i) => Err(Fault::new(
                        nodes[i].span.clone(),
                        format!("`{key}` names the column {:?} twice", names[i]),
                    )),
                    None => Ok(Self(names)),
                }
            }
            _ => Err(Fault::kind(node, key, Self::NOUN)),
        }
    }

    fn write(&self) -> String {
        match &self.0[..] {
            [name] => name.write(),
            names => names.to_vec().write(),
        }
    }
}

/// Source of the samples.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Two concentric circles in the plane; binary.
    Circles {
        /// Number of samples.
        samples: usize,
        /// Standard deviation of the noise.
        noise: f64,
        /// Radius of the inner circle relative to the outer.
        factor: f64,
    },
    /// Gaussian clusters; as many classes as centers.
    Blobs {
        /// Number of samples.
        samples: usize,
        /// Number of clusters.
        centers: usize,
        /// Number of features.
        features: usize,
        /// Standard deviation of each cluster.
        spread: f64,
    },
    /// Two interleaved half circles; binary.
    Moons {
        /// Number of samples.
        samples: usize,
        /// Standard deviation of the noise.
        noise: f64,
    },
    /// Interleaved spirals, one for each class.
    Spirals {
        /// Number of samples.
        samples: usize,
        /// Number of spirals.
        classes: usize,
        /// Turns of each spiral.
        turns: f64,
        /// Standard deviation of the noise.
        noise: f64,
    },
    /// A linear function of normal features, with noise; regression.
    Linear {
        /// Number of samples.
        samples: usize,
        /// Number of features.
        features: usize,
        /// Standard deviation of the noise.
        noise: f64,
    },
    /// Friedman's first function of uniform features; regression.
    Friedman {
        /// Number of samples.
        samples: usize,
        /// Number of features, at least 5.
        features: usize,
        /// Standard deviation of the noise.
        noise: f64,
    },
    /// Sequences of symbols; the class is the symbol of the first step.
    Copy {
        /// Number of samples.
        samples: usize,
        /// Steps of each sequence.
        length: usize,
        /// Number of symbols.
        symbols: usize,
    },
    /// Sequences of bits; the class is their parity; binary.
    Parity {
        /// Number of samples.
        samples: usize,
        /// Steps of each sequence.
        length: usize,
    },
    /// Small gray images of simple shapes (disc, square, triangle, cross, ring, ...), one for each class.
    Shapes {
        /// Number of samples.
        samples: usize,
        /// Height and width.
        size: usize,
        /// Number of channels.
        channels: usize,
        /// Number of classes, 2 to 10.
        classes: usize,
        /// Standard deviation of the noise.
        noise: f64,
    },
    /// A CSV file with a header.
    Csv {
        /// The file, relative to the plan.
        path: PathBuf,
        /// The columns of the target; the last column of the file if absent.
        label: Option<Columns>,
        /// Columns that are not used.
        exclude: Vec<String>,
        /// Columns of categories, each encoded as one input per category.
        categorical: Vec<String>,
    },
    /// A Parquet file.
    Parquet {
        /// The file, relative to the plan.
        path: PathBuf,
        /// The columns of the target; the last column of the file if absent.
        label: Option<Columns>,
    },
    /// Two NumPy files.
    Npy {
        /// Features, samples first.
        features: PathBuf,
        /// Targets, samples first.
        labels: PathBuf,
    },
    /// A NumPy archive.
    Npz {
        /// The file, relative to the plan.
        path: PathBuf,
        /// Name of the features' array.
        features: String,
        /// Name of the targets' array.
        labels: String,
    },
    /// Two IDX files (the format of MNIST), gzipped or not.
    Idx {
        /// Features.
        features: PathBuf,
        /// Targets.
        labels: PathBuf,
    },
    /// A folder of PNG or JPEG images, with one subfolder for each class.
    Images {
        /// The folder, relative to the plan.
        path: PathBuf,
        /// Height and width to scale to; the first image's if absent.
        size: Option<[usize; 2]>,
        /// 1 for gray, 3 for color.
        channels: usize,
    },
}

impl Source {
    /// 1000 samples of two circles; the inner has half the radius of the outer.
    pub fn circles() -> Self {
        Self::Circles { samples: 1000, noise: 0.1, factor: 0.5 }
    }

    /// A CSV file with the target in its last column.
    pub fn csv(path: impl Into<PathBuf>) -> Self {
        Self::Csv { path: path.into(), label: None, exclude: Vec::new(), categorical: Vec::new() }
    }

    /// Name of the kind in a plan.
    pub fn kind(&self) -> &'static str {
        self.variant()
    }

    /// The task of a generator; `None` for files.
    pub fn task(&self) -> Option<Task> {
        match self {
            Self::Circles { .. } | Self::Moons { .. } | Self::Parity { .. } => Some(Task::Binary),
            Self::Blobs { centers: classes, .. }
            | Self::Spirals { classes, .. }
            | Self::Copy { symbols: classes, .. }
            | Self::Shapes { classes, .. } => Some(match classes {
                2 => Task::Binary,
                _ => Task::MultiClass,
            }),
            Self::Linear { .. } | Self::Friedman { .. } => Some(Task::Regression),
            Self::Csv { .. }
            | Self::Parquet { .. }
            | Self::Npy { .. }
            | Self::Npz { .. }
            | Self::Idx { .. }
            | Self::Images { .. } => None,
        }
    }
}

impl Choice for Source {
    const TAG: &'static str = "kind";
    const NOUN: &'static str = "a source";
    const VARIANTS: &'static [Variant<Self>] = &[
        variant("circles", Self::circles),
        variant("blobs", || Self::Blobs { samples: 1000, centers: 3, features: 2, spread: 1.0 }),
        variant("moons", || Self::Moons { samples: 1000, noise: 0.1 }),
        variant("spirals", || Self::Spirals { samples: 1000, classes: 3, turns: 1.0, noise: 0.1 }),
        variant("linear", || Self::Linear { samples: 1000, features: 10, noise: 0.1 }),
        // The noise of Friedman, Multivariate Adaptive Regression Splines, 1991, section 4.3.
        variant("friedman", || Self::Friedman { samples: 1000, features: 10, noise: 1.0 }),
        variant("copy", || Self::Copy { samples: 1000, length: 10, symbols: 8 }),
        variant("parity", || Self::Parity { samples: 1000, length: 8 }),
        variant("shapes", || Self::Shapes {
            samples: 1000,
            size: 28,
            channels: 1,
            classes: 4,
            noise: 0.1,
        }),
        variant("csv", || Self::csv("")),
        variant("parquet", || Self::Parquet { path: PathBuf::new(), label: None }),
        variant("npy", || Self::Npy { features: PathBuf::new(), labels: PathBuf::new() }),
        variant("npz", || Self::Npz {
            path: PathBuf::new(),
            features: "x".to_owned(),
            labels: "y".to_owned(),
        }),
        variant("idx", || Self::Idx { features: PathBuf::new(), labels: PathBuf::new() }),
        variant("images", || Self::Images { path: PathBuf::new(), size: None, channels: 3 }),
    ];
}

impl Record for Source {
    fn fields<'a, F: Fields<'a>>(&'a mut self, f: &mut F) {
        match self {
            Self::Circles { samples, noise, factor } => {
                keys! { f; optional: samples, noise(non_negative), factor(share); }
            }
            Self::Blobs { samples, centers, features, spread } => {
                keys! { f;
                    optional: samples, centers(at_least_two), features, spread(non_negative);
                }
            }
            Self::Moons { samples, noise } => keys! { f; optional: samples, noise(non_negative); },
            Self::Spirals { samples, classes, turns, noise } => {
                keys! { f;
                    optional: samples, classes(at_least_two), turns(positive), noise(non_negative);
                }
            }
            Self::Linear { samples, features, noise } => {
                keys! { f; optional: samples, features, noise(non_negative); }
            }
            Self::Friedman { samples, features, noise } => {
                keys! { f; optional: samples, features(at_least_five), noise(non_negative); }
            }
            Self::Copy { samples, length, symbols } => {
                keys! { f; optional: samples, length, symbols(at_least_two); }
            }
            Self::Parity { samples, length } => keys! { f; optional: samples, length; },
            Self::Shapes { samples, size, channels, classes, noise } => {
                keys! { f;
                    optional: samples, size, channels, classes(two_to_ten), noise(non_negative);
                }
            }
            Self::Csv { path, label, exclude, categorical } => {
                keys! { f; required: path; maybe: label; optional: exclude, categorical; }
            }
            Self::Parquet { path, label } => keys! { f; required: path; maybe: label; },
            Self::Npy { features, labels } | Self::Idx { features, labels } => {
                keys! { f; required: features, labels; }
            }
            Self::Npz { path, features, labels } => {
                keys! { f; required: path; optional: features, labels; }
            }
            Self::Images { path, size, channels } => {
                keys! { f; required: path; maybe: size; optional: channels(gray_or_color); }
            }
        }
    }
}

fn at_least_five(features: &usize) -> Result<(), &'static str> {
    match features {
        0..5 => Err("be at least 5"),
        _ => Ok(()),
    }
}

fn two_to_ten(classes: &usize) -> Result<(), &'static str> {
    match classes {
        2..=10 => Ok(()),
        _ => Err("be from 2 to 10"),
    }
}

fn gray_or_color(channels: &usize) -> Result<(), &'static str> {
    match channels {
        1 | 3 => Ok(()),
        _ => Err("be 1 for gray or 3 for color"),
    }
}
