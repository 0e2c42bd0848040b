//! Abstract values.

use std::rc::Rc;

use ruff_python_ast::{ExprCall, ExprLambda, StmtClassDef, StmtFunctionDef};

use super::{Environment, FileId, Operand, Site, Variable};

/// An object on the heap: an index into the lift's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectId(pub u32);

/// Names of a function call, a class body or a module: an index into the lift's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FrameId(pub u32);

/// A call that loads something: an index into the lift's loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LoadId(pub u32);

/// A set of models, by their numbers. Models beyond the last number share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Models(u64);

impl Models {
    /// A set of one model.
    pub(crate) fn one(number: usize) -> Models {
        Models(1 << number.min(63))
    }

    /// Union.
    pub(crate) fn and(self, other: Models) -> Models {
        Models(self.0 | other.0)
    }

    /// Returns true for the empty set.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the set contains a model.
    pub(crate) fn has(self, number: usize) -> bool {
        self.0 & (1 << number.min(63)) != 0
    }
}

/// A value: shape, operands, and the models that took part in computing it.
#[derive(Clone, Debug)]
pub(crate) struct Value<'a> {
    pub shape: Shape<'a>,
    /// Operands.
    pub operands: Vec<Operand>,
    /// Models whose parameters it holds.
    pub models: Models,
}

/// Names an unknown object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownId(pub usize);

/// Kinds of values.
#[derive(Clone, Debug)]
pub(crate) enum Shape<'a> {
    /// Data.
    Plain,
    /// `None`.
    None,
    /// A Boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A text.
    Text(&'a str),
    /// A tuple.
    Tuple(Rc<[Value<'a>]>),
    /// An object with state.
    Object(ObjectId),
    /// A function of the project.
    Function(Rc<Function<'a>>),
    /// A class of the project.
    Class(Rc<Class<'a>>),
    /// A module of the project.
    Module(FileId),
    /// A name in a project module, not resolved yet.
    Import(FileId, &'a str),
    /// A library function, class or module, by its qualified name.
    Library(Rc<str>),
    /// A bound method of a library object.
    Method(ObjectId, &'a str),
    /// `super()` in a method of this class for this object.
    Super(Rc<Class<'a>>, ObjectId),
    /// Result of `state_dict`.
    State(Rc<[ObjectId]>),
    /// The parameters of models.
    Parameters(Rc<[ObjectId]>),
    /// An entry of a checkpoint, with the keys that lead to it.
    Loaded(LoadId, Rc<[&'a str]>),
    /// Values in an order that differs between executions; the operands exclude the order.
    Unordered(Environment, Variable),
    /// A function with bound arguments.
    Partial(Rc<(Value<'a>, Args<'a>)>),
    /// `iter(loader)`.
    Iterator(ObjectId),
    /// Arguments of `enumerate` and `zip`.
    Zip(Rc<[Value<'a>]>),
    /// Numbers from a range: `range`, the index of `enumerate`.
    Range,
    /// A key to draw by.
    Key,
    /// A distribution to draw from.
    Distribution,
    /// Result of a call into an unknown library.
    Unknown(UnknownId),
    /// Settings from a command line or a file: the same in every execution.
    Settings,
}

/// Name of arguments with unknown names: `model(**batch)`.
pub(super) const SPREAD: &str = "**";

/// The arguments of a call.
#[derive(Clone, Debug)]
pub(crate) struct Args<'a> {
    /// Positional arguments.
    pub positional: Vec<Value<'a>>,
    /// Keyword arguments.
    pub named: Vec<(&'a str, Value<'a>)>,
    /// Site of the call.
    pub site: Site,
    /// Call expression; `None` for calls that a library makes.
    pub call: Option<&'a ExprCall>,
}

/// A function of the project with its closure.
#[derive(Clone, Debug)]
pub(crate) struct Function<'a> {
    /// Its code.
    pub code: Code<'a>,
    /// The file it is in.
    pub file: FileId,
    /// Frame for free names.
    pub scope: FrameId,
    /// The object it is a method of.
    pub receiver: Option<ObjectId>,
    /// The class that defines it.
    pub class: Option<Rc<Class<'a>>>,
}

/// The code of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Code<'a> {
    /// `def`.
    Def(&'a StmtFunctionDef),
    /// `lambda`.
    Lambda(&'a ExprLambda),
}

/// A class of the project.
#[derive(Clone, Debug)]
pub(crate) struct Class<'a> {
    /// Its code.
    pub code: &'a StmtClassDef,
    /// Its own names.
    pub body: FrameId,
    /// Base classes.
    pub bases: Vec<Value<'a>>,
}

impl Shape<'_> {
    /// Returns true for literals and data, which have no identity.
    pub(super) fn is_data(&self) -> bool {
        matches!(
            self,
            Shape::Plain
                | Shape::None
                | Shape::Bool(_)
                | Shape::Int(_)
                | Shape::Text(_)
                | Shape::Range
                | Shape::Key
                | Shape::Distribution
                | Shape::Unknown(_)
        )
    }

    /// Returns true for functions and classes.
    pub(super) fn is_callable(&self) -> bool {
        matches!(self, Shape::Function(_) | Shape::Class(_) | Shape::Library(_) | Shape::Partial(_))
    }
}

impl Default for Value<'_> {
    fn default() -> Self {
        Value::constant()
    }
}

impl<'a> Value<'a> {
    /// Data computed from `operands`.
    pub(crate) fn plain(operands: Vec<Operand>) -> Value<'a> {
        Value { shape: Shape::Plain, operands, models: Models::default() }
    }

    /// A value that is the same in every execution.
    pub(crate) fn constant() -> Value<'a> {
        Value::plain(Vec::new())
    }

    /// The value of a variable.
    pub(crate) fn variable(variable: Variable) -> Value<'a> {
        Value::plain(vec![Operand::Variable(variable)])
    }

    /// `None`.
    pub(crate) fn none() -> Value<'a> {
        Value::of(Shape::None)
    }

    /// A tuple.
    pub(crate) fn tuple(parts: impl Into<Rc<[Value<'a>]>>) -> Value<'a> {
        Value::of(Shape::Tuple(parts.into()))
    }

    /// A value without operands.
    pub(crate) fn of(shape: Shape<'a>) -> Value<'a> {
        Value { shape, operands: Vec::new(), models: Models::default() }
    }

    /// An object.
    pub(crate) fn object(id: ObjectId) -> Value<'a> {
        Value::of(Shape::Object(id))
    }

    /// A library function, class or module.
    pub(crate) fn library(name: impl Into<Rc<str>>) -> Value<'a> {
        Value::of(Shape::Library(name.into()))
    }

    /// The object, if it is one.
    pub(crate) fn as_object(&self) -> Option<ObjectId> {
        match self.shape {
            Shape::Object(id) => Some(id),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub(crate) fn as_text(&self) -> Option<&&'a str> {
        match &self.shape {
            Shape::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns true for `None`.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.shape, Shape::None)
    }

    /// Returns true for literals and data, which have no identity.
    pub(crate) fn is_data(&self) -> bool {
        self.shape.is_data()
    }

    /// The value with these models.
    pub(crate) fn with_models(self, models: Models) -> Value<'a> {
        Value { models, ..self }
    }

    /// Adds the operands and models of `other`.
    pub(crate) fn depend_on(&mut self, other: &Value<'a>) {
        self.models = self.models.and(other.models);
        for operand in &other.operands {
            push_new(&mut self.operands, *operand);
        }
        if let Shape::Tuple(parts) | Shape::Zip(parts) = &other.shape {
            for part in parts.iter() {
                self.depend_on(part);
            }
        }
    }

    /// Adds an operand, element by element.
    pub(crate) fn mark(&mut self, operand: Operand, models: Models) {
        self.models = models;
        match &self.shape {
            Shape::Tuple(parts) => {
                let parts = parts.iter().map(|part| {
                    let mut part = part.clone();
                    let models = models.and(part.models);
                    if part.is_data() || matches!(part.shape, Shape::Tuple(_)) {
                        part.mark(operand, models);
                    }
                    part
                });
                self.shape = Shape::Tuple(parts.collect());
            }
            _ if self.is_data() => {
                if !matches!(self.shape, Shape::Distribution) {
                    self.shape = Shape::Plain;
                }
                push_new(&mut self.operands, operand);
            }
            _ => {}
        }
    }
}

impl<'a> Args<'a> {
    /// Positional arguments of a call that a library makes.
    pub(crate) fn of(positional: Vec<Value<'a>>, site: Site) -> Args<'a> {
        Args { positional, named: Vec::new(), site, call: None }
    }

    /// A call without arguments that a library makes.
    pub(crate) fn none(site: Site) -> Args<'a> {
        Args::of(Vec::new(), site)
    }

    /// The first positional argument, or a constant.
    pub(crate) fn first_or_default(&self) -> Value<'a> {
        self.first().cloned().unwrap_or_default()
    }

    /// The first positional argument.
    pub(crate) fn first(&self) -> Option<&Value<'a>> {
        self.positional.first()
    }

    /// The value of a flag, if the argument of this name is a literal.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.name(name)?.shape {
            Shape::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// The argument of this name, or at this position, unless it is `None`.
    pub(crate) fn passed(&self, position: usize, name: &str) -> Option<&Value<'a>> {
        self.get(position, name).filter(|it| !it.is_none())
    }

    /// The argument of this name, or at this position.
    pub(crate) fn get(&self, position: usize, name: &str) -> Option<&Value<'a>> {
        self.name(name).or_else(|| self.positional.get(position))
    }

    /// The argument of this name.
    pub(crate) fn name(&self, name: &str) -> Option<&Value<'a>> {
        self.named.iter().find(|(it, _)| *it == name).map(|(_, value)| value)
    }

    /// Returns true if an argument of this name is passed and may be true.
    pub(crate) fn may_be_true(&self, position: usize, name: &str) -> bool {
        self.get(position, name).is_some_and(|value| {
            !matches!(value.shape, Shape::Bool(false) | Shape::None | Shape::Int(0))
        })
    }

    /// Returns true if an argument of this name is passed and certainly true.
    pub(crate) fn is_true(&self, position: usize, name: &str) -> bool {
        self.get(position, name).is_some_and(|value| matches!(value.shape, Shape::Bool(true)))
    }

    /// All arguments.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Value<'a>> {
        self.positional.iter().chain(self.named.iter().map(|(_, value)| value))
    }
}

impl Class<'_> {
    /// Library classes that it inherits from, directly or through classes of the project.
    pub(crate) fn library_bases(&self) -> Vec<Rc<str>> {
        let mut found = Vec::new();
        let mut open = vec![self];
        while let Some(class) = open.pop() {
            for base in &class.bases {
                match &base.shape {
                    Shape::Class(base) if found.len() + open.len() < 32 => open.push(base),
                    Shape::Library(name) => found.push(name.clone()),
                    _ => {}
                }
            }
        }
        found
    }
}

impl<'a> Code<'a> {
    /// Unique address of the code.
    pub(crate) fn address(self) -> usize {
        match self {
            Code::Def(code) => std::ptr::from_ref(code) as usize,
            Code::Lambda(code) => std::ptr::from_ref(code) as usize,
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'a str {
        match self {
            Code::Def(code) => code.name.as_str(),
            Code::Lambda(_) => "lambda",
        }
    }
}

/// Adds an item to a list that does not contain it yet.
pub(super) fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}
