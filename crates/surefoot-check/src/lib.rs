//! Static checks of Python training scripts: determinism and complete checkpoints.
//!
//! [`check`] reads scripts without running them, lifts each into a small language for randomness
//! ([`calculus`]), infers its types, and applies the [`Rule`]s. It also derives what each training loop
//! must save to be resumable ([`RequiredCheckpoint`]).
//!
//! ```
//! use surefoot_check::{Rule, CheckConfig, check};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("train.py");
//! std::fs::write(&path, "
//! import time, torch
//! torch.manual_seed(int(time.time()))
//! model = torch.nn.Linear(10, 1)
//! optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
//! for step in range(100):
//!     optimizer.zero_grad()
//!     model(torch.ones(64, 10)).mean().backward()
//!     optimizer.step()
//! ")?;
//!
//! let checked = check(&[path], &CheckConfig::default());
//! assert_eq!(checked.findings.len(), 1);
//! let finding = &checked.findings[0];
//! assert_eq!(finding.rule, Rule::Clock);
//! let source = checked.sources.get(finding.place.file);
//! assert_eq!(source.line_and_column(finding.place.range.start), (3, 23));
//! println!("{}\n{}", finding.message, finding.help);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A rule is one file in `src/rules`, with its documentation, its check and its messages.

mod analysis;
pub mod calculus;
mod check;
mod checkpoint;
mod finding;
mod library;
mod lift;
mod parallel;
mod project;
mod rule;
mod rules;
mod source;
mod suppression;
mod torch;
mod unreadable;
mod walk;

pub use check::{CheckConfig, CheckReport, check};
pub use checkpoint::{Member, MemberKind, RequiredCheckpoint};
pub use finding::{Finding, Note};
pub use rule::{Explanation, UnknownRule};
pub use rules::Rule;
pub use source::{FileId, Place, SourceFile, SourceFiles};
pub use torch::{TorchListError, TorchOperations};
pub use unreadable::{Reason, Unreadable};
