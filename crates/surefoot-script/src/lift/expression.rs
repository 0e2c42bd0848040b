//! Expressions of Python.

use std::rc::Rc;

use ruff_python_ast::{CmpOp, Expr, ExprDict, InterpolatedStringElement, Number, Operator};
use ruff_text_size::{Ranged, TextRange};

use super::Lift;
use super::object::{Container, Kind};
use super::value::{Code, Function, Models, ObjectId, Shape, Value};
use crate::calculus::{Operand, Site};
use crate::library::{self, Environment};

impl<'a> Lift<'a> {
    /// The value of an expression.
    pub(super) fn eval(&mut self, expression: &'a Expr) -> Value<'a> {
        match expression {
            Expr::Name(it) => self.name(it.id.as_str()),
            Expr::StringLiteral(it) => Value::of(Shape::Text(it.value.to_str())),
            Expr::NumberLiteral(it) => match &it.value {
                Number::Int(number) => Value::of(number.as_i64().map_or(Shape::Plain, Shape::Int)),
                _ => Value::constant(),
            },
            Expr::BooleanLiteral(it) => Value::of(Shape::Bool(it.value)),
            Expr::NoneLiteral(_) => Value::of(Shape::None),
            Expr::BytesLiteral(_) | Expr::EllipsisLiteral(_) | Expr::IpyEscapeCommand(_) => {
                Value::constant()
            }
            Expr::Attribute(it) => {
                let base = self.eval(&it.value);
                self.attribute(&base, it.attr.as_str(), it.range())
            }
            Expr::Subscript(it) => {
                let base = self.eval(&it.value);
                let index = self.eval(&it.slice);
                self.item(&base, &index, it.range())
            }
            Expr::Call(it) => self.call(it),
            Expr::BinOp(it) => {
                let left = self.eval(&it.left);
                let right = self.eval(&it.right);
                self.binary(left, it.op, right, it.range())
            }
            Expr::BoolOp(it) => {
                let values: Vec<Value<'a>> =
                    it.values.iter().map(|value| self.eval(value)).collect();
                self.any_of(values)
            }
            Expr::UnaryOp(it) => {
                let value = self.eval(&it.operand);
                match (it.op, &value.shape) {
                    (ruff_python_ast::UnaryOp::USub, Shape::Int(number)) => {
                        Value::of(Shape::Int(number.wrapping_neg()))
                    }
                    (_, Shape::Loaded(..)) => value,
                    _ => self.data(&value),
                }
            }
            Expr::Compare(it) => {
                let left = self.eval(&it.left);
                let mut whole = self.data(&left);
                for (operator, right) in it.ops.iter().zip(it.comparators.iter()) {
                    let mut right = self.eval(right);
                    if matches!(operator, CmpOp::In | CmpOp::NotIn)
                        && matches!(right.shape, Shape::Unordered(..))
                    {
                        right.shape = Shape::Plain;
                    }
                    if !matches!(operator, CmpOp::Is | CmpOp::IsNot) {
                        whole.depend_on(&self.data(&right));
                    }
                }
                whole
            }
            Expr::If(it) => {
                let test = self.eval(&it.test);
                let body = self.eval(&it.body);
                let otherwise = self.eval(&it.orelse);
                let mut value = self.any_of(vec![body, otherwise]);
                if value.is_data() {
                    value.depend_on(&self.data(&test));
                }
                value
            }
            Expr::Named(it) => {
                let value = self.eval(&it.value);
                self.assign(&it.target, value.clone(), it.range());
                value
            }
            Expr::Lambda(it) => {
                let file = self
                    .calls
                    .last()
                    .map_or_else(|| self.frame(self.current).file, |call| call.file);
                let function = Function {
                    code: Code::Lambda(it),
                    file,
                    scope: self.current,
                    receiver: None,
                    class: None,
                };
                Value::of(Shape::Function(Rc::new(function)))
            }
            Expr::Tuple(it) => {
                let parts = self.sequence(&it.elts);
                Value::of(Shape::Tuple(parts.into()))
            }
            Expr::List(it) => {
                let elements = self.sequence(&it.elts);
                let has_stars = it.elts.iter().any(Expr::is_starred_expr);
                self.list(elements, !has_stars, it.range())
            }
            Expr::Set(it) => {
                let elements: Vec<Value<'a>> =
                    it.elts.iter().map(|element| self.eval(element)).collect();
                let is_steady = elements
                    .iter()
                    .all(|it| matches!(it.shape, Shape::Int(_) | Shape::Bool(_)))
                    || it.elts.len() < 2 && !it.elts.iter().any(Expr::is_starred_expr);
                let content = self.combine(&elements);
                if is_steady {
                    content
                } else {
                    self.unordered(Environment::SetOrder, "set", content, it.range())
                }
            }
            Expr::Dict(it) => self.dictionary(it),
            Expr::ListComp(it) => self.comprehension(&it.generators, &[&it.elt], false, it.range()),
            Expr::Generator(it) => {
                self.comprehension(&it.generators, &[&it.elt], false, it.range())
            }
            Expr::SetComp(it) => {
                let content = self.comprehension(&it.generators, &[&it.elt], false, it.range());
                let content = super::builtin::without_order(content, self);
                self.unordered(Environment::SetOrder, "set", content, it.range())
            }
            Expr::DictComp(it) => match &it.key {
                Some(key) => {
                    self.comprehension(&it.generators, &[key, &it.value], true, it.range())
                }
                None => self.comprehension(&it.generators, &[&it.value], true, it.range()),
            },
            // A text made of values is a name of something: what it names does not depend on it.
            Expr::FString(it) => {
                for element in it.value.elements().filter_map(interpolated) {
                    self.eval(element);
                }
                Value::constant()
            }
            Expr::TString(_) => Value::constant(),
            Expr::Await(it) => self.eval(&it.value),
            Expr::Yield(it) => {
                let value = it
                    .value
                    .as_ref()
                    .map_or_else(Value::constant, |value| self.eval(value));
                self.give_back(value, it.range());
                Value::constant()
            }
            Expr::YieldFrom(it) => {
                let value = self.eval(&it.value);
                let data = self.data(&value);
                self.give_back(data, it.range());
                Value::constant()
            }
            Expr::Starred(it) => self.eval(&it.value),
            Expr::Slice(it) => {
                let parts = [&it.lower, &it.upper, &it.step];
                let values: Vec<Value<'a>> = parts
                    .into_iter()
                    .flatten()
                    .map(|part| self.eval(part))
                    .collect();
                self.combine(&values)
            }
        }
    }

    /// What an expression stands for, without executing anything again.
    pub(super) fn eval_quietly(&mut self, expression: &'a Expr) -> Value<'a> {
        match expression {
            Expr::Name(it) => self.name(it.id.as_str()),
            Expr::Attribute(it) => {
                let base = self.eval_quietly(&it.value);
                match base.shape {
                    Shape::Object(id) => self.field(id, it.attr.as_str()).unwrap_or(base),
                    _ => self.attribute(&base, it.attr.as_str(), it.range()),
                }
            }
            Expr::Subscript(it) => {
                let base = self.eval_quietly(&it.value);
                let index = match &*it.slice {
                    Expr::StringLiteral(_) | Expr::NumberLiteral(_) => self.eval(&it.slice),
                    _ => Value::constant(),
                };
                match base.shape {
                    Shape::Object(id) if !matches!(self.object(id).kind, Kind::Container(_)) => {
                        base
                    }
                    _ => self.item(&base, &index, it.range()),
                }
            }
            _ => Value::constant(),
        }
    }

    fn name(&mut self, name: &'a str) -> Value<'a> {
        match self.look_up(name) {
            Some(value) => self.imported(value),
            None => Value::library(format!("builtins.{name}")),
        }
    }

    /// What an import stands for. Modules run when something of theirs is needed: most of what a
    /// script imports it never calls.
    fn imported(&mut self, mut value: Value<'a>) -> Value<'a> {
        // Modules may pass a name on to each other, though not forever.
        for _ in 0..16 {
            let Shape::Import(file, name) = value.shape else {
                return value;
            };
            let frame = self.run_module(file, false);
            value = match self.frame(frame).slots.get(name) {
                Some(slot) => self.read(slot),
                None => Value::constant(),
            };
        }
        Value::constant()
    }

    /// Values of a display; what is starred is spread if it is known.
    fn sequence(&mut self, elements: &'a [Expr]) -> Vec<Value<'a>> {
        let mut values = Vec::new();
        for element in elements {
            let value = self.eval(element);
            match (element, &value.shape) {
                (Expr::Starred(_), Shape::Tuple(parts)) => values.extend(parts.iter().cloned()),
                (Expr::Starred(_), Shape::Object(id)) => match &self.object(*id).kind {
                    Kind::Container(container) => values.extend(container.elements.iter().cloned()),
                    _ => values.push(value),
                },
                _ => values.push(value),
            }
        }
        values
    }

    /// A new list.
    pub(super) fn list(
        &mut self,
        elements: Vec<Value<'a>>,
        is_closed: bool,
        range: TextRange,
    ) -> Value<'a> {
        if !elements.is_empty()
            && elements
                .iter()
                .all(|it| it.is_data() && it.operands.is_empty())
        {
            return Value::constant();
        }
        let site = self.site(range);
        let whole = self.combine(&elements);
        let elements = elements
            .into_iter()
            .map(|element| self.settled(element, site))
            .collect();
        let container = Container {
            elements,
            is_closed,
            ..Container::default()
        };
        let id = self.make(Kind::Container(container), "list", site);
        let cell = self.object(id).cell;
        self.compute(cell, "list", whole.operands, site);
        Value {
            shape: Shape::Object(id),
            operands: Vec::new(),
            models: whole.models,
        }
    }

    /// A value as it is now, whatever its variables become later.
    fn settled(&mut self, value: Value<'a>, site: Site) -> Value<'a> {
        if value.shape_is_plain() && !value.operands.is_empty() {
            let kept = self.program.variable("element");
            self.compute(kept, "copy", value.operands, site);
            return Value {
                shape: value.shape,
                operands: vec![Operand::Variable(kept)],
                models: value.models,
            };
        }
        value
    }

    fn dictionary(&mut self, it: &'a ExprDict) -> Value<'a> {
        let mut container = Container {
            is_closed: true,
            ..Container::default()
        };
        let mut whole = Value::constant();
        for item in &it.items {
            let value = self.eval(&item.value);
            whole.depend_on(&self.data(&value));
            match &item.key {
                Some(key) => {
                    let site = self.site(key.range().cover(item.value.range()));
                    match self.eval(key).shape {
                        Shape::Text(key) => container.entries.push((key, value, site)),
                        _ => {
                            container.elements.push(value);
                            container.is_closed = false;
                        }
                    }
                }
                None => match value.as_object().map(|id| self.object(id).kind.clone()) {
                    Some(Kind::Container(other)) => container.entries.extend(other.entries),
                    _ => {
                        container.elements.push(value);
                        container.is_closed = false;
                    }
                },
            }
        }
        let site = self.site(it.range());
        let id = self.make(Kind::Container(container), "dictionary", site);
        let cell = self.object(id).cell;
        self.compute(cell, "dictionary", whole.operands, site);
        Value::object(id)
    }

    /// Values whose order another execution would find different.
    pub(super) fn unordered(
        &mut self,
        what: Environment,
        call: &str,
        content: Value<'a>,
        range: TextRange,
    ) -> Value<'a> {
        let site = self.site(range);
        let order = self.read_environment(what, call, site);
        Value {
            shape: Shape::Unordered(what, order),
            operands: content.operands,
            models: content.models,
        }
    }

    /// One of several values: the thing among them, or all of the data.
    fn any_of(&mut self, values: Vec<Value<'a>>) -> Value<'a> {
        let things = values.iter().filter(|value| {
            !value.is_data() && !matches!(value.shape, Shape::Settings | Shape::Library(_))
        });
        let known = |value: &&Value<'a>| !matches!(value.shape, Shape::Loaded(..));
        if let Some(thing) = things.clone().find(known).or_else(|| {
            values
                .iter()
                .find(|it| matches!(it.shape, Shape::Loaded(..)))
        }) {
            return thing.clone();
        }
        if let Some(library) = values
            .iter()
            .find(|it| matches!(it.shape, Shape::Library(_)))
        {
            return library.clone();
        }
        self.combine(&values)
    }

    fn binary(
        &mut self,
        left: Value<'a>,
        operator: Operator,
        right: Value<'a>,
        range: TextRange,
    ) -> Value<'a> {
        match (&left.shape, &right.shape) {
            (Shape::Text(_), _) if operator == Operator::Mod => return Value::constant(),
            (Shape::Loaded(..), _) if right.operands.is_empty() => return left,
            (_, Shape::Loaded(..)) if left.operands.is_empty() => return right,
            (Shape::Object(a), Shape::Object(b)) if operator == Operator::Add => {
                if let (Kind::Container(one), Kind::Container(other)) =
                    (&self.object(*a).kind, &self.object(*b).kind)
                {
                    let elements: Vec<Value<'a>> = one
                        .elements
                        .iter()
                        .chain(&other.elements)
                        .cloned()
                        .collect();
                    let is_closed = one.is_closed && other.is_closed;
                    let mut list = self.list(elements, is_closed, range);
                    let both = self.combine([&left, &right]);
                    list.models = both.models;
                    if let Some(id) = list.as_object() {
                        let site = self.object(id).site;
                        self.write_cell(id, both.operands, site);
                    }
                    return list;
                }
                // Data sets are put together with a plus.
                if matches!(self.object(*a).kind, Kind::Dataset { .. }) {
                    return left;
                }
            }
            (Shape::Unordered(what, order), _)
                if matches!(
                    operator,
                    Operator::Add | Operator::BitOr | Operator::BitAnd | Operator::Sub
                ) =>
            {
                let shape = Shape::Unordered(*what, *order);
                let mut both = Value {
                    shape,
                    operands: left.operands.clone(),
                    models: left.models,
                };
                let mut right = right.clone();
                if matches!(right.shape, Shape::Unordered(..)) {
                    right.shape = Shape::Plain;
                }
                both.depend_on(&self.data(&right));
                return both;
            }
            _ => {}
        }
        self.combine([&left, &right])
    }

    /// An attribute of a value.
    pub(super) fn attribute(
        &mut self,
        base: &Value<'a>,
        name: &'a str,
        range: TextRange,
    ) -> Value<'a> {
        match &base.shape {
            Shape::Object(id) => self.attribute_of_object(*id, name, range),
            Shape::Library(module) => {
                let full = format!("{module}.{name}");
                if library::effect_of(module).is_none() {
                    let file = self.frame(self.current).file;
                    if let Some(file) = self.project.modules.resolve(file, &full) {
                        return Value::of(Shape::Module(file));
                    }
                }
                Value::library(library::canonical(&full))
            }
            Shape::Module(file) => {
                let frame = self.run_module(*file, false);
                match self.frame(frame).slots.get(name) {
                    Some(slot) => {
                        let value = self.read(slot);
                        self.imported(value)
                    }
                    None => Value::constant(),
                }
            }
            Shape::Class(class) => {
                let class = class.clone();
                self.class_attribute(&class, name)
                    .unwrap_or_else(Value::constant)
            }
            Shape::Super(class, id) => {
                let (class, id) = (class.clone(), *id);
                self.super_attribute(&class, id, name)
                    .unwrap_or_else(Value::constant)
            }
            Shape::Settings
                if matches!(
                    name,
                    "rank" | "local_rank" | "global_rank" | "process_index"
                ) =>
            {
                Value::plain(vec![Operand::Rank])
            }
            Shape::Settings if matches!(name, "world_size" | "ngpus" | "num_gpus") => {
                Value::plain(vec![Operand::Workers])
            }
            Shape::Settings | Shape::Loaded(..) => base.clone(),
            Shape::Parameters(ids) => match name {
                "data" => base.clone(),
                "grad" => {
                    let ids = ids.clone();
                    let mut gradients = Value::constant();
                    for id in ids.iter() {
                        if let Kind::Module {
                            gradients: variable,
                            ..
                        } = self.object(self.root(*id)).kind
                        {
                            gradients.operands.push(Operand::Variable(variable));
                        }
                    }
                    gradients
                }
                _ => self.data(base),
            },
            Shape::State(_) => base.clone(),
            _ => self.data(base),
        }
    }

    fn attribute_of_object(&mut self, id: ObjectId, name: &'a str, range: TextRange) -> Value<'a> {
        if let Some(value) = self.field(id, name) {
            return value;
        }
        if let Some(class) = self.object(id).class.clone()
            && let Some(value) = self.class_attribute(&class, name)
        {
            return match value.shape {
                Shape::Function(function) => {
                    let bound = self.bind_method(&function, id);
                    if is_property(&function) {
                        self.enter(&bound, super::value::Arguments::default(), range)
                    } else {
                        Value::of(Shape::Function(bound))
                    }
                }
                _ => value,
            };
        }
        let cell = self.cell(id);
        let models = self.models_of(id);
        match &self.object(id).kind {
            Kind::Module { .. } => match name {
                "module" | "_orig_mod" | "ema" => Value::object(id),
                "hparams" | "trainer" | "logger" => Value::of(Shape::Settings),
                "training" | "device" | "dtype" | "current_epoch" | "global_step"
                | "input_shape" | "output_shape" | "inputs" | "input" => Value::constant(),
                _ if is_method_name(name) => Value::of(Shape::Method(id, name)),
                _ => Value {
                    shape: Shape::Parameters(Rc::new([self.root(id)])),
                    operands: Vec::new(),
                    models,
                },
            },
            Kind::Loader(loader) => match name {
                "dataset" => loader.dataset.clone(),
                "sampler" | "batch_sampler" => {
                    loader.sampler.clone().unwrap_or_else(Value::constant)
                }
                _ => Value::constant(),
            },
            Kind::Dataset { from, .. } => {
                let from = from.clone();
                self.data(&from)
            }
            Kind::Framework(_) => self.framework_attribute(id, name),
            // Groups of parameters are part of the optimizer, and written through.
            Kind::Optimizer { .. } if name == "param_groups" => Value::object(id),
            Kind::Plain | Kind::Transform { .. } => Value::constant(),
            _ if is_method_name(name) => Value::of(Shape::Method(id, name)),
            _ => Value {
                shape: Shape::Plain,
                operands: vec![Operand::Variable(cell)],
                models,
            },
        }
    }

    /// An item of a value.
    pub(super) fn item(
        &mut self,
        base: &Value<'a>,
        index: &Value<'a>,
        range: TextRange,
    ) -> Value<'a> {
        match &base.shape {
            Shape::Tuple(parts) => {
                if let Shape::Int(at) = index.shape {
                    let length = i64::try_from(parts.len()).unwrap_or(i64::MAX);
                    let at = if at < 0 { at + length } else { at };
                    if let Some(part) = usize::try_from(at).ok().and_then(|at| parts.get(at)) {
                        return part.clone();
                    }
                }
            }
            Shape::Object(id) => return self.item_of_object(*id, index, range),
            Shape::Settings | Shape::State(_) | Shape::Parameters(_) | Shape::Key => {
                return base.clone();
            }
            Shape::Loaded(load, keys) => {
                let Some(key) = index.as_text().copied() else {
                    return base.clone();
                };
                self.note_key(*load, key);
                let keys: Vec<&'a str> = keys.iter().copied().chain([key]).collect();
                return Value::of(Shape::Loaded(*load, keys.into()));
            }
            Shape::Library(name) if name.ends_with(".__dict__") => {
                let module = name.trim_end_matches(".__dict__");
                return Value::library(format!("{module}.any"));
            }
            Shape::Library(name) if &**name == "os.environ" => {
                return self.environment_variable(index);
            }
            _ => {}
        }
        self.combine([base, index])
    }

    fn item_of_object(&mut self, id: ObjectId, index: &Value<'a>, range: TextRange) -> Value<'a> {
        let cell = Operand::Variable(self.cell(id));
        let found = match &self.object(id).kind {
            Kind::Module { .. } => return Value::object(id),
            Kind::Optimizer { .. } if !matches!(index.shape, Shape::Text(_)) => {
                return Value::object(id);
            }
            Kind::Container(container) => match &index.shape {
                Shape::Text(key) => container
                    .entries
                    .iter()
                    .find(|(it, _, _)| it == key)
                    .map(|(_, value, _)| value.clone()),
                Shape::Int(at) if container.is_closed => usize::try_from(*at)
                    .ok()
                    .and_then(|at| container.elements.get(at))
                    .cloned(),
                _ => container.elements.iter().find(|it| !it.is_data()).cloned(),
            },
            Kind::Dataset { .. } => return self.element_of_object(id, cell, range),
            Kind::Plain => {
                let class = self.object(id).class.clone();
                if let Some(class) = class
                    && let Some(Value {
                        shape: Shape::Function(function),
                        ..
                    }) = self.class_attribute(&class, "__getitem__")
                {
                    let bound = self.bind_method(&function, id);
                    let arguments = super::value::Arguments {
                        positional: vec![index.clone()],
                        named: Vec::new(),
                    };
                    return self.enter(&bound, arguments, range);
                }
                return self.data(index);
            }
            _ => None,
        };
        match found {
            Some(value) if !value.is_data() => value,
            found => {
                let mut whole = self.data(index);
                if let Some(found) = found {
                    whole.depend_on(&found);
                }
                if !whole.operands.contains(&cell) {
                    whole.operands.push(cell);
                }
                whole
            }
        }
    }

    /// A variable of the system's environment: a setting, or the rank of a process.
    pub(super) fn environment_variable(&mut self, name: &Value<'a>) -> Value<'a> {
        let operands = match name.as_text().copied() {
            Some(
                "RANK" | "LOCAL_RANK" | "SLURM_PROCID" | "SLURM_LOCALID" | "OMPI_COMM_WORLD_RANK",
            ) => vec![Operand::Rank],
            // The cluster, with the number of this worker in it.
            Some("TF_CONFIG") => vec![Operand::Rank],
            Some("WORLD_SIZE" | "SLURM_NTASKS") => vec![Operand::Workers],
            _ => Vec::new(),
        };
        Value {
            shape: Shape::Plain,
            operands,
            models: Models::default(),
        }
    }
}

impl Value<'_> {
    fn shape_is_plain(&self) -> bool {
        matches!(self.shape, Shape::Plain)
    }
}

/// Whether a method is read like an attribute.
fn is_property(function: &Function<'_>) -> bool {
    let Code::Def(code) = function.code else {
        return false;
    };
    code.decorator_list.iter().any(|it| match &it.expression {
        Expr::Name(name) => name.id == "property" || name.id == "cached_property",
        Expr::Attribute(it) => it.attr.as_str() == "cached_property",
        _ => false,
    })
}

/// Methods that scripts pass on without calling them.
fn is_method_name(name: &str) -> bool {
    matches!(
        name,
        "parameters"
            | "state_dict"
            | "load_state_dict"
            | "train"
            | "eval"
            | "step"
            | "zero_grad"
            | "forward"
            | "append"
            | "extend"
            | "update"
            | "sample"
    )
}

fn interpolated(element: &InterpolatedStringElement) -> Option<&Expr> {
    match element {
        InterpolatedStringElement::Interpolation(it) => Some(&it.expression),
        InterpolatedStringElement::Literal(_) => None,
    }
}
