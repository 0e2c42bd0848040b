//! List, set and dictionary displays.

use super::{Container, Environment, Kind, Lift, ProgramBuilder, Shape, Site, Value};
use ruff_python_ast::{Expr, ExprDict};
use ruff_text_size::Ranged;

impl<'a> Lift<'a> {
    /// Elements of a display; known starred values are unpacked.
    pub(super) fn sequence(&mut self, elements: &'a [Expr]) -> Vec<Value<'a>> {
        let mut values = Vec::new();
        for element in elements {
            let value = self.eval(element);
            match (element, &value.shape) {
                (Expr::Starred(_), Shape::Tuple(parts)) => values.extend(parts.iter().cloned()),
                (Expr::Starred(_), Shape::Object(id)) => match self.heap.container(*id) {
                    Some(container) => values.extend(container.elements.iter().cloned()),
                    None => values.push(value),
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
        site: Site,
    ) -> Value<'a> {
        if !elements.is_empty() && elements.iter().all(|it| it.is_data() && it.operands.is_empty())
        {
            return Value::constant();
        }
        let whole = self.heap.combine(&elements);
        let elements =
            elements.into_iter().map(|element| self.program.settled(element, site)).collect();
        let container = Container { elements, is_closed, ..Container::default() };
        let id = self.make(Kind::Container(container), "list", site);
        self.write_state(id, "list", whole.operands, site);
        Value::object(id).with_models(whole.models)
    }

    pub(super) fn dictionary(&mut self, it: &'a ExprDict) -> Value<'a> {
        let mut container = Container { is_closed: true, has_keys: true, ..Container::default() };
        let mut whole = Value::constant();
        for item in &it.items {
            let value = self.eval(&item.value);
            whole.depend_on(&self.heap.data(&value));
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
                None => match self.heap.container_in(&value) {
                    Some(other) => container.entries.extend(other.entries.iter().cloned()),
                    None => {
                        container.elements.push(value);
                        container.is_closed = false;
                    }
                },
            }
        }
        let site = self.site(it.range());
        let id = self.make(Kind::Container(container), "dictionary", site);
        self.write_state(id, "dictionary", whole.operands, site);
        Value::object(id)
    }

    /// Values in an order that differs between executions.
    pub(super) fn unordered(
        &mut self,
        what: Environment,
        call: &str,
        content: Value<'a>,
        site: Site,
    ) -> Value<'a> {
        let order = self.read_environment(what, call, site);
        Value { shape: Shape::Unordered(what, order), ..content }
    }
}

impl<'a> ProgramBuilder<'a> {
    /// Copies a value, so that later writes do not change it.
    fn settled(&mut self, value: Value<'a>, site: Site) -> Value<'a> {
        if matches!(value.shape, Shape::Plain) && !value.operands.is_empty() {
            return self.computed_as("element", "copy", value.operands, value.models, site);
        }
        value
    }
}
