//! Built-in functions.

use std::rc::Rc;

use super::Lift;
use super::heap::Heap;
use super::object::{Container, Kind};
use super::value::{Arguments, ObjectId, SPREAD, Shape, Value};
use crate::calculus::{Operand, Site};
use crate::library::{DYNAMIC_NAME, Environment};

impl<'a> Lift<'a> {
    /// Value to iterate over; the elements of a set have an unspecified order.
    pub(super) fn iteration_value(&mut self, value: Value<'a>, site: Site) -> Value<'a> {
        let id = value.as_object().map(|id| self.heap.actual(id));
        // Attributes of objects mostly hold numbers, which have a stable order.
        let is_known = |id: ObjectId| {
            let name = self.heap.object(id).name.as_deref();
            self.heap.sets.contains(&id) && !name.is_some_and(|name| name.contains('.'))
        };
        if let Some(Kind::Container(container)) = id.map(|id| &self.heap.object(id).kind)
            && let Some((what, order)) = container.order
        {
            let content = without_order(value, &self.heap);
            return Value { shape: Shape::Unordered(what, order), ..content };
        }
        if !id.is_some_and(is_known) {
            return value;
        }
        let content = self.heap.data(&value);
        self.unordered(Environment::SetOrder, "set", content, site)
    }

    /// Calls a built-in function.
    pub(super) fn call_builtin(&mut self, name: &str, arguments: Arguments<'a>) -> Value<'a> {
        let site = arguments.site;
        let first = arguments.first().cloned();
        match (name, first) {
            ("range", _) => {
                let whole = self.heap.combine(arguments.all());
                Value { shape: Shape::Range, ..whole }
            }
            ("enumerate", Some(first)) => {
                let first = self.iteration_value(first, site);
                Value::of(Shape::Zip(Rc::new([Value::of(Shape::Range), first])))
            }
            ("zip", Some(_)) => Value::of(Shape::Zip(arguments.positional.into())),
            ("sorted" | "len" | "min" | "max" | "sum" | "any" | "all", Some(_)) => {
                let values =
                    arguments.positional.into_iter().map(|value| without_order(value, &self.heap));
                let values: Vec<Value<'a>> = values.collect();
                self.heap.combine(&values)
            }
            ("set" | "frozenset", Some(first)) => match first.shape {
                Shape::Range => self.heap.data(&first),
                _ => {
                    let content = without_order(first, &self.heap);
                    let content = self.heap.combine([&content]);
                    self.unordered(Environment::SetOrder, "set", content, site)
                }
            },
            ("set" | "list" | "dict", None) => {
                let named = arguments.named.iter().filter(|(key, _)| *key != SPREAD);
                let entries = named
                    .map(|(key, value)| (*key, value.clone(), self.keyword_site(key, &arguments)))
                    .collect();
                let container = Container {
                    entries,
                    is_closed: true,
                    has_keys: name == "dict",
                    ..Container::default()
                };
                let id = self.make(Kind::Container(container), name, site);
                self.write_state(id, "new", Vec::new(), site);
                if name == "set" {
                    self.heap.sets.insert(id);
                }
                Value::object(id)
            }
            ("list" | "tuple" | "reversed" | "filter", Some(_)) => {
                let last = arguments.positional.last().cloned().unwrap_or_default();
                let last = self.iteration_value(last, site);
                self.note_order_use(&last, site);
                match last.shape {
                    Shape::Unordered(..)
                    | Shape::Tuple(_)
                    | Shape::Parameters(_)
                    | Shape::Loaded(..)
                    | Shape::Settings
                    | Shape::Zip(_)
                    | Shape::Range => last,
                    Shape::Object(id) if !matches!(self.heap.object(id).kind, Kind::Plain) => last,
                    _ => self.heap.data(&last),
                }
            }
            ("iter", Some(first)) => match first.shape {
                Shape::Object(id) if matches!(self.heap.object(id).kind, Kind::Loader(_)) => {
                    self.begin_pass(&first, site);
                    Value::of(Shape::Iterator(id))
                }
                Shape::Object(id) if self.heap.pipeline(id).is_some() => {
                    self.begin_pass(&first, site);
                    first
                }
                _ => first,
            },
            ("next", Some(first)) => {
                let counter = self.program.variable("round");
                self.program.compute(counter, "any", Vec::new(), site);
                self.note_iterator(&first);
                let mut element = self.element(&first, counter, site);
                if let Shape::Unordered(_, order) = first.shape {
                    element.operands.push(Operand::Variable(order));
                }
                element
            }
            ("map", Some(function)) => {
                let Some(values) = arguments.positional.get(1).cloned() else {
                    return Value::constant();
                };
                let counter = self.program.variable("round");
                self.program.compute(counter, "any", Vec::new(), site);
                let values = self.iteration_value(values, site);
                let element = self.element(&values, counter, site);
                let result = self.call_with(function, vec![element], site);
                match values.shape {
                    Shape::Unordered(what, order) => {
                        let data = self.heap.data(&result);
                        Value { shape: Shape::Unordered(what, order), ..data }
                    }
                    _ if result.is_data() => self.heap.data(&result),
                    _ => result,
                }
            }
            ("hash", Some(first)) if !matches!(first.shape, Shape::Int(_)) => {
                let read = self.read_environment(Environment::Hash, "hash", site);
                let mut value = self.heap.data(&first);
                value.operands.push(Operand::Variable(read));
                value
            }
            ("getattr", Some(first)) => match &first.shape {
                Shape::Library(module) => Value::library(format!("{module}.{DYNAMIC_NAME}")),
                Shape::Module(file)
                    if !matches!(
                        arguments.positional.get(1).map(|it| &it.shape),
                        Some(Shape::Text(_))
                    ) =>
                {
                    self.any_of_module(*file)
                }
                _ => match arguments.positional.get(1).map(|it| it.shape.clone()) {
                    Some(Shape::Text(name)) => self.attribute(&first, name, site),
                    _ => self.heap.data(&first),
                },
            },
            ("setattr", Some(first)) => {
                if let (Some(Shape::Text(name)), Some(value), Some(id)) = (
                    arguments.positional.get(1).map(|it| it.shape.clone()),
                    arguments.positional.get(2),
                    first.as_object(),
                ) {
                    self.set_field(id, name, name, value.clone(), site);
                }
                Value::constant()
            }
            ("vars", Some(first)) => first,
            ("int" | "float" | "str" | "bool" | "abs" | "round", Some(first))
                if matches!(first.shape, Shape::Loaded(..) | Shape::Int(_)) =>
            {
                first
            }
            (
                "print" | "isinstance" | "issubclass" | "hasattr" | "callable" | "type" | "id"
                | "input" | "exit" | "quit" | "help" | "repr" | "globals" | "locals" | "dir",
                _,
            ) => Value::constant(),
            // The content of a file depends on its name.
            ("open", Some(path)) if !is_written(arguments.get(1, "mode")) => self.heap.data(&path),
            ("open" | "str" | "format", _) => Value::constant(),
            _ => self.heap.combine(arguments.all()),
        }
    }
}

/// Returns true if a file is opened to be written.
fn is_written(mode: Option<&Value<'_>>) -> bool {
    mode.and_then(Value::as_text).is_some_and(|mode| mode.contains(['w', 'a', 'x']))
}

/// A value without the order of its elements.
pub(super) fn without_order<'a>(mut value: Value<'a>, heap: &Heap<'a>) -> Value<'a> {
    let mut order = None;
    match value.shape {
        Shape::Unordered(..) => {
            value.shape = Shape::Plain;
            return value;
        }
        Shape::Object(id) => {
            if let Kind::Container(container) = &heap.object(id).kind {
                order = container.order.map(|(_, it)| Operand::Variable(it));
            }
        }
        _ => {}
    }
    let mut data = heap.data(&value);
    data.operands.retain(|it| Some(*it) != order);
    data
}
