//! A model, compiled: the plan's layers as stages, with the arrays they declare.

mod build;
mod composite;
pub(crate) mod geometry;

use crate::compute::Compute;
use crate::layer::{ParameterId, Stage};
use crate::parameters::Declaration;
use build::Builder;
use std::ops::Range;
use surefoot_diagnose::LayerInfo;
use surefoot_plan::{Activation, Layer, layer_names};

/// A compiled model.
pub struct Network<B: Compute> {
    pub(crate) stages: Vec<Box<dyn Stage<B>>>,
    /// Observed layers, one for every layer of the plan.
    pub(crate) subjects: Vec<Subject>,
    pub(crate) declarations: Vec<Declaration>,
    /// Multiplications of one sample's forward pass, roughly.
    pub(crate) work: u64,
    /// Values put out by all layers for one sample.
    pub(crate) outputs: u64,
    /// Values of the last layer for one sample.
    pub(crate) width: usize,
    /// The first stage with something to learn; gradients need not go further back.
    pub(crate) first_learning: Option<usize>,
}

/// An observed layer.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) info: LayerInfo,
    /// The stage whose output is the layer's.
    pub(crate) stage: usize,
    /// Its arrays.
    pub(crate) arrays: Range<ParameterId>,
    /// Layout of the units in the first array, if it has units.
    pub(crate) units: Option<Units>,
    pub(crate) activation: Option<Activation>,
}

/// Layout of units in a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Units {
    Columns(usize),
    Rows(usize),
}

impl<B: Compute> Network<B> {
    /// Compiles `layers` for samples of shape `input` (channels last). The plan has been checked
    /// against that shape before.
    pub fn new(layers: &[Layer], input: &[usize]) -> Self {
        let mut builder = Builder {
            network: Self {
                stages: Vec::new(),
                subjects: Vec::new(),
                declarations: Vec::new(),
                work: 0,
                outputs: 0,
                width: 0,
                first_learning: None,
            },
            names: layer_names(layers).into_iter(),
            shape: input.to_vec(),
            masked: false,
        };
        builder.layers(layers);
        let mut network = builder.network;
        network.width = builder.shape.iter().product();
        network
    }

    /// Static facts about the observed layers.
    pub fn layers(&self) -> Vec<LayerInfo> {
        self.subjects.iter().map(|s| s.info.clone()).collect()
    }

    /// Number of trainable parameters.
    pub fn parameters(&self) -> u64 {
        self.subjects.iter().map(|s| s.info.parameters).sum()
    }
}
