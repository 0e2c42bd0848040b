//! Training plans: data, model, training options and seed, read from TOML.
//!
//! A [`Plan`] determines a training run. It is parsed from TOML, validated, and printed as TOML
//! that reads as the same plan. The model is a list of [`Layer`]s. `docs/plan.md` documents every
//! key.
//!
//! ```
//! use surefoot_plan::{Plan, TargetShape};
//!
//! let plan = Plan::parse(
//!     r#"
//!     seed = 7
//!
//!     [data]
//!     source = { kind = "circles", samples = 500 }
//!     scale = "standardise"
//!
//!     [[model]]
//!     layer = "dense"
//!     units = 8
//!     activation = "relu"
//!
//!     [[model]]
//!     layer = "dense"
//!     units = 1
//!     activation = "sigmoid"
//!
//!     [training]
//!     epochs = 50
//!     optimizer = { name = "adam", learning_rate = 0.01 }
//!     "#,
//!     "circles.toml",
//! )?;
//! let shapes = plan.check_shapes(&[2], false, &TargetShape::Binary)?;
//! assert_eq!(shapes[0].parameters, 24);
//! assert_eq!(Plan::parse(&plan.to_toml(), "printed")?, plan);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`PlanError`] prints the offending line and the expected value. A [`Document`] keeps the text,
//! for `--set` options and for shape errors with their lines.
//!
//! The feature `keras` adds the import of Keras models.

mod activation;
mod data;
mod diff;
mod document;
mod error;
mod initializer;
#[cfg(feature = "keras")]
pub mod keras;
mod language;
mod layer;
mod names;
mod optimizer;
mod plan;
mod schedule;
mod sections;
mod set;
mod shape;
mod source;
mod training;
mod tree;
mod weight;

pub use activation::Activation;
pub use data::{Data, Missing, Outliers, Scale, SplitFractions, Task};
pub use document::Document;
pub use error::{PlanError, Snippet};
pub use initializer::{Initializer, Regularizer};
pub use language::nearest;
pub use sections::{Diagnose, Repair, Rules};
// `Layer`, the struct of every layer, `Padding`, and functions that walk a model.
pub use layer::*;
pub use names::layer_names;
pub use optimizer::{Algorithm, Optimizer};
pub use plan::{Plan, VERSION};
pub use schedule::{Decay, Schedule};
pub use shape::{
    LayerShape, ShapeError, TargetLayout, TargetShape, check_output, infer, target_layout,
};
pub use source::{Columns, Source};
pub use training::{Loss, ObserveEvery, Training, Watch};
pub use weight::Weight;
