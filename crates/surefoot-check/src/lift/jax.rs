//! Calls of JAX, Optax and Flax. All are pure: keys and parameters are values.

use std::rc::Rc;

use super::{
    Apply, Args, Container, Fold, Jax, Kind, Lift, Models, ObjectId, Operand, ProgramBuilder,
    SPREAD, Shape, Site, Statement, Value, push_new,
};

impl<'a> Lift<'a> {
    /// Calls something of JAX.
    pub(super) fn call_jax(&mut self, call: Jax, args: Args<'a>) -> Value<'a> {
        let site = args.site;
        let whole = self.heap.combine(args.all());
        match call {
            Jax::Key | Jax::Fold => self.program.fold(whole.operands, site),
            Jax::Draw | Jax::Initial => self.program.keyed(whole, site),
            Jax::Gradient { with_value } => {
                self.program.facts.steps.push(site);
                let name =
                    if with_value { "jax.applied.value_and_grad" } else { "jax.applied.grad" };
                let function = args.positional.into_iter().take(1).collect();
                let passed = Args::of(function, site);
                Value::of(Shape::Partial(Rc::new((Value::library(name), passed))))
            }
            Jax::Differentiated { with_value } => self.differentiate(with_value, args),
            Jax::Apply(apply) => self.apply_function(apply, args),
            Jax::Transformation => Value::library("jax.applied.transformation"),
            Jax::Memory => self.program.computed("memory", whole.operands, Models::default(), site),
            Jax::Update => {
                let operands = whole.operands;
                let updates =
                    self.program.computed("updates", operands.clone(), whole.models, site);
                let memory = self.program.computed("memory", operands, Models::default(), site);
                Value::tuple([updates, memory])
            }
            Jax::Step => {
                self.program.note_step(site);
                self.program.computed("parameters", whole.operands, whole.models, site)
            }
            Jax::Save => {
                let what = Value::of(Shape::Tuple(args.all().cloned().collect()));
                self.save(Some(&what), &Args::none(site));
                Value::constant()
            }
            Jax::Checkpointer => Value::library("jax.applied.checkpointer"),
            Jax::Bytes => {
                if !self.program.loops.is_empty() {
                    self.save(args.first(), &Args::none(site));
                }
                self.program.computed("bytes", whole.operands, whole.models, site)
            }
        }
    }

    /// Calls a function for its gradient. In a loop, this is training, and the first argument is trained.
    fn differentiate(&mut self, with_value: bool, args: Args<'a>) -> Value<'a> {
        let site = args.site;
        let mut positional = args.positional.into_iter();
        let Some(function) = positional.next() else {
            return Value::constant();
        };
        let passed = Args { positional: positional.collect(), ..args };
        self.program.note_step(site);
        let trained = self.heap.combine(passed.positional.iter().take(1));
        for operand in &trained.operands {
            if let Operand::Variable(variable) = operand
                && !self.program.loops.is_empty()
            {
                self.program.note_trained(*variable);
            }
        }
        let all = self.heap.combine(passed.all());
        let result = self.call_value(function, passed);
        let mut operands = self.heap.data(&result).operands;
        all.operands.iter().for_each(|it| push_new(&mut operands, *it));
        let gradient = self.program.computed("gradient", operands, Models::default(), site);
        let mut value = |part: &Value<'a>| {
            let part = self.heap.data(part);
            self.program.computed("value", part.operands, part.models, site)
        };
        let result = match &result.shape {
            Shape::Tuple(parts) => Value::of(Shape::Tuple(parts.iter().map(value).collect())),
            _ => value(&result),
        };
        if with_value {
            return Value::tuple([result, gradient]);
        }
        match &result.shape {
            // The gradient and the auxiliary output.
            Shape::Tuple(parts) => {
                let aside = parts.iter().skip(1).cloned();
                Value::of(Shape::Tuple([gradient].into_iter().chain(aside).collect()))
            }
            _ => gradient,
        }
    }

    /// Calls functions that are arguments; of alternatives, either may run.
    fn apply_function(&mut self, apply: Apply, args: Args<'a>) -> Value<'a> {
        let all = args.positional;
        let count = all.first().filter(|_| apply.counts).cloned();
        let passed = all.get(apply.passed..).unwrap_or_default();
        let passed: Vec<Value<'a>> = count.into_iter().chain(passed.iter().cloned()).collect();
        let mut results = Vec::new();
        for at in apply.functions {
            results.push(match all.get(*at).filter(|it| !it.is_data()) {
                Some(function) => self.call_with(function.clone(), passed.clone(), args.site),
                None => self.heap.combine(&passed),
            });
        }
        match &results[..] {
            [one] => one.clone(),
            [one, ..] if !one.is_data() => one.clone(),
            _ => self.heap.combine(results.iter().chain(all.first())),
        }
    }

    /// Calls a method of a Flax module; `None` for other objects.
    pub(super) fn call_flax_method(
        &mut self,
        id: ObjectId,
        name: &str,
        args: &Args<'a>,
    ) -> Option<Value<'a>> {
        let site = args.site;
        if !self.heap.inherits(id, "flax.linen.") {
            return None;
        }
        let whole = self.heap.combine(args.all());
        Some(match name {
            "init" | "lazy_init" => self.program.keyed(whole, site),
            "init_with_output" => {
                let drawn = self.program.keyed(whole, site);
                Value::tuple([drawn.clone(), drawn])
            }
            "apply" => {
                let output =
                    self.program.computed("output", whole.operands.clone(), whole.models, site);
                if args.may_be_true(usize::MAX, "mutable") {
                    let state = self.program.computed("state", whole.operands, whole.models, site);
                    return Some(Value::tuple([output, state]));
                }
                output
            }
            "make_rng" => self.program.keyed(whole, site),
            _ => return None,
        })
    }

    /// `numpy.savez(file, name=value, **values)`.
    pub(super) fn save_arrays(&mut self, args: &Args<'a>) {
        let site = args.site;
        let mut elements: Vec<Value<'a>> = args.positional.iter().skip(1).cloned().collect();
        let spread = args.call.map_or_else(Vec::new, |call| {
            let keywords = call.arguments.keywords.iter();
            keywords.filter(|it| it.arg.is_none()).map(|it| &it.value).collect()
        });
        for value in spread {
            elements.push(self.eval_quietly(value));
        }
        let entries = args
            .named
            .iter()
            .filter(|(name, _)| *name != SPREAD)
            .map(|(name, value)| (*name, value.clone(), site))
            .collect();
        let container =
            Container { elements, entries, is_closed: true, has_keys: true, order: None };
        let what = Value::object(self.make(Kind::Container(container), "arrays", site));
        let file = args.first().cloned();
        let named = Args::of([what.clone()].into_iter().chain(file).collect(), site);
        self.save(Some(&what), &named);
    }
}

impl<'a> ProgramBuilder<'a> {
    /// A key, from another one and numbers.
    pub(super) fn fold(&mut self, operands: Vec<Operand>, site: Site) -> Value<'a> {
        let target = self.program.variable("key");
        let mut operands = operands.into_iter();
        let key = operands.next().unwrap_or_else(|| Operand::Constant(self.function("seed")));
        self.facts.folds.push(Fold { variable: target, site });
        self.emit(Statement::Fold { target, key, operands: operands.collect(), site });
        Value { shape: Shape::Key, ..Value::variable(target) }
    }

    /// A draw that is a function of a key.
    pub(super) fn keyed(&mut self, whole: Value<'a>, site: Site) -> Value<'a> {
        let target = self.program.variable("drawn");
        let mut operands = whole.operands.into_iter();
        let key = operands.next().unwrap_or_else(|| Operand::Constant(self.function("seed")));
        self.emit(Statement::Keyed { target, key, operands: operands.collect(), site });
        Value::variable(target).with_models(whole.models)
    }
}
