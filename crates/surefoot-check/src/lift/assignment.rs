//! Assignments, to names, fields and elements.

use super::{
    Lift, ObjectId, Operand, Owner, ProgramBuilder, Shape, Site, UnknownId, Value, Variable,
    push_new, usage,
};
use ruff_python_ast::{Expr, Operator};

impl<'a> Lift<'a> {
    /// Assigns a value to a target.
    pub(super) fn assign(&mut self, target: &'a Expr, value: Value<'a>, site: Site) {
        match target {
            Expr::Name(name) => {
                let name = name.id.as_str();
                let owner = self.scope.owner_of(name);
                let value = without_empty_parameters(value);
                self.bind(owner, name, name, value, site);
            }
            Expr::Attribute(attribute) => {
                let base = self.eval(&attribute.value);
                let name = attribute.attr.as_str();
                match base.shape {
                    Shape::Object(id) => {
                        let shown = self.shown(target);
                        self.set_field(id, name, &shown, value, site);
                    }
                    Shape::Library(module) => {
                        self.program.set_library(&format!("{module}.{name}"), &value, site)
                    }
                    Shape::Module(file) => {
                        let frame = self.run_module(file, false);
                        self.bind(Owner::Frame(frame), name, name, value, site);
                    }
                    Shape::Parameters(ids) => {
                        if name == "grad" {
                            self.clear_gradients(&ids, site);
                        } else if !matches!(name, "requires_grad" | "trainable") {
                            self.write_models(&ids, &value, site);
                        }
                    }
                    Shape::Settings => self.program.set_setting(name, &value, site),
                    Shape::Class(_) | Shape::Function(_) => {}
                    _ => self.mutate(&attribute.value, &value, site),
                }
            }
            Expr::Subscript(subscript) => {
                let base = self.eval(&subscript.value);
                let index = self.eval(&subscript.slice);
                self.set_item(&subscript.value, &base, &index, value, site);
            }
            Expr::Tuple(tuple) => self.assign_parts(&tuple.elts, value, site),
            Expr::List(list) => self.assign_parts(&list.elts, value, site),
            Expr::Starred(starred) => {
                let data = self.heap.data(&value);
                self.assign(&starred.value, data, site);
            }
            _ => {}
        }
    }

    fn assign_parts(&mut self, targets: &'a [Expr], value: Value<'a>, site: Site) {
        let parts: Option<Vec<Value<'a>>> = match &value.shape {
            Shape::Tuple(parts) if parts.len() == targets.len() => Some(parts.to_vec()),
            Shape::Object(id) => {
                let container = self.heap.container(*id);
                let known =
                    container.filter(|it| it.is_closed && it.elements.len() == targets.len());
                known.map(|it| it.elements.clone())
            }
            Shape::Loaded(..) | Shape::Parameters(_) | Shape::State(_) | Shape::Key => {
                Some(vec![value.clone(); targets.len()])
            }
            Shape::Unknown(id) => self.unwrapped_parts(*id, targets.len()),
            _ => None,
        };
        match parts {
            Some(parts) => {
                for (target, part) in targets.iter().zip(parts) {
                    self.assign(target, part, site);
                }
            }
            None => {
                let data = self.heap.data(&value);
                for target in targets {
                    // An unknown wrapper returns its arguments: `model, data = wrap(model, data)`.
                    let is_wrapped = matches!(value.shape, Shape::Unknown(_))
                        && self.eval_quietly(target).as_object().is_some();
                    if !is_wrapped {
                        self.assign(target, data.clone(), site);
                    }
                }
            }
        }
    }

    /// Returns true if an unknown object is a layer of a model: the model calls it.
    fn is_layer(&self, model: ObjectId, unknown: UnknownId, name: &str) -> bool {
        let class = self.heap.object(model).class.as_ref();
        self.heap.unknown_objects[unknown.0].received.is_empty()
            && !self.heap.is_keras(model)
            && class.is_some_and(|it| usage::calls_member(&it.code.body, name))
    }

    /// Sets an attribute of an object.
    pub(super) fn set_field(
        &mut self,
        id: ObjectId,
        name: &'a str,
        shown: &str,
        value: Value<'a>,
        site: Site,
    ) {
        if matches!(name, "learning_rate" | "lr") && self.heap.is_optimizer(id) {
            let operands = self.heap.data(&value).operands;
            self.write_cell(id, operands, site);
            return;
        }
        if name == "stop_training" && self.heap.is_module(id) {
            let operands = self.heap.data(&value).operands;
            self.stop_library_loop(operands, site);
            return;
        }
        if self.heap.is_module(id) {
            let registered = matches!(
                self.heap.object(id).fields.get(name).map(|slot| &slot.shape),
                Some(Shape::Parameters(_))
            );
            match &value.shape {
                Shape::Object(part) if self.heap.is_module(*part) => self.absorb(id, *part, site),
                // A list of layers.
                Shape::Object(_) => {
                    let elements = self.heap.container_in(&value).map(|it| it.elements.clone());
                    for part in elements.iter().flatten().filter_map(Value::as_object) {
                        self.absorb(id, part, site);
                    }
                }
                Shape::Unknown(unknown) if self.is_layer(id, *unknown, name) => {
                    let part = self.make_unknown_a_model(*unknown, value.operands.clone());
                    self.absorb(id, part, site);
                }
                // A container of layers.
                Shape::Unknown(unknown) => {
                    for part in self.heap.unknown_objects[unknown.0].received.clone() {
                        if self.heap.is_module(part) && self.heap.root(id) != self.heap.root(part) {
                            self.absorb(id, part, site);
                        }
                    }
                }
                Shape::Parameters(ids) if ids.is_empty() => {
                    self.register(id, name, &value, site);
                    return;
                }
                Shape::Plain if registered => {
                    self.write_models(&[id], &value, site);
                    return;
                }
                _ => {}
            }
        }
        let value = without_empty_parameters(value);
        let id = self.heap.actual(id);
        self.bind(Owner::Object(id), name, shown, value, site);
    }

    fn set_item(
        &mut self,
        of: &'a Expr,
        base: &Value<'a>,
        index: &Value<'a>,
        value: Value<'a>,
        site: Site,
    ) {
        if matches!(&base.shape, Shape::Library(name) if &**name == "os.environ") {
            self.program.set_environment(index, &value, site);
            return;
        }
        let Some(id) = base.as_object() else {
            let mut changed = self.heap.data(&value);
            changed.depend_on(&self.heap.data(index));
            self.mutate(of, &changed, site);
            return;
        };
        let data = self.heap.data(&value);
        let text = index.as_text().cloned();
        let in_loop = !self.program.loops.is_empty();
        if let Some(container) = self.heap.container_mut(id) {
            match text {
                Some(key) => {
                    container.entries.retain(|(it, _, _)| *it != key);
                    container.entries.push((key, value, site));
                }
                None => container.is_closed &= !in_loop,
            }
        }
        let mut operands = data.operands;
        // A number that counts the elements pairs them with their order: `number[name] = len(number)`.
        let cell = self.heap.cell(id);
        let is_number = |it: &Operand| match it {
            Operand::Variable(it) => *it == cell || self.program.is_position(*it),
            _ => false,
        };
        if operands.iter().any(is_number) {
            operands.extend(self.program.open_orders());
        }
        operands.extend(self.heap.data(index).operands);
        self.write_cell(id, operands, site);
    }

    pub(super) fn augment(
        &mut self,
        target: &'a Expr,
        operator: Operator,
        value: &'a Expr,
        site: Site,
    ) {
        let by = self.eval(value);
        let now = self.eval(target);
        match (&now.shape, target) {
            (Shape::Object(id), _) => {
                if let Some(container) = self.heap.container_mut(*id) {
                    container.is_closed = false;
                }
                let operands = self.gather_into(*id, &[by]);
                self.write_cell(*id, operands, site);
            }
            (Shape::Parameters(ids), _) => self.write_models(ids, &by, site),
            (_, Expr::Attribute(attribute))
                if matches!(self.eval_quietly(&attribute.value).shape, Shape::Parameters(_)) =>
            {
                self.mutate(&attribute.value, &by, site);
            }
            (_, Expr::Subscript(subscript)) => {
                let mut changed = self.heap.data(&by);
                let index = self.eval(&subscript.slice);
                changed.depend_on(&self.heap.data(&index));
                self.mutate(&subscript.value, &changed, site);
            }
            _ => {
                let is_count = matches!(operator, Operator::Add)
                    && matches!(by.shape, Shape::Int(_))
                    && by.operands.is_empty();
                let mut whole = self.heap.data(&now);
                if is_count {
                    if let [Operand::Variable(variable)] = whole.operands[..] {
                        self.count(target, variable, site);
                        return;
                    }
                } else {
                    whole.depend_on(&self.heap.data(&by));
                    let is_sum = operator == Operator::Add && by.models.is_empty();
                    if let ([Operand::Variable(variable), ..], true) = (&whole.operands[..], is_sum)
                    {
                        self.program.note_counted(*variable);
                    }
                }
                self.assign(target, whole, site);
            }
        }
    }

    /// `x += 1`: records `x` as a position of the enclosing loops.
    pub(super) fn count(&mut self, target: &'a Expr, variable: Variable, site: Site) {
        self.program.note_counted(variable);
        self.program.compute(variable, "succ", [Operand::Variable(variable)], site);
        let (owner, name) = match target {
            Expr::Name(name) => (self.scope.owner_of(name.id.as_str()), name.id.as_str()),
            Expr::Attribute(it) => match self.eval_quietly(&it.value).shape {
                Shape::Object(id) => (Owner::Object(self.heap.actual(id)), it.attr.as_str()),
                _ => return,
            },
            _ => return,
        };
        self.forget_literal(owner, name);
    }
}

impl<'a> ProgramBuilder<'a> {
    /// Records a setting that the script draws itself; other settings are the same in every execution. A
    /// clock that the user has to request (`--seed 0`) is not reported.
    fn set_setting(&mut self, name: &'a str, value: &Value<'a>, site: Site) {
        let is_drawn = |operand: &Operand| {
            let mut draws = self.facts.draws.iter();
            draws.any(|draw| Operand::Variable(draw.target) == *operand)
        };
        if !value.operands.iter().any(is_drawn) {
            return;
        }
        let variable = match self.drawn_settings.get(name) {
            Some(variable) => *variable,
            None => self.program.variable(name),
        };
        self.drawn_settings.insert(name, variable);
        self.compute(variable, "copy", value.operands.clone(), site);
    }

    /// Returns true if a variable is the position in an open loop.
    pub(super) fn is_position(&self, variable: Variable) -> bool {
        let mut loops = self.loops.iter().map(|id| &self.facts.loops[id.0 as usize]);
        loops.any(|it| it.positions.contains(&variable) && it.counter != variable)
    }

    /// Records that a variable counts the iterations of the enclosing loops.
    pub(super) fn note_counted(&mut self, variable: Variable) {
        for id in self.loops.clone() {
            push_new(&mut self.facts.loops[id.0 as usize].positions, variable);
        }
    }
}

/// Treats parameters outside of models as plain tensors.
fn without_empty_parameters(mut value: Value<'_>) -> Value<'_> {
    if matches!(&value.shape, Shape::Parameters(ids) if ids.is_empty()) {
        value.shape = Shape::Plain;
    }
    value
}
