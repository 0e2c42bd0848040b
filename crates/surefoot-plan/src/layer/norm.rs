//! Normalisation.

use crate::language::{Fields, Record, any, name, positive, unit_interval};

/// Normalises each channel over the batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchNorm {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// How much of the moving statistics stays at each step.
    pub momentum: f64,
    /// Added to the variance.
    pub epsilon: f64,
    /// Whether to learn an offset.
    pub center: bool,
    /// Whether to learn a factor.
    pub scale: bool,
}

/// Normalises each sample over its last dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNorm {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// Added to the variance.
    pub epsilon: f64,
    /// Whether to learn an offset.
    pub center: bool,
    /// Whether to learn a factor.
    pub scale: bool,
}

/// Normalises each sample over groups of channels and all positions.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupNorm {
    /// A name for people and for weights.
    pub name: Option<String>,
    /// Number of groups; must divide the channels.
    pub groups: usize,
    /// Added to the variance.
    pub epsilon: f64,
    /// Whether to learn an offset.
    pub center: bool,
    /// Whether to learn a factor.
    pub scale: bool,
}

/// Keras's default for every normalisation.
const EPSILON: f64 = 1e-3;

impl Default for BatchNorm {
    fn default() -> Self {
        Self { name: None, momentum: 0.99, epsilon: EPSILON, center: true, scale: true }
    }
}

impl Default for LayerNorm {
    fn default() -> Self {
        Self { name: None, epsilon: EPSILON, center: true, scale: true }
    }
}

impl Default for GroupNorm {
    fn default() -> Self {
        Self { name: None, groups: 32, epsilon: EPSILON, center: true, scale: true }
    }
}

impl Record for BatchNorm {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.optional("momentum", &mut self.momentum, unit_interval);
        f.optional("epsilon", &mut self.epsilon, positive);
        f.optional("center", &mut self.center, any);
        f.optional("scale", &mut self.scale, any);
    }
}

impl Record for LayerNorm {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.optional("epsilon", &mut self.epsilon, positive);
        f.optional("center", &mut self.center, any);
        f.optional("scale", &mut self.scale, any);
    }
}

impl Record for GroupNorm {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.optional("groups", &mut self.groups, any);
        f.optional("epsilon", &mut self.epsilon, positive);
        f.optional("center", &mut self.center, any);
        f.optional("scale", &mut self.scale, any);
    }
}
