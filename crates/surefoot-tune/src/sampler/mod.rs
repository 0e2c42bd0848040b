//! Samplers: which point to try next, one a file.

use crate::history::History;
use crate::space::{Point, Space};
use surefoot_random::{Key, Purpose};

/// Says which point to try next.
///
/// A sampler keeps nothing between calls: the same question has the same answer, on any machine and
/// in any process. That is what makes a search repeatable, and what lets any worker ask.
pub trait Sampler: Send + Sync {
    /// The name it has in studies.
    fn name(&self) -> &'static str;

    /// The point for the trial of this number.
    fn ask(&self, question: &Question<'_>) -> Point;
}

/// What a sampler is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Where to look.
    pub space: &'a Space,
    /// The seed of the study.
    pub seed: u64,
    /// The number of the trial, from 0.
    pub number: u64,
    /// What is known of the other trials.
    pub history: &'a History,
}

impl Question<'_> {
    /// The key of the draws that answer it.
    pub fn key(&self) -> Key {
        Key::new(self.seed, Purpose::Sample).epoch(self.number)
    }
}
