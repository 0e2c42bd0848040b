//! Calls.

use std::rc::Rc;

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::Lift;
use super::object::Kind;
use super::value::{Arguments, ObjectId, SPREAD, Shape, Value};
use crate::calculus::Site;
use crate::library::{self, Effect};

impl<'a> Lift<'a> {
    /// Evaluates a call.
    pub(super) fn call(&mut self, call: &'a ExprCall) -> Value<'a> {
        if let Expr::Attribute(it) = &*call.func {
            let base = self.eval(&it.value);
            let arguments = self.arguments(call);
            return self.call_method(&it.value, base, it.attr.as_str(), arguments);
        }
        if let Expr::Name(name) = &*call.func
            && name.id == "super"
            && let Some(value) = self.execution.super_value()
        {
            return value;
        }
        let callee = self.eval(&call.func);
        let arguments = self.arguments(call);
        // Functions that write their argument need its expression.
        if let (Shape::Library(name), Some(first)) = (&callee.shape, call.arguments.args.first())
            && matches!(library::effect_of(name), Some(Effect::DrawInto(_)))
        {
            let site = arguments.site;
            let drawn = self.call_value(callee.clone(), arguments);
            self.mutate(first, &drawn, site);
            return drawn;
        }
        self.call_value(callee, arguments)
    }

    pub(super) fn arguments(&mut self, call: &'a ExprCall) -> Arguments<'a> {
        let (mut positional, mut named) = (Vec::new(), Vec::new());
        for argument in &call.arguments.args {
            let value = self.eval(argument);
            if !argument.is_starred_expr() {
                positional.push(value);
                continue;
            }
            match &value.shape {
                Shape::Tuple(parts) => positional.extend(parts.iter().cloned()),
                Shape::Object(id) => match &self.heap.object(*id).kind {
                    Kind::Container(container) => {
                        positional.extend(container.elements.iter().cloned())
                    }
                    _ => positional.push(value),
                },
                Shape::Unordered(..) | Shape::Plain => {
                    let data = self.heap.data(&value);
                    positional.push(data);
                }
                _ => positional.push(value),
            }
        }
        for keyword in &call.arguments.keywords {
            let value = self.eval(&keyword.value);
            match &keyword.arg {
                Some(name) => named.push((name.as_str(), value)),
                None => {
                    let kind = value.as_object().map(|id| &self.heap.object(id).kind);
                    if let Some(Kind::Container(container)) = kind {
                        let entries = container.entries.iter();
                        let passed = entries.map(|(name, value, _)| (*name, value.clone()));
                        named.extend(passed);
                    } else if value.is_data() && !value.operands.is_empty() {
                        named.push((SPREAD, value));
                    }
                }
            }
        }
        let site = self.site(call.range());
        Arguments { positional, named, site, call: Some(call) }
    }

    /// Calls a value with positional arguments, on behalf of a library.
    pub(super) fn call_with(
        &mut self,
        callee: Value<'a>,
        positional: Vec<Value<'a>>,
        site: Site,
    ) -> Value<'a> {
        self.call_value(callee, Arguments::of(positional, site))
    }

    /// Calls a value.
    pub(super) fn call_value(
        &mut self,
        callee: Value<'a>,
        mut arguments: Arguments<'a>,
    ) -> Value<'a> {
        match &callee.shape {
            Shape::Function(function) => {
                let function = function.clone();
                if self.execution.is_generator(&function) {
                    // The body runs when the generator is iterated.
                    return Value::of(Shape::Partial(Rc::new((
                        Value::of(Shape::Function(function)),
                        arguments,
                    ))));
                }
                self.enter(&function, arguments)
            }
            Shape::Class(class) => {
                let class = class.clone();
                self.instantiate(&class, arguments)
            }
            Shape::Library(name) => {
                let name = name.clone();
                self.call_library(&name, arguments)
            }
            Shape::Object(id) => self.call_object(*id, arguments),
            Shape::Method(id, name) => {
                let (id, name) = (*id, *name);
                self.call_object_method(id, name, arguments)
            }
            Shape::Partial(partial) => {
                let (callee, first) = (**partial).clone();
                let mut positional = first.positional;
                positional.append(&mut arguments.positional);
                let mut named = first.named;
                named.append(&mut arguments.named);
                self.call_value(callee, Arguments { positional, named, ..arguments })
            }
            Shape::Loaded(..) => callee,
            Shape::Unknown(id) if let Some(wrapped) = self.unwrapped(*id) => {
                self.call_object(wrapped, arguments)
            }
            Shape::Settings => self.call_setting(callee, &arguments),
            _ => {
                let mut whole = self.heap.combine(arguments.all());
                whole.depend_on(&self.heap.data(&callee));
                whole
            }
        }
    }

    /// Calls a method of a value. `receiver` is the expression of the value.
    pub(super) fn call_method(
        &mut self,
        receiver: &'a Expr,
        base: Value<'a>,
        name: &'a str,
        arguments: Arguments<'a>,
    ) -> Value<'a> {
        let site = arguments.site;
        match &base.shape {
            Shape::Object(id) => {
                let id = *id;
                if self.heap.field(id, name).is_some() || self.heap.object(id).class.is_some() {
                    let member = self.member(id, name);
                    if let Some(member) = member {
                        return self.call_value(member, arguments);
                    }
                }
                self.call_object_method(id, name, arguments)
            }
            Shape::Library(module)
                if &**module == "os.environ" && matches!(name, "get" | "setdefault") =>
            {
                let key = arguments.first().cloned().unwrap_or_default();
                self.environment_variable(&key)
            }
            Shape::Library(_) => {
                let callee = self.attribute(&base, name, site);
                if let Shape::Library(full) = &callee.shape
                    && matches!(library::effect_of(full), Some(Effect::DrawInto(_)))
                {
                    let first = arguments.first().cloned();
                    let drawn = self.call_value(callee, arguments);
                    if let Some(first) = first {
                        self.write_argument(&first, &drawn, site);
                    }
                    return drawn;
                }
                self.call_value(callee, arguments)
            }
            Shape::Module(_) | Shape::Class(_) => {
                let callee = self.attribute(&base, name, site);
                self.call_value(callee, arguments)
            }
            Shape::Super(class, id) => {
                let (class, id) = (class.clone(), *id);
                match self.super_attribute(&class, id, name) {
                    Some(callee) => self.call_value(callee, arguments),
                    None if name == "__init__" => {
                        self.initialize_base(id, &arguments);
                        Value::none()
                    }
                    None => self.call_object_method(id, name, arguments),
                }
            }
            Shape::Loaded(load, keys) => {
                if matches!(name, "get" | "pop")
                    && let Some(key) = arguments.first().and_then(Value::as_text).copied()
                {
                    self.program.note_key(*load, key);
                    let keys: Vec<&'a str> = keys.iter().copied().chain([key]).collect();
                    return Value::of(Shape::Loaded(*load, keys.into()));
                }
                if matches!(name, "items" | "values" | "keys") {
                    self.program.note_escape(*load);
                }
                base
            }
            Shape::Settings => self.call_setting(base, &arguments),
            _ => self.call_data_method(receiver, base, name, arguments),
        }
    }

    /// Calls a setting, which may name a class: `settings.optimizer(model.parameters())`.
    fn call_setting(&mut self, setting: Value<'a>, arguments: &Arguments<'a>) -> Value<'a> {
        let is_object =
            |it: &Value<'a>| matches!(it.shape, Shape::Object(_) | Shape::Parameters(_));
        match arguments.all().any(is_object) {
            true => self.call_unknown("settings", arguments),
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
    pub(super) fn member(&mut self, id: ObjectId, name: &'a str) -> Option<Value<'a>> {
        if let Some(value) = self.heap.field(id, name)
            && !matches!(value.shape, Shape::Plain | Shape::None | Shape::Parameters(_))
        {
            return Some(value);
        }
        let class = self.heap.object(id).class.clone()?;
        match self.class_attribute(&class, name)?.shape {
            Shape::Function(function) => {
                Some(Value::of(Shape::Function(self.bind_method(&function, id))))
            }
            _ => None,
        }
    }
}
