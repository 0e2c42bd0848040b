//! Methods of data.

use ruff_python_ast::Expr;

use super::{
    Args, Environment, Global, Lift, Purpose, Shape, Value, is_mutator, library, op_of_arguments,
    without_order,
};

impl<'a> Lift<'a> {
    /// Calls a method of data: a tensor, an array, a path, a library result.
    pub(super) fn call_data_method(
        &mut self,
        receiver: &'a Expr,
        base: Value<'a>,
        name: &'a str,
        args: Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        if let Shape::Unknown(id) = base.shape
            && let Some(value) = self.call_unknown_method(id, receiver, &base, name, &args)
        {
            return value;
        }
        let mut whole = self.heap.combine(args.all());
        let data = self.heap.data(&base);
        match name {
            "assign" | "assign_add" | "assign_sub"
                if matches!(base.shape, Shape::Parameters(_) | Shape::Plain) =>
            {
                self.mutate(receiver, &whole, site);
                return base;
            }
            "apply_gradients" => {
                whole.depend_on(&data);
                self.program.note_step(site);
                return self.program.computed("state", whole.operands, whole.models, site);
            }
            "backward" => {
                self.backward(&data, site);
                return Value::constant();
            }
            "strftime" | "isoformat" | "format" => return Value::constant(),
            "size" | "dim" | "numel" if matches!(base.shape, Shape::Plain) => {
                return Value::constant();
            }
            "glob" | "rglob" | "iterdir" => {
                whole.depend_on(&data);
                return self.unordered(Environment::FileOrder, name, whole, site);
            }
            "imap_unordered" => {
                let elements = args.positional.get(1).cloned().unwrap_or_default();
                return self.unordered(Environment::Arrival, name, elements, site);
            }
            "issubset" | "issuperset" | "isdisjoint" => {
                whole.depend_on(&without_order(base, &self.heap));
                return whole;
            }
            "sort" if matches!(base.shape, Shape::Unordered(..)) => {
                let sorted = without_order(base, &self.heap);
                self.assign(receiver, sorted, site);
                return Value::constant();
            }
            "sample" | "rsample" | "sample_n" if matches!(base.shape, Shape::Distribution) => {
                whole.depend_on(&data);
                let drawn = self.draw_global(Global::Torch, Purpose::Values, whole.operands, site);
                return drawn.with_models(whole.models);
            }
            // Sampled rows of a pandas table.
            "sample"
                if args.name("frac").is_some()
                    && args.passed(usize::MAX, "random_state").is_none() =>
            {
                whole.depend_on(&data);
                return self.draw_global(Global::NumPy, Purpose::Values, whole.operands, site);
            }
            "multinomial" | "bernoulli" => {
                whole.depend_on(&data);
                let generator = self.generator_for(&args, Global::Torch);
                let drawn = self.draw(generator, Purpose::Values, whole.operands, site);
                return drawn.with_models(whole.models);
            }
            "parameters" | "named_parameters" | "state_dict" if !data.models.is_empty() => {
                let roots = self.heap.roots_of(data.models).into();
                let shape = match name {
                    "state_dict" => Shape::State(roots),
                    _ => Shape::Parameters(roots),
                };
                return Value::of(shape).with_models(data.models);
            }
            "load_state_dict" if !data.models.is_empty() => {
                if let Some(state) = args.first() {
                    for root in self.heap.roots_of(data.models) {
                        self.restore(root, state, site);
                    }
                }
                return Value::constant();
            }
            _ => {}
        }
        if library::in_place_draw(name) {
            let generator = self.generator_for(&args, Global::Torch);
            let drawn = self.draw(generator, Purpose::Values, whole.operands, site);
            self.mutate(receiver, &drawn, site);
            return base;
        }
        let is_learned = !whole.models.is_empty() || !data.models.is_empty();
        let operation = library::nondeterministic_method(name)
            .or_else(|| op_of_arguments(name, &args, 0, is_learned))
            .filter(|_| self.mode_of_call());
        if is_mutator(name) || (name.ends_with('_') && !name.ends_with("__")) {
            if let Some(operation) = operation {
                whole.operands = self.program.nondeterministic(operation, whole.operands, site);
            }
            self.mutate(receiver, &whole, site);
            if matches!(base.shape, Shape::Parameters(_)) {
                return base;
            }
        }
        whole.depend_on(&data);
        if let Some(operation) = operation {
            whole.operands = self.program.nondeterministic(operation, whole.operands, site);
        }
        whole
    }
}
