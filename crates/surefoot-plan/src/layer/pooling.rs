//! Pooling: windows of a sequence or an image become one value.

use super::Padding;
use crate::language::{Fields, Record, any, name};

/// Pooling along the steps of a `[steps, features]` input.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool1d {
    /// A name for people.
    pub name: Option<String>,
    /// Width of the window.
    pub pool_size: usize,
    /// Distance between windows; the window's width if absent.
    pub strides: Option<usize>,
    /// What to do at the edges.
    pub padding: Padding,
}

/// Pooling over a `[height, width, channels]` input.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool2d {
    /// A name for people.
    pub name: Option<String>,
    /// Size of the window; one number means a square.
    pub pool_size: [usize; 2],
    /// Distance between windows; the window's size if absent.
    pub strides: Option<[usize; 2]>,
    /// What to do at the edges.
    pub padding: Padding,
}

/// Pooling over all positions of a sequence or an image; the channels remain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GlobalPool {
    /// A name for people.
    pub name: Option<String>,
}

impl Default for Pool1d {
    fn default() -> Self {
        Self { name: None, pool_size: 2, strides: None, padding: Padding::Valid }
    }
}

impl Record for Pool1d {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.optional("pool_size", &mut self.pool_size, any);
        f.maybe("strides", &mut self.strides, any);
        f.optional("padding", &mut self.padding, any);
    }
}

impl Default for Pool2d {
    fn default() -> Self {
        Self { name: None, pool_size: [2, 2], strides: None, padding: Padding::Valid }
    }
}

impl Record for Pool2d {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.optional("pool_size", &mut self.pool_size, any);
        f.maybe("strides", &mut self.strides, any);
        f.optional("padding", &mut self.padding, any);
    }
}

impl Record for GlobalPool {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
    }
}
