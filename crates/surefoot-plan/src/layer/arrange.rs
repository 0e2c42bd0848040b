//! Layers without weights that rearrange or drop values.

use crate::language::{Fields, Record, name, share};

/// All dimensions into one, channels running fastest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flatten {
    /// A name for people.
    pub name: Option<String>,
}

/// The same values in another shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Reshape {
    /// A name for people.
    pub name: Option<String>,
    /// The new shape; one entry may be -1 and is then worked out.
    pub target_shape: Vec<i64>,
}

/// Sets values to zero at random while training, and scales the others up.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropout {
    /// A name for people.
    pub name: Option<String>,
    /// The share of values set to zero, in `[0, 1)`.
    pub rate: f64,
}

impl Reshape {
    /// A reshape to `target_shape`.
    pub fn new(target_shape: Vec<i64>) -> Self {
        Self { name: None, target_shape }
    }
}

impl Dropout {
    /// A dropout of `rate`.
    pub fn new(rate: f64) -> Self {
        Self { name: None, rate }
    }
}

impl Record for Flatten {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
    }
}

impl Record for Reshape {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("target_shape", &mut self.target_shape, shape);
    }
}

impl Record for Dropout {
    fn fields<F: Fields>(&mut self, f: &mut F) {
        f.maybe("name", &mut self.name, name);
        f.required("rate", &mut self.rate, share);
    }
}

#[expect(clippy::ptr_arg, reason = "a rule is of the type it is for")]
fn shape(sizes: &Vec<i64>) -> Result<(), &'static str> {
    let open = sizes.iter().filter(|size| **size == -1).count();
    if sizes.is_empty() || open > 1 || sizes.iter().any(|size| *size < 1 && *size != -1) {
        return Err("be a list of sizes, at least 1 each, of which one may be -1");
    }
    Ok(())
}
