//! Methods of lists, sets, dictionaries and queues.

use super::Lift;
use super::builtin::without_order;
use super::object::Kind;
use super::value::{Arguments, ObjectId, Shape, Value};
use crate::calculus::Operand;

/// Methods that change a list, a set, a dictionary or a queue.
pub(super) const MUTATORS: [&str; 18] = [
    "add",
    "append",
    "appendleft",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "popleft",
    "push",
    "put",
    "remove",
    "reset",
    "reverse",
    "setdefault",
    "sort",
    "update",
];

impl<'a> Lift<'a> {
    pub(super) fn call_container_method(
        &mut self,
        id: ObjectId,
        name: &str,
        arguments: Arguments<'a>,
    ) -> Value<'a> {
        let site = arguments.site;
        let mut whole = self.heap.combine(arguments.all());
        let cell = Operand::Variable(self.heap.cell(id));
        let in_loop = !self.program.loops.is_empty();
        match name {
            _ if MUTATORS.contains(&name) => {
                if let Kind::Container(container) = &mut self.heap.object_mut(id).kind {
                    match name {
                        "append" | "add" | "insert" | "push" | "appendleft" => {
                            let value = arguments.positional.last().cloned().unwrap_or_default();
                            let is_thing = !value.is_data();
                            let is_kept = is_thing || !in_loop || !value.models.is_empty();
                            if container.elements.len() < 64 && is_kept {
                                container.elements.push(value);
                            }
                        }
                        "sort" => container.order = None,
                        "clear" => container.elements.clear(),
                        _ => {}
                    }
                    if in_loop || !matches!(name, "append" | "sort") {
                        container.is_closed = false;
                    }
                }
                if matches!(name, "append" | "appendleft" | "extend" | "insert" | "push" | "put") {
                    whole.operands = self.gather_into(id, &arguments.positional);
                }
                if matches!(name, "extend" | "update") {
                    let more: Vec<Value<'a>> =
                        arguments.positional.iter().flat_map(|it| self.heap.parts_of(it)).collect();
                    let entries =
                        arguments.positional.iter().filter_map(Value::as_object).find_map(
                            |other| match &self.heap.object(other).kind {
                                Kind::Container(container) => Some(container.entries.clone()),
                                _ => None,
                            },
                        );
                    if let Kind::Container(container) = &mut self.heap.object_mut(id).kind {
                        match entries {
                            Some(entries) if !entries.is_empty() => {
                                container.entries.extend(entries)
                            }
                            _ => container.elements.extend(more.into_iter().take(64)),
                        }
                        container.entries.extend(
                            arguments.named.iter().map(|(key, value)| (*key, value.clone(), site)),
                        );
                    }
                }
                if name == "clear" {
                    let variable = self.heap.object(id).cell;
                    self.program.compute(variable, "new", Vec::new(), site);
                } else {
                    self.write_cell(id, whole.operands, site);
                }
                if let Some(Value { shape: Shape::Loaded(load, _), .. }) = arguments.first() {
                    self.program.note_restore(self.heap.cell(id), Some(id), *load, site);
                }
                Value::plain(vec![cell])
            }
            "items" | "values" => {
                let Kind::Container(container) = &self.heap.object(id).kind else {
                    return Value::constant();
                };
                let has_things = container.entries.iter().any(|(_, value, _)| !value.is_data());
                if !has_things {
                    return Value::plain(vec![cell]);
                }
                let pairs = container.entries.iter().map(|(key, value, _)| match name {
                    "items" => Value::tuple([Value::of(Shape::Text(key)), value.clone()]),
                    _ => value.clone(),
                });
                Value::of(Shape::Tuple(pairs.collect()))
            }
            "get" => {
                let key = arguments.first().cloned().unwrap_or_default();
                self.item(&Value::object(id), &key, site)
            }
            "copy" => Value::object(id),
            _ => {
                whole.operands.push(cell);
                whole
            }
        }
    }

    /// Adds values to the end of a container. Returns their operands; an order that differs between
    /// executions becomes that of the container.
    pub(super) fn gather_into(&mut self, id: ObjectId, values: &[Value<'a>]) -> Vec<Operand> {
        let mut order = self.program.orders.last().copied();
        let mut operands = Vec::new();
        for value in values {
            let value = self.iteration_value(value.clone(), self.heap.object(id).site);
            if let Shape::Unordered(what, variable) = value.shape {
                order = Some((what, variable));
            }
            operands.extend(without_order(value, &self.heap).operands);
        }
        if let Kind::Container(container) = &mut self.heap.object_mut(id).kind {
            container.order = container.order.or(order);
        }
        operands
    }
}
