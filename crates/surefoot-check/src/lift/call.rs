//! Calls.

use std::rc::Rc;

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::{Args, Effect, Lift, ObjectId, SPREAD, Shape, Site, Value, library};

impl<'a> Lift<'a> {
    /// Evaluates a call.
    pub(super) fn call(&mut self, call: &'a ExprCall) -> Value<'a> {
        if let Expr::Attribute(it) = &*call.func {
            let base = self.eval(&it.value);
            let args = self.arguments(call);
            return self.call_method(&it.value, base, it.attr.as_str(), args);
        }
        if let Expr::Name(name) = &*call.func
            && name.id == "super"
            && let Some(value) = self.execution.super_value()
        {
            return value;
        }
        let callee = self.eval(&call.func);
        let args = self.arguments(call);
        // Functions that write their argument need its expression.
        if let (Shape::Library(name), Some(first)) = (&callee.shape, call.arguments.args.first())
            && matches!(library::effect_of(name), Some(Effect::DrawInto(_)))
        {
            let site = args.site;
            let drawn = self.call_value(callee.clone(), args);
            self.mutate(first, &drawn, site);
            return drawn;
        }
        self.call_value(callee, args)
    }

    pub(super) fn arguments(&mut self, call: &'a ExprCall) -> Args<'a> {
        let (mut positional, mut named) = (Vec::new(), Vec::new());
        for argument in &call.arguments.args {
            let value = self.eval(argument);
            if !argument.is_starred_expr() {
                positional.push(value);
                continue;
            }
            match &value.shape {
                Shape::Tuple(parts) => positional.extend(parts.iter().cloned()),
                Shape::Unordered(..) | Shape::Plain => positional.push(self.heap.data(&value)),
                _ => match self.heap.container_in(&value) {
                    Some(container) => positional.extend(container.elements.iter().cloned()),
                    None => positional.push(value),
                },
            }
        }
        for keyword in &call.arguments.keywords {
            let value = self.eval(&keyword.value);
            match &keyword.arg {
                Some(name) => named.push((name.as_str(), value)),
                None => match self.heap.container_in(&value) {
                    Some(container) => {
                        let entries = container.entries.iter();
                        named.extend(entries.map(|(name, value, _)| (*name, value.clone())));
                    }
                    None if value.is_data() && !value.operands.is_empty() => {
                        named.push((SPREAD, value));
                    }
                    None => {}
                },
            }
        }
        let site = self.site(call.range());
        Args { positional, named, site, call: Some(call) }
    }

    /// Calls a value with positional arguments, on behalf of a library.
    pub(super) fn call_with(
        &mut self,
        callee: Value<'a>,
        positional: Vec<Value<'a>>,
        site: Site,
    ) -> Value<'a> {
        self.call_value(callee, Args::of(positional, site))
    }

    /// Calls a function with one value, on behalf of a library. Returns the result as data.
    pub(super) fn apply(&mut self, callee: Value<'a>, value: Value<'a>, site: Site) -> Value<'a> {
        let result = self.call_with(callee, vec![value], site);
        self.heap.data(&result)
    }

    /// Calls a value.
    pub(super) fn call_value(&mut self, callee: Value<'a>, mut args: Args<'a>) -> Value<'a> {
        match callee.shape.clone() {
            // The body runs when the generator is iterated.
            Shape::Function(function) if self.execution.is_generator(&function) => {
                let function = Value::of(Shape::Function(function));
                Value::of(Shape::Partial(Rc::new((function, args))))
            }
            Shape::Function(function) => self.enter(&function, args),
            Shape::Class(class) => self.instantiate(&class, args),
            Shape::Library(name) => self.call_library(&name, args),
            Shape::Object(id) => self.call_object(id, args),
            Shape::Method(id, name) => self.call_object_method(id, name, args),
            Shape::Partial(partial) => {
                let (callee, first) = (*partial).clone();
                let mut positional = first.positional;
                positional.append(&mut args.positional);
                let mut named = first.named;
                named.append(&mut args.named);
                self.call_value(callee, Args { positional, named, ..args })
            }
            Shape::Loaded(..) => callee,
            Shape::Unknown(id) if let Some(wrapped) = self.unwrapped(id) => {
                self.call_object(wrapped, args)
            }
            Shape::Settings => self.call_setting(callee, &args),
            _ => self.heap.combine_with(&args, &callee),
        }
    }

    /// Calls a method of a value. `receiver` is the expression of the value.
    fn call_method(
        &mut self,
        receiver: &'a Expr,
        base: Value<'a>,
        name: &'a str,
        args: Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        match base.shape.clone() {
            Shape::Object(id) => match self.member(id, name) {
                Some(member) => self.call_value(member, args),
                None => self.call_object_method(id, name, args),
            },
            Shape::Library(module)
                if &*module == "os.environ" && matches!(name, "get" | "setdefault") =>
            {
                self.environment_variable(&args.first_or_default())
            }
            Shape::Library(_) => {
                let callee = self.attribute(&base, name, site);
                if let Shape::Library(full) = &callee.shape
                    && matches!(library::effect_of(full), Some(Effect::DrawInto(_)))
                {
                    let first = args.first().cloned();
                    let drawn = self.call_value(callee, args);
                    if let Some(first) = first {
                        self.write_argument(&first, &drawn, site);
                    }
                    return drawn;
                }
                self.call_value(callee, args)
            }
            Shape::Module(_) | Shape::Class(_) => {
                let callee = self.attribute(&base, name, site);
                self.call_value(callee, args)
            }
            Shape::Super(class, id) => match self.super_attribute(&class, id, name) {
                Some(callee) => self.call_value(callee, args),
                None if name == "__init__" => {
                    self.initialize_base(id, &args);
                    Value::none()
                }
                None => self.call_object_method(id, name, args),
            },
            Shape::Loaded(load, _) => match (name, args.first()) {
                ("get" | "pop", Some(key)) => self.item(&base, key, site),
                ("items" | "values" | "keys", _) => {
                    self.program.note_escape(load);
                    base
                }
                _ => base,
            },
            Shape::Settings => self.call_setting(base, &args),
            _ => self.call_data_method(receiver, base, name, args),
        }
    }

    /// Calls a setting, which may name a class: `settings.optimizer(model.parameters())`.
    fn call_setting(&mut self, setting: Value<'a>, args: &Args<'a>) -> Value<'a> {
        let is_object =
            |it: &Value<'a>| matches!(it.shape, Shape::Object(_) | Shape::Parameters(_));
        match args.all().any(is_object) {
            true => self.call_unknown("settings", args),
            false => setting,
        }
    }

    /// Writes to the target of an argument: `random.shuffle(samples)`.
    pub(super) fn write_argument(&mut self, argument: &Value<'a>, by: &Value<'a>, site: Site) {
        match &argument.shape {
            Shape::Object(id) => self.write_cell(*id, by.operands.clone(), site),
            Shape::Parameters(ids) => self.write_models(ids, by, site),
            _ => {
                if let [crate::calculus::Operand::Variable(variable)] = argument.operands[..] {
                    let mut operands = argument.operands.clone();
                    operands.extend(&by.operands);
                    self.program.compute(variable, "changed", operands, site);
                }
            }
        }
    }

    /// An attribute of an object that can be called: a field or a method of its class.
    pub(super) fn member(&self, id: ObjectId, name: &str) -> Option<Value<'a>> {
        if let Some(value) = self.heap.field(id, name)
            && !matches!(value.shape, Shape::Plain | Shape::None | Shape::Parameters(_))
        {
            return Some(value);
        }
        Some(Value::of(Shape::Function(self.hook(id, name)?)))
    }
}
