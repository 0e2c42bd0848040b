//! x
use super::{Question, Sampler};
use crate::space::Point;
use serde::{Deserialize, Serialize};
/// x
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gp {}
impl Sampler for Gp {
    fn name(&self) -> &'static str { "gp" }
    fn ask(&self, question: &Question<'_>) -> Point { super::Random{}.ask(question) }
}
