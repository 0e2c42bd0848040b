//! Plans: everything that determines a training run, as data.
//!
//! A [`Plan`] is parsed from TOML, validated, and printed back unchanged in meaning. It names the
//! data, the model as a list of [`Layer`]s, how to train, the seed, and how closely to watch.
//! `docs/plan.md` is the reference of the language.
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
//! Errors are values ([`PlanError`]) that print the offending line with what was expected there. A
//! [`Document`] keeps the text, so that settings can change it and shape errors can point into it.

mod activation;
mod care;
mod data;
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
mod set;
mod shape;
mod source;
mod training;
mod tree;
mod weight;

pub use activation::Activation;
pub use care::{Diagnose, Repair};
pub use data::{Data, Missing, Outliers, Scale, Split, Task};
pub use document::Document;
pub use error::{PlanError, Snippet};
pub use initializer::{Initializer, Regularizer};
pub use language::nearest;
// The layers that are listed there, `Layer`, `Padding` and the functions that walk a model.
pub use layer::*;
pub use names::layer_names;
pub use optimizer::{Algorithm, Optimizer};
pub use plan::{Plan, VERSION};
pub use schedule::{Decay, Schedule};
pub use shape::{
    LayerShape, ShapeError, TargetLayout, TargetShape, check_output, infer, target_layout,
};
pub use source::Source;
pub use training::{Loss, ObserveEvery, Training, Watch};
pub use weight::Weight;
