//! Expressions of Python.

use std::rc::Rc;

use ruff_python_ast::{CmpOp, Expr, InterpolatedStringElement, Number, Operator};
use ruff_text_size::Ranged;

use super::{Code, Environment, Function, Heap, Kind, Lift, Shape, Site, Value, library};

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
                let values: Vec<_> = it.values.iter().map(|value| self.eval(value)).collect();
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
                let (code, file, scope) = (Code::Lambda(it), self.file(), self.scope.current);
                let function = Function { code, file, scope, receiver: None, class: None };
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
                let elements: Vec<_> = it.elts.iter().map(|element| self.eval(element)).collect();
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
            Expr::DictComp(it) => {
                let site = self.site(it.range());
                let elements: Vec<&Expr> =
                    it.key.iter().chain([&it.value]).map(|it| &**it).collect();
                self.comprehension(&it.generators, &elements, true, site)
            }
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
                let values = parts.into_iter().flatten();
                let values: Vec<_> = values.map(|part| self.eval(part)).collect();
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
                    Shape::Object(id) if self.heap.container(id).is_none() => base,
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
            let slot = self.scope.frame(frame).slots.get(name);
            value = slot.map_or_else(Value::constant, |slot| self.heap.read(slot));
        }
        Value::constant()
    }

    fn binary(
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
                if let (Some(one), Some(other)) = (self.heap.container(*a), self.heap.container(*b))
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
            (Shape::Unordered(..), _)
                if matches!(
                    operator,
                    Operator::Add | Operator::BitOr | Operator::BitAnd | Operator::Sub
                ) =>
            {
                let mut both = left.clone();
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
    fn any_of(&self, values: Vec<Value<'a>>) -> Value<'a> {
        let is_loaded = |it: &&Value<'a>| matches!(it.shape, Shape::Loaded(..));
        let is_library = |it: &&Value<'a>| matches!(it.shape, Shape::Library(_));
        let is_thing = |it: &&Value<'a>| {
            !it.is_data()
                && !is_loaded(it)
                && !is_library(it)
                && !matches!(it.shape, Shape::Settings)
        };
        let find = |is_it: &dyn Fn(&&Value<'a>) -> bool| values.iter().find(|it| is_it(it));
        let found = find(&is_thing).or_else(|| find(&is_loaded)).or_else(|| find(&is_library));
        found.cloned().unwrap_or_else(|| self.combine(&values))
    }
}

fn interpolated(element: &InterpolatedStringElement) -> Option<&Expr> {
    match element {
        InterpolatedStringElement::Interpolation(it) => Some(&it.expression),
        InterpolatedStringElement::Literal(_) => None,
    }
}
