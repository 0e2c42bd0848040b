//! Switches of libraries.

use super::{Args, ProgramBuilder, Rule, Shape, Site, Switch, SwitchSet, Value};

impl<'a> ProgramBuilder<'a> {
    pub(super) fn set_switch(&mut self, switch: Switch, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let rule = match switch {
            Switch::Deterministic => {
                args.is_true(usize::MAX, "warn_only").then_some(Rule::WarnOnly)
            }
            Switch::MatmulPrecision => {
                let precision = args.first().and_then(Value::as_text).copied();
                matches!(precision, Some("high" | "medium")).then_some(Rule::Precision)
            }
            Switch::TensorFloat => {
                (!matches!(args.first().map(|it| &it.shape), Some(Shape::Bool(false))))
                    .then_some(Rule::Precision)
            }
            Switch::Jax => {
                let text = |at: usize| args.positional.get(at).and_then(Value::as_text).copied();
                let is_low = matches!(
                    text(1),
                    Some("bfloat16" | "tensorfloat32" | "fastest" | "default" | "high")
                );
                (text(0) == Some("jax_default_matmul_precision") && is_low)
                    .then_some(Rule::Precision)
            }
            Switch::Compile => {
                let mode = args.name("mode").and_then(Value::as_text).copied();
                mode.is_some_and(|it| it.starts_with("max-autotune")).then_some(Rule::Autotune)
            }
        };
        if let Some(rule) = rule {
            self.facts.switches.push(SwitchSet { rule, site });
        }
        match (switch, args.first()) {
            (Switch::Compile, Some(model)) => model.clone(),
            _ => Value::none(),
        }
    }

    /// Sets an attribute of a library, which may be a switch.
    pub(super) fn set_library(&mut self, name: &str, value: &Value<'a>, site: Site) {
        let is_on = !matches!(value.shape, Shape::Bool(false) | Shape::None | Shape::Int(0));
        let is_literal = matches!(value.shape, Shape::Bool(true));
        let rule = match name {
            "torch.backends.cudnn.benchmark" if is_literal => Rule::CudnnBenchmark,
            // The switches of cuDNN and of half precision are on by default.
            "torch.backends.cuda.matmul.allow_tf32" if is_literal => Rule::Precision,
            "torch._inductor.config.max_autotune"
            | "torch._inductor.config.coordinate_descent_tuning"
                if is_on =>
            {
                Rule::Autotune
            }
            _ => return,
        };
        self.facts.switches.push(SwitchSet { rule, site });
    }
}
