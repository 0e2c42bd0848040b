//! Expressions of Python.

use std::rc::Rc;

use ruff_python_ast::{CmpOp, Expr, InterpolatedStringElement, Number, Operator};
use ruff_text_size::Ranged;

use super::Lift;
use super::heap::Heap;
use super::object::Kind;
use super::value::{Code, Function, Shape, Value};
use crate::calculus::Site;
use crate::library::{self, Environment};

/// Built-in functions and types; other names without a binding are from `import *`.
const BUILTINS: &str = "abs all any bool bytes callable chr dict dir divmod enumerate eval exec filter float \
    format frozenset getattr globals hasattr hash hex id input int isinstance issubclass iter len list locals \
    map max min next object oct open ord pow print property range repr reversed round set setattr slice \
    sorted staticmethod str sum super tuple type vars zip __import__ __file__ __name__ Exception ValueError \
    TypeError KeyError IndexError RuntimeError NotImplementedError StopIteration FileNotFoundError \
    ImportError OSError IOError AttributeError AssertionError KeyboardInterrupt classmethod delattr exit quit";

impl<'a> Lift<'a> {
    /// Evaluates an expression.
    pub(super) fn eval(&mut self, expression: &'a Expr) -> Value<'a> {
        match expression {
            Expr::Name(it) => self.name(it.id.as_str()),
            Expr::StringLiteral(it) => Value::of(Shape::Text(it.value.to_str())),
            Expr::NumberLiteral(it) => match &it.value {
                Number::Int(number) => Value::of(number.as_i64().map_or(Shape::Plain, Shape::Int)),
                _ => Value::constant(),
            },
            Expr::BooleanLiteral(it) => Value::of(Shape::Bool(it.value)),
            Expr::NoneLiteral(_) => Value::none(),
            Expr::BytesLiteral(_) | Expr::EllipsisLiteral(_) | Expr::IpyEscapeCommand(_) => {
                Value::constant()
            }
            Expr::Attribute(it) => {
                let base = self.eval(&it.value);
                let site = self.site(it.range());
                self.attribute(&base, it.attr.as_str(), site)
            }
            Expr::Subscript(it) => {
                let base = self.eval(&it.value);
                let index = self.eval(&it.slice);
                let site = self.site(it.range());
                self.item(&base, &index, site)
            }
            Expr::Call(it) => self.call(it),
            Expr::BinOp(it) => {
                let left = self.eval(&it.left);
                let right = self.eval(&it.right);
                let site = self.site(it.range());
                self.binary(left, it.op, right, site)
            }
            Expr::BoolOp(it) => {
                let values: Vec<Value<'a>> =
                    it.values.iter().map(|value| self.eval(value)).collect();
                self.heap.any_of(values)
            }
            Expr::UnaryOp(it) => {
                let value = self.eval(&it.operand);
                match (it.op, &value.shape) {
                    (ruff_python_ast::UnaryOp::USub, Shape::Int(number)) => {
                        Value::of(Shape::Int(number.wrapping_neg()))
                    }
                    (_, Shape::Loaded(..)) => value,
                    _ => self.heap.data(&value),
                }
            }
            Expr::Compare(it) => {
                let left = self.eval(&it.left);
                let mut whole = self.heap.data(&left);
                for (operator, right) in it.ops.iter().zip(it.comparators.iter()) {
                    let mut right = self.eval(right);
                    if matches!(operator, CmpOp::In | CmpOp::NotIn)
                        && matches!(right.shape, Shape::Unordered(..))
                    {
                        right.shape = Shape::Plain;
                    }
                    if !matches!(operator, CmpOp::Is | CmpOp::IsNot) {
                        whole.depend_on(&self.heap.data(&right));
                    }
                }
                whole
            }
            Expr::If(it) => {
                let test = self.eval(&it.test);
                match self.certainty(&it.test, &test) {
                    Some(true) => return self.eval(&it.body),
                    Some(false) => return self.eval(&it.orelse),
                    None => {}
                }
                let body = self.eval(&it.body);
                let otherwise = self.eval(&it.orelse);
                let mut value = self.heap.any_of(vec![body, otherwise]);
                if value.is_data() {
                    value.depend_on(&self.heap.data(&test));
                }
                value
            }
            Expr::Named(it) => {
                let value = self.eval(&it.value);
                let site = self.site(it.range());
                self.assign(&it.target, value.clone(), site);
                value
            }
            Expr::Lambda(it) => {
                let file = self
                    .execution
                    .calls
                    .last()
                    .map_or_else(|| self.scope.frame(self.scope.current).file, |call| call.file);
                let function = Function {
                    code: Code::Lambda(it),
                    file,
                    scope: self.scope.current,
                    receiver: None,
                    class: None,
                };
                Value::of(Shape::Function(Rc::new(function)))
            }
            Expr::Tuple(it) => {
                let parts = self.sequence(&it.elts);
                Value::tuple(parts)
            }
            Expr::List(it) => {
                let elements = self.sequence(&it.elts);
                let has_stars = it.elts.iter().any(Expr::is_starred_expr);
                let site = self.site(it.range());
                self.list(elements, !has_stars, site)
            }
            Expr::Set(it) => {
                let elements: Vec<Value<'a>> =
                    it.elts.iter().map(|element| self.eval(element)).collect();
                let is_steady =
                    elements.iter().all(|it| matches!(it.shape, Shape::Int(_) | Shape::Bool(_)))
                        || it.elts.len() < 2 && !it.elts.iter().any(Expr::is_starred_expr);
                let content = self.heap.combine(&elements);
                if is_steady {
                    content
                } else {
                    let site = self.site(it.range());
                    self.unordered(Environment::SetOrder, "set", content, site)
                }
            }
            Expr::Dict(it) => self.dictionary(it),
            Expr::ListComp(it) => {
                let site = self.site(it.range());
                self.comprehension(&it.generators, &[&it.elt], false, site)
            }
            Expr::Generator(it) => {
                let site = self.site(it.range());
                self.comprehension(&it.generators, &[&it.elt], false, site)
            }
            Expr::SetComp(it) => {
                let site = self.site(it.range());
                let content = self.comprehension(&it.generators, &[&it.elt], false, site);
                let content = super::builtin::without_order(content, &self.heap);
                let site = self.site(it.range());
                self.unordered(Environment::SetOrder, "set", content, site)
            }
            Expr::DictComp(it) => match &it.key {
                Some(key) => {
                    let site = self.site(it.range());
                    self.comprehension(&it.generators, &[key, &it.value], true, site)
                }
                None => {
                    let site = self.site(it.range());
                    self.comprehension(&it.generators, &[&it.value], true, site)
                }
            },
            // A formatted text is a name; the named thing does not depend on the values in it.
            Expr::FString(it) => {
                for element in it.value.elements().filter_map(interpolated) {
                    self.eval(element);
                }
                Value::constant()
            }
            Expr::TString(_) => Value::constant(),
            Expr::Await(it) => self.eval(&it.value),
            Expr::Yield(it) => {
                let value =
                    it.value.as_ref().map_or_else(Value::constant, |value| self.eval(value));
                let site = self.site(it.range());
                self.return_back(value, site);
                Value::constant()
            }
            Expr::YieldFrom(it) => {
                let value = self.eval(&it.value);
                let data = self.heap.data(&value);
                let site = self.site(it.range());
                self.return_back(data, site);
                Value::constant()
            }
            Expr::Starred(it) => self.eval(&it.value),
            Expr::Slice(it) => {
                let parts = [&it.lower, &it.upper, &it.step];
                let values: Vec<Value<'a>> =
                    parts.into_iter().flatten().map(|part| self.eval(part)).collect();
                self.heap.combine(&values)
            }
        }
    }

    /// Value of an expression, without executing it again.
    pub(super) fn eval_quietly(&mut self, expression: &'a Expr) -> Value<'a> {
        match expression {
            Expr::Name(it) => self.name(it.id.as_str()),
            Expr::Attribute(it) => {
                let base = self.eval_quietly(&it.value);
                match base.shape {
                    Shape::Object(id) => self.heap.field(id, it.attr.as_str()).unwrap_or(base),
                    _ => {
                        let site = self.site(it.range());
                        self.attribute(&base, it.attr.as_str(), site)
                    }
                }
            }
            Expr::Subscript(it) => {
                let base = self.eval_quietly(&it.value);
                let index = match &*it.slice {
                    Expr::StringLiteral(_) | Expr::NumberLiteral(_) => self.eval(&it.slice),
                    _ => Value::constant(),
                };
                match base.shape {
                    Shape::Object(id)
                        if !matches!(self.heap.object(id).kind, Kind::Container(_)) =>
                    {
                        base
                    }
                    _ => {
                        let site = self.site(it.range());
                        self.item(&base, &index, site)
                    }
                }
            }
            _ => Value::constant(),
        }
    }

    pub(super) fn name(&mut self, name: &'a str) -> Value<'a> {
        match self.look_up(name) {
            Some(value) => self.imported(value),
            None => {
                let star = self.scope.stars.get(&self.scope.frame(self.scope.current).file);
                match star.filter(|_| !BUILTINS.split(' ').any(|it| it == name)) {
                    Some(module) => Value::library(library::canonical(&format!("{module}.{name}"))),
                    None => Value::library(format!("builtins.{name}")),
                }
            }
        }
    }

    /// Resolves an import. Modules run on first use, because scripts never call most of what they
    /// import.
    pub(super) fn imported(&mut self, mut value: Value<'a>) -> Value<'a> {
        // Re-exports are followed up to a limit.
        for _ in 0..16 {
            let Shape::Import(file, name) = value.shape else {
                return value;
            };
            let frame = self.run_module(file, false);
            value = match self.scope.frame(frame).slots.get(name) {
                Some(slot) => self.heap.read(slot),
                None => Value::constant(),
            };
        }
        Value::constant()
    }

    pub(super) fn binary(
        &mut self,
        left: Value<'a>,
        operator: Operator,
        right: Value<'a>,
        site: Site,
    ) -> Value<'a> {
        match (&left.shape, &right.shape) {
            (Shape::Text(_), _) if operator == Operator::Mod => return Value::constant(),
            (Shape::Loaded(..), _) if right.operands.is_empty() => return left,
            (_, Shape::Loaded(..)) if left.operands.is_empty() => return right,
            (Shape::Object(a), Shape::Object(b)) if operator == Operator::Add => {
                if let (Kind::Container(one), Kind::Container(other)) =
                    (&self.heap.object(*a).kind, &self.heap.object(*b).kind)
                {
                    let elements: Vec<Value<'a>> =
                        one.elements.iter().chain(&other.elements).cloned().collect();
                    let is_closed = one.is_closed && other.is_closed;
                    let mut list = self.list(elements, is_closed, site);
                    let both = self.heap.combine([&left, &right]);
                    list.models = both.models;
                    if let Some(id) = list.as_object() {
                        let site = self.heap.object(id).site;
                        self.write_cell(id, both.operands, site);
                    }
                    return list;
                }
                // `+` concatenates data sets.
                if matches!(self.heap.object(*a).kind, Kind::Dataset { .. }) {
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
                let mut both =
                    Value { shape, operands: left.operands.clone(), models: left.models };
                let mut right = right.clone();
                if matches!(right.shape, Shape::Unordered(..)) {
                    right.shape = Shape::Plain;
                }
                both.depend_on(&self.heap.data(&right));
                return both;
            }
            _ => {}
        }
        self.heap.combine([&left, &right])
    }
}

impl<'a> Heap<'a> {
    /// One of several values: the object among them, or the combined data.
    pub(super) fn any_of(&mut self, values: Vec<Value<'a>>) -> Value<'a> {
        let things = values.iter().filter(|value| {
            !value.is_data() && !matches!(value.shape, Shape::Settings | Shape::Library(_))
        });
        let known = |value: &&Value<'a>| !matches!(value.shape, Shape::Loaded(..));
        if let Some(thing) = things
            .clone()
            .find(known)
            .or_else(|| values.iter().find(|it| matches!(it.shape, Shape::Loaded(..))))
        {
            return thing.clone();
        }
        if let Some(library) = values.iter().find(|it| matches!(it.shape, Shape::Library(_))) {
            return library.clone();
        }
        self.combine(&values)
    }
}

impl Value<'_> {
    pub(super) fn shape_is_plain(&self) -> bool {
        matches!(self.shape, Shape::Plain)
    }
}

fn interpolated(element: &InterpolatedStringElement) -> Option<&Expr> {
    match element {
        InterpolatedStringElement::Interpolation(it) => Some(&it.expression),
        InterpolatedStringElement::Literal(_) => None,
    }
}
