//! What is known of a value while a script is lifted.

use std::rc::Rc;

use ruff_python_ast::{ExprLambda, StmtClassDef, StmtFunctionDef};

use crate::FileId;
use crate::calculus::Operand;
use crate::library::Environment;

/// An object on the heap: an index into the lift's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectId(pub u32);

/// Names of a function call, a class body or a module: an index into the lift's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FrameId(pub u32);

/// A call that loads something: an index into the lift's loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LoadId(pub u32);

/// A set of models, by their numbers. Beyond the last number models share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Models(u64);

impl Models {
    /// Just this one.
    pub(crate) fn one(number: usize) -> Models {
        Models(1 << number.min(63))
    }

    /// Those of both.
    pub(crate) fn and(self, other: Models) -> Models {
        Models(self.0 | other.0)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this one is among them.
    pub(crate) fn has(self, number: usize) -> bool {
        self.0 & (1 << number.min(63)) != 0
    }
}

/// A value: what it is, what it is computed from, and which models took part.
#[derive(Clone, Debug)]
pub(crate) struct Value<'a> {
    /// What it is.
    pub shape: Shape<'a>,
    /// What it is computed from.
    pub operands: Vec<Operand>,
    /// The models whose parameters are in it.
    pub models: Models,
}

/// Names what a library made that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StrangerId(pub usize);

/// Kinds of values.
#[derive(Clone, Debug)]
pub(crate) enum Shape<'a> {
    /// Data of which nothing else is known.
    Plain,
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A text.
    Text(&'a str),
    /// Values in a row that never change.
    Tuple(Rc<[Value<'a>]>),
    /// Something with a state.
    Object(ObjectId),
    /// A function of the project.
    Function(Rc<Function<'a>>),
    /// A class of the project.
    Class(Rc<Class<'a>>),
    /// A module of the project.
    Module(FileId),
    /// A name of a module of the project that nobody looked up yet.
    Import(FileId, &'a str),
    /// Something of a library, by its qualified name.
    Library(Rc<str>),
    /// A method of a library's object that is not called yet.
    Method(ObjectId, &'a str),
    /// `super()` in a method of this class for this object.
    Super(Rc<Class<'a>>, ObjectId),
    /// The state of objects, as `state_dict` gives it.
    State(Rc<[ObjectId]>),
    /// The parameters of models.
    Parameters(Rc<[ObjectId]>),
    /// Something out of a checkpoint, by the keys that lead to it.
    Loaded(LoadId, Rc<[&'a str]>),
    /// Values whose order differs between executions; the operands do not have the order yet.
    Unordered(Environment, crate::calculus::Variable),
    /// A function with some of its arguments.
    Partial(Rc<(Value<'a>, Arguments<'a>)>),
    /// What `iter(loader)` gives.
    Iterator(ObjectId),
    /// What `enumerate` and `zip` go through.
    Zip(Rc<[Value<'a>]>),
    /// Numbers from a range: `range`, the index of `enumerate`.
    Range,
    /// A key to draw by.
    Key,
    /// A distribution to draw from.
    Distribution,
    /// What a library made that is not known.
    Stranger(StrangerId),
    /// Settings from a command line or a file: the same in every execution.
    Settings,
}

/// The name under which data is passed whose names are not known: `model(**batch)`.
pub(super) const SPREAD: &str = "**";

/// The arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments<'a> {
    /// Those by position.
    pub positional: Vec<Value<'a>>,
    /// Those by name.
    pub named: Vec<(&'a str, Value<'a>)>,
}

/// A function of the project and what it closes over.
#[derive(Clone, Debug)]
pub(crate) struct Function<'a> {
    /// Its code.
    pub code: Code<'a>,
    /// The file it is in.
    pub file: FileId,
    /// Where free names are looked up.
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
    /// What it inherits from.
    pub bases: Vec<Value<'a>>,
}

impl<'a> Value<'a> {
    /// Data computed from `operands`.
    pub(crate) fn plain(operands: Vec<Operand>) -> Value<'a> {
        Value { shape: Shape::Plain, operands, models: Models::default() }
    }

    /// Something the same in every execution.
    pub(crate) fn constant() -> Value<'a> {
        Value::plain(Vec::new())
    }

    /// A shape, computed from nothing.
    pub(crate) fn of(shape: Shape<'a>) -> Value<'a> {
        Value { shape, operands: Vec::new(), models: Models::default() }
    }

    /// An object.
    pub(crate) fn object(id: ObjectId) -> Value<'a> {
        Value::of(Shape::Object(id))
    }

    /// A library's thing of this name.
    pub(crate) fn library(name: impl Into<Rc<str>>) -> Value<'a> {
        Value::of(Shape::Library(name.into()))
    }

    /// The object it is.
    pub(crate) fn as_object(&self) -> Option<ObjectId> {
        match self.shape {
            Shape::Object(id) => Some(id),
            _ => None,
        }
    }

    /// The text it is.
    pub(crate) fn as_text(&self) -> Option<&&'a str> {
        match &self.shape {
            Shape::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is a literal or data, and no thing with an identity.
    pub(crate) fn is_data(&self) -> bool {
        matches!(
            self.shape,
            Shape::Plain
                | Shape::None
                | Shape::Bool(_)
                | Shape::Int(_)
                | Shape::Text(_)
                | Shape::Range
                | Shape::Key
                | Shape::Distribution
                | Shape::Stranger(_)
        )
    }

    /// Takes over what `other` is computed from.
    pub(crate) fn depend_on(&mut self, other: &Value<'a>) {
        self.models = self.models.and(other.models);
        for operand in &other.operands {
            if !self.operands.contains(operand) {
                self.operands.push(*operand);
            }
        }
        if let Shape::Tuple(parts) | Shape::Zip(parts) = &other.shape {
            for part in parts.iter() {
                self.depend_on(part);
            }
        }
    }

    /// Adds to what it is computed from, part by part.
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
                self.shape = match self.shape {
                    Shape::Distribution => Shape::Distribution,
                    _ => Shape::Plain,
                };
                if !self.operands.contains(&operand) {
                    self.operands.push(operand);
                }
            }
            _ => {}
        }
    }
}

impl<'a> Arguments<'a> {
    /// The argument of this name, or at this position.
    pub(crate) fn get(&self, position: usize, name: &str) -> Option<&Value<'a>> {
        self.name(name).or_else(|| self.positional.get(position))
    }

    /// The argument of this name.
    pub(crate) fn name(&self, name: &str) -> Option<&Value<'a>> {
        self.named.iter().find(|(it, _)| *it == name).map(|(_, value)| value)
    }

    /// Whether an argument of this name is given, and not `None`.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.name(name).is_some_and(|it| !matches!(it.shape, Shape::None))
    }

    /// Whether an argument of this name is given and may be true.
    pub(crate) fn may_be_true(&self, position: usize, name: &str) -> bool {
        self.get(position, name).is_some_and(|value| {
            !matches!(value.shape, Shape::Bool(false) | Shape::None | Shape::Int(0))
        })
    }

    /// Whether an argument of this name is given and certainly true.
    pub(crate) fn is_true(&self, position: usize, name: &str) -> bool {
        self.get(position, name).is_some_and(|value| matches!(value.shape, Shape::Bool(true)))
    }

    /// All of them.
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
    /// Tells functions apart.
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
