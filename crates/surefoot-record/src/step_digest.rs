//! Digest of one step, made of parts that show where two steps differ.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// Content of one part of a step's digest.
///
/// Variants are ordered by how much a difference explains: the batch determines the loss, and the
/// loss determines the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Which samples were trained on, in their order.
    Batch,
    /// The loss of the batch.
    Loss,
    /// Parameters of a layer after the step.
    Parameters,
    /// The moving statistics of a layer's normalisation after the step.
    Statistics,
    /// The optimizer's memory after the step, of all layers.
    Optimizer,
}

impl Quantity {
    /// Name in records and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Batch => "batch",
            Quantity::Loss => "loss",
            Quantity::Optimizer => "optimizer",
            Quantity::Parameters => "parameters",
            Quantity::Statistics => "statistics",
        }
    }
}

/// One part of a step's digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Content of the part.
    pub quantity: Quantity,
    /// Of which layer, where it is one layer's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
}

impl Part {
    /// A part that is no layer's.
    pub fn of(quantity: Quantity) -> Part {
        Part { quantity, layer: None }
    }

    /// A layer's part.
    pub fn of_layer(quantity: Quantity, layer: impl Into<String>) -> Part {
        Part { quantity, layer: Some(layer.into()) }
    }
}

/// The digest of a step, and a short one of each of its parts.
///
/// The digest is the XXH3-128 of the step's number and the 128-bit digests of all parts. What is
/// kept of a part is the lower half of its digest: enough to say where two steps differ that are
/// known to.
///
/// ```
/// use surefoot_record::{Digest, StepDigest};
///
/// let mut one = StepDigest::default();
/// one.seal(7, &[Digest::of(b"batch"), Digest::of(b"weights")]);
/// let mut other = StepDigest::default();
/// other.seal(7, &[Digest::of(b"batch"), Digest::of(b"other weights")]);
/// assert_ne!(one.digest, other.digest);
/// assert_eq!(one.parts[0], other.parts[0]);
/// assert_ne!(one.parts[1], other.parts[1]);
/// ```
#[derive(Clone, Debug)]
pub struct StepDigest {
    /// Steps done.
    pub step: u64,
    /// The digest of everything.
    pub digest: Digest,
    /// The lower halves of the digests of the parts.
    pub parts: Vec<u64>,
    /// Buffer of the hashed bytes, reused.
    bytes: Vec<u8>,
}

impl Default for StepDigest {
    fn default() -> StepDigest {
        StepDigest { step: 0, digest: Digest(0), parts: Vec::new(), bytes: Vec::new() }
    }
}

impl StepDigest {
    /// Becomes the digest of a step with these parts. Asks for no memory after the first time.
    pub fn seal(&mut self, step: u64, parts: &[Digest]) {
        self.step = step;
        self.bytes.clear();
        self.bytes.extend(step.to_le_bytes());
        for part in parts {
            self.bytes.extend(part.0.to_le_bytes());
        }
        self.digest = Digest::of(&self.bytes);
        self.parts.clear();
        self.parts.extend(parts.iter().map(|part| part.0 as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_stored_by_its_names() {
        let part = Part::of_layer(Quantity::Parameters, "dense_1");
        let json = serde_json::to_string(&part).unwrap();
        assert_eq!(json, r#"{"quantity":"parameters","layer":"dense_1"}"#);
        assert_eq!(serde_json::from_str::<Part>(&json).unwrap(), part);
        let json = serde_json::to_string(&Part::of(Quantity::Loss)).unwrap();
        assert_eq!(json, r#"{"quantity":"loss"}"#);
        for quantity in [
            Quantity::Batch,
            Quantity::Loss,
            Quantity::Optimizer,
            Quantity::Parameters,
            Quantity::Statistics,
        ] {
            let json = serde_json::to_string(&quantity).unwrap();
            assert_eq!(json, format!("\"{}\"", quantity.name()));
        }
    }

    #[test]
    fn step_order_and_every_part_count() {
        let digest = |step, parts: &[u128]| {
            let parts: Vec<Digest> = parts.iter().copied().map(Digest).collect();
            let mut sealed = StepDigest::default();
            sealed.seal(step, &parts);
            sealed.digest
        };
        let one = digest(1, &[5, 6]);
        assert_eq!(one, digest(1, &[5, 6]));
        assert_ne!(one, digest(2, &[5, 6]));
        assert_ne!(one, digest(1, &[6, 5]));
        // Beyond the half that is kept, too.
        assert_ne!(one, digest(1, &[5, 6 | 1 << 100]));
        assert_ne!(one, digest(1, &[5]));
    }

    #[test]
    fn sealing_again_leaves_nothing_of_before() {
        let mut again = StepDigest::default();
        again.seal(1, &[Digest(1), Digest(2), Digest(3)]);
        again.seal(2, &[Digest(4)]);
        let mut fresh = StepDigest::default();
        fresh.seal(2, &[Digest(4)]);
        assert_eq!(again.digest, fresh.digest);
        assert_eq!(again.parts, fresh.parts);
    }
}
