//! Operations of PyTorch that are nondeterministic with certain
//! arguments.

use super::{Args, Effect, Layer, Lift, Value, library};

const INTERPOLATION: &str = "the gradient of a linear interpolation";
const BAG: &str = "the gradient of EmbeddingBag";

impl<'a> Lift<'a> {
    /// Calls `torch.NAME`, if the arguments make it such an operation.
    pub(super) fn call_nondeterministic(
        &mut self,
        name: &str,
        args: &Args<'a>,
    ) -> Option<Value<'a>> {
        let mode = |position: usize| args.get(position, "mode").and_then(Value::as_text);
        let is_linear = |position: usize| {
            let mode = mode(position).copied();
            mode.is_some_and(|it| matches!(it, "linear" | "bilinear" | "bicubic" | "trilinear"))
        };
        let is_max = |position: usize| mode(position).is_some_and(|it| *it == "max");
        let operation = match name {
            "nn.Upsample" if is_linear(2) => INTERPOLATION,
            "nn.functional.interpolate" | "nn.functional.upsample" if is_linear(3) => INTERPOLATION,
            "nn.EmbeddingBag" if is_max(5) => BAG,
            "nn.functional.embedding_bag" if is_max(6) => BAG,
            _ => {
                let is_learned = !self.heap.combine(args.all()).models.is_empty();
                op_of_arguments(name, args, 1, is_learned)?
            }
        };
        if let Some(Effect::Module(layer)) = library::effect_of(&format!("torch.{name}")) {
            let layer = Layer { nondeterministic: Some(operation), ..layer };
            return Some(self.new_layer(layer, args));
        }
        Some(self.call_operation(operation, args))
    }
}

/// The nondeterministic operation of a tensor function or method with these arguments; the first
/// non-tensor argument is at `first`. `is_learned` is true if a model computed any of them.
pub(super) fn op_of_arguments(
    name: &str,
    args: &Args<'_>,
    first: usize,
    is_learned: bool,
) -> Option<&'static str> {
    let is_there = |name: &str| args.passed(first, name).is_some();
    match name {
        "bincount" if is_there("weights") => Some("a weighted bincount"),
        "median" if is_there("dim") => Some("the index of a median"),
        "kthvalue" => Some("kthvalue"),
        // Sums of integers, such as positions, are exact.
        "cumsum" if is_learned => Some("cumsum"),
        _ => None,
    }
}
