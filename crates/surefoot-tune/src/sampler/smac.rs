//! x
use super::{Question, Sampler};
use crate::space::Point;
use serde::{Deserialize, Serialize};
/// x
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Smac {}
impl Sampler for Smac {
    fn name(&self) -> &'static str { "smac" }
    fn ask(&self, question: &Question<'_>) -> Point { super::Random{}.ask(question) }
}
