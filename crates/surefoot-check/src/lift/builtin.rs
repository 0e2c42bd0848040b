//! Built-in functions.

use std::rc::Rc;

use super::{
    Args, Container, DYNAMIC_NAME, Environment, Heap, Kind, Lift, ObjectId, Operand, SPREAD, Shape,
    Site, Value, Variable,
};

impl<'a> Lift<'a> {
    /// Value to iterate over; the elements of a set have an unspecified order.
    pub(super) fn iteration_value(&mut self, value: Value<'a>, site: Site) -> Value<'a> {
        let id = value.as_object().map(|id| self.heap.actual(id));
        // Attributes of objects mostly hold numbers, which have a stable order.
        let is_known = |id: ObjectId| {
            let name = self.heap.object(id).name.as_deref();
            self.heap.sets.contains(&id) && !name.is_some_and(|name| name.contains('.'))
        };
        if let Some((what, order)) = id.and_then(|id| self.heap.container(id)?.order) {
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
    pub(super) fn call_builtin(&mut self, name: &str, args: Args<'a>) -> Value<'a> {
        let site = args.site;
        let first = args.first().cloned();
        match (name, first) {
            ("range", _) => {
                let whole = self.heap.combine(args.all());
                Value { shape: Shape::Range, ..whole }
            }
            ("enumerate", Some(first)) => {
                let first = self.iteration_value(first, site);
                Value::of(Shape::Zip(Rc::new([Value::of(Shape::Range), first])))
            }
            ("zip", Some(_)) => Value::of(Shape::Zip(args.positional.into())),
            ("sorted" | "len" | "min" | "max" | "sum" | "any" | "all", Some(_)) => {
                let values = args.positional.into_iter();
                let values: Vec<_> = values.map(|it| without_order(it, &self.heap)).collect();
                self.heap.combine(&values)
            }
            ("set" | "frozenset", Some(first)) if matches!(first.shape, Shape::Range) => {
                self.heap.data(&first)
            }
            ("set" | "frozenset", Some(first)) => {
                let content = self.heap.data(&without_order(first, &self.heap));
                self.unordered(Environment::SetOrder, "set", content, site)
            }
            ("set" | "list" | "dict", None) => {
                let named = args.named.iter().filter(|(key, _)| *key != SPREAD);
                let entries = named
                    .map(|(key, value)| (*key, value.clone(), self.keyword_site(key, &args)))
                    .collect();
                let container = Container {
                    entries,
                    is_closed: true,
                    has_keys: name == "dict",
                    ..Container::default()
                };
                let id = self.make(Kind::Container(container), name, site);
                self.write_state(id, "new", [], site);
                if name == "set" {
                    self.heap.sets.insert(id);
                }
                Value::object(id)
            }
            ("list" | "tuple" | "reversed" | "filter", Some(_)) => {
                let last = args.positional.last().cloned().unwrap_or_default();
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
                let counter = self.any_round(site);
                self.note_iterator(&first);
                let mut element = self.element(&first, counter, site);
                if let Shape::Unordered(_, order) = first.shape {
                    element.operands.push(Operand::Variable(order));
                }
                element
            }
            ("map", Some(function)) => {
                let Some(values) = args.positional.get(1).cloned() else {
                    return Value::constant();
                };
                let counter = self.any_round(site);
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
            ("getattr", Some(first)) => {
                let name = args.positional.get(1).and_then(Value::as_text).copied();
                match (&first.shape, name) {
                    (Shape::Library(module), _) => {
                        Value::library(format!("{module}.{DYNAMIC_NAME}"))
                    }
                    (Shape::Module(file), None) => self.any_of_module(*file),
                    (_, Some(name)) => self.attribute(&first, name, site),
                    (_, None) => self.heap.data(&first),
                }
            }
            ("setattr", Some(first)) => {
                if let [_, name, value, ..] = &args.positional[..]
                    && let (Some(name), Some(id)) = (name.as_text(), first.as_object())
                {
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
            ("open", Some(path)) if !is_written(args.get(1, "mode")) => self.heap.data(&path),
            ("open" | "str" | "format", _) => Value::constant(),
            _ => self.heap.combine(args.all()),
        }
    }

    /// The number of an unspecified iteration.
    fn any_round(&mut self, site: Site) -> Variable {
        let counter = self.program.variable("round");
        self.program.compute(counter, "any", [], site);
        counter
    }
}

/// Returns true if a file is opened to be written.
fn is_written(mode: Option<&Value<'_>>) -> bool {
    mode.and_then(Value::as_text).is_some_and(|mode| mode.contains(['w', 'a', 'x']))
}

/// A value without the order of its elements.
pub(super) fn without_order<'a>(mut value: Value<'a>, heap: &Heap<'a>) -> Value<'a> {
    if matches!(value.shape, Shape::Unordered(..)) {
        value.shape = Shape::Plain;
        return value;
    }
    let order = heap.container_in(&value).and_then(|it| it.order);
    let order = order.map(|(_, it)| Operand::Variable(it));
    let mut data = heap.data(&value);
    data.operands.retain(|it| Some(*it) != order);
    data
}
