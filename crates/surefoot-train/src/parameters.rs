//! Parameters: every learned array of a model, in one stretch of memory.
//!
//! Keeping them flat makes what happens to all of them at every step a single pass: the sum of
//! gradients over shards, the optimizer, the digest, the checkpoint. Arrays that learn come first,
//! those that only follow (moving statistics) last.

use crate::compute::Compute;
use crate::initialize::{Fans, initialize};
use crate::tensor::Tensor;
use std::ops::Range;
use surefoot_plan::{Initializer, Regularizer, Weight};

/// Declaration of an array of a layer.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The layer it belongs to, by name.
    pub layer: String,
    /// Its name within the layer.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Initial values.
    pub start: Start,
    /// Inputs and outputs of each unit.
    pub fans: Fans,
    /// Penalty on its values.
    pub regularizer: Regularizer,
    /// Its part in the layer.
    pub role: Role,
}

/// Initial values of an array.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// By an initializer.
    Initializer(Initializer),
    /// An LSTM's bias: the forget gate's quarter is one.
    ForgetBias,
}

/// Role of an array in its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A kernel, which detectors examine.
    Weight,
    /// A bias, or the factor and offset of a normalisation.
    Bias,
    /// Not learned: follows the batches.
    Moving,
}

/// All arrays of a model with their values.
#[derive(Clone, Debug)]
pub struct Parameters {
    declarations: Vec<Declaration>,
    ranges: Vec<Range<usize>>,
    learned: usize,
    /// All values; see [`Parameters::range`].
    pub values: Vec<f32>,
}

impl Parameters {
    /// Lays out the arrays and draws their initial values by key.
    pub fn new(declarations: Vec<Declaration>, seed: u64) -> Self {
        let mut parameters = Self::unallocated(declarations);
        parameters.allocate(seed);
        parameters
    }

    /// Lays out the arrays without values.
    pub(crate) fn unallocated(declarations: Vec<Declaration>) -> Self {
        let mut ranges = vec![0..0; declarations.len()];
        let mut end = 0;
        let mut learned = 0;
        for moving in [false, true] {
            for (declaration, range) in declarations.iter().zip(&mut ranges) {
                if (declaration.role == Role::Moving) == moving {
                    let len = declaration.shape.iter().product::<usize>();
                    *range = end..end + len;
                    end += len;
                }
            }
            if !moving {
                learned = end;
            }
        }
        Self { declarations, ranges, learned, values: Vec::new() }
    }

    /// Draws initial values by key.
    pub(crate) fn allocate(&mut self, seed: u64) {
        let len = self.ranges.iter().map(|range| range.end).max().unwrap_or(0);
        self.values = vec![0.0; len];
        for (declaration, range) in self.declarations.iter().zip(&self.ranges) {
            initialize(declaration, seed, &mut self.values[range.clone()]);
        }
    }

    /// Returns true if `weight` has the name and shape of an array.
    pub(crate) fn fits(&self, weight: &Weight) -> bool {
        let id = self.find(&weight.layer, &weight.name);
        id.is_some_and(|id| self.declarations[id].shape == weight.shape)
    }

    /// The arrays, in the order of the layers.
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// Range of the values of array `id`.
    pub fn range(&self, id: usize) -> Range<usize> {
        self.ranges[id].clone()
    }

    /// Number of trainable values; they come first.
    pub fn learned(&self) -> usize {
        self.learned
    }

    /// The array called `name` of the layer called `layer`.
    pub fn find(&self, layer: &str, name: &str) -> Option<usize> {
        self.declarations.iter().position(|d| d.layer == layer && d.name == name)
    }

    /// Replaces the values of one array; false if no array has that name and shape.
    pub fn load(&mut self, weight: &Weight) -> bool {
        match self.find(&weight.layer, &weight.name) {
            Some(id) if self.declarations[id].shape == weight.shape => {
                self.values[self.ranges[id].clone()].copy_from_slice(&weight.values);
                true
            }
            _ => false,
        }
    }

    /// The arrays as they are, by name.
    pub fn weights(&self) -> impl Iterator<Item = Weight> + '_ {
        self.declarations.iter().zip(&self.ranges).map(|(d, range)| Weight {
            layer: d.layer.clone(),
            name: d.name.clone(),
            shape: d.shape.clone(),
            values: self.values[range.clone()].to_vec(),
        })
    }

    /// Calls `body` with the arrays as tensors of a device. Until it returns, `values` is empty.
    pub(crate) fn lend<B: Compute, R>(
        &mut self,
        device: &B::Device,
        body: impl FnOnce(&Self, &[Tensor<B>]) -> R,
    ) -> R {
        let mut values = std::mem::take(&mut self.values);
        let parts: Vec<(Range<usize>, &[usize])> = self
            .ranges
            .iter()
            .cloned()
            .zip(self.declarations.iter().map(|d| &d.shape[..]))
            .collect();
        let result = B::lend(&mut values, &parts, device, |tensors| body(self, tensors));
        self.values = values;
        result
    }

    /// The arrays as tensors of a device.
    pub(crate) fn upload<B: Compute>(&self, device: &B::Device) -> Vec<Tensor<B>> {
        self.declarations
            .iter()
            .zip(&self.ranges)
            .map(|(d, range)| {
                Tensor::from_values(self.values[range.clone()].to_vec(), &d.shape, device)
            })
            .collect()
    }
}
