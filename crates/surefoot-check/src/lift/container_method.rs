//! Methods of lists, sets, dictionaries and queues.

use super::{Args, Lift, ObjectId, Operand, Shape, Value, is_one_of, without_order};

/// Methods that change a list, a set, a dictionary or a queue.
const MUTATORS: &str = "add append appendleft clear discard extend insert pop popitem popleft push put \
    remove reset reverse setdefault sort update";

/// Returns true for a method that changes a list, a set, a dictionary or a queue.
pub(super) fn is_mutator(name: &str) -> bool {
    is_one_of(name, MUTATORS)
}

impl<'a> Lift<'a> {
    pub(super) fn call_container_method(
        &mut self,
        id: ObjectId,
        name: &str,
        args: Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        let mut whole = self.heap.combine(args.all());
        let cell = Operand::Variable(self.heap.cell(id));
        let in_loop = !self.program.loops.is_empty();
        match name {
            _ if is_mutator(name) => {
                if let Some(container) = self.heap.container_mut(id) {
                    match name {
                        "append" | "add" | "insert" | "push" | "appendleft" => {
                            let value = args.positional.last().cloned().unwrap_or_default();
                            let is_kept = !value.is_data() || !in_loop || !value.models.is_empty();
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
                    whole.operands = self.gather_into(id, &args.positional);
                }
                if matches!(name, "extend" | "update") {
                    let all = args.positional.iter();
                    let more: Vec<_> = all.clone().flat_map(|it| self.heap.parts_of(it)).collect();
                    let other = all.clone().find_map(|it| self.heap.container_in(it));
                    let entries = other.map(|it| it.entries.clone()).unwrap_or_default();
                    let named = args.named.iter();
                    let named = named.map(|(key, value)| (*key, value.clone(), site));
                    if let Some(container) = self.heap.container_mut(id) {
                        if entries.is_empty() {
                            container.elements.extend(more.into_iter().take(64));
                        }
                        container.entries.extend(entries.into_iter().chain(named));
                    }
                }
                match name {
                    "clear" => self.write_state(id, "new", [], site),
                    _ => self.write_cell(id, whole.operands, site),
                }
                if let Some(Value { shape: Shape::Loaded(load, _), .. }) = args.first() {
                    self.program.note_restore(self.heap.cell(id), Some(id), *load, site);
                }
                Value::plain(vec![cell])
            }
            "items" | "values" => {
                let Some(container) = self.heap.container(id) else {
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
            "get" => self.item(&Value::object(id), &args.first_or_default(), site),
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
        if let Some(container) = self.heap.container_mut(id) {
            container.order = container.order.or(order);
        }
        operands
    }
}
