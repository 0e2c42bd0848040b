//! Binding of values to names.

use super::{
    Heap, Kept, Kind, Lift, ObjectId, Operand, Owner, ProgramBuilder, RESULT, Shape, Site, Slot,
    Value, Variable, push_new,
};

impl<'a> Lift<'a> {
    /// Binds a name or an attribute to a value. `shown` is its source text.
    pub(super) fn bind(
        &mut self,
        owner: Owner,
        name: &'a str,
        shown: &str,
        value: Value<'a>,
        site: Site,
    ) {
        let variable = self.variable_of(owner, name, shown);
        if let Shape::Loaded(load, keys) = &value.shape
            && !keys.is_empty()
        {
            self.program.note_restore(variable, None, *load, site);
            // The uninterrupted run keeps its state.
            if self.slot(owner, name).is_some() {
                return;
            }
        }
        let mut value = value;
        if value.is_data() && value.operands.contains(&Operand::Variable(variable)) {
            value.operands.extend(self.program.open_orders());
        }
        self.note_keeper(owner, name, variable, &value);
        self.note_rebinding(owner, name, &value, site);
        self.program.note_derived_position(variable, &value);
        let slot = self.store(variable, value, shown, site);
        self.set(owner, name, Some(slot));
    }

    fn store(&mut self, variable: Variable, value: Value<'a>, shown: &str, site: Site) -> Slot<'a> {
        let models = value.models;
        match value.shape {
            Shape::Object(id) => {
                let names = !self.execution.in_head;
                let object = self.heap.object_mut(id);
                if names && object.name.is_none() && shown != RESULT {
                    object.name = Some(shown.to_owned());
                }
                self.heap.name_elements(id, shown);
                Slot { shape: Shape::Object(id), variable: None, models }
            }
            Shape::Tuple(ref parts) => {
                let parts = parts.iter().enumerate();
                let store = |(index, part)| self.store_part(variable, index, part, shown, site);
                Slot { shape: Shape::Tuple(parts.map(store).collect()), variable: None, models }
            }
            Shape::Unordered(..) | Shape::State(_)
                if !value.operands.is_empty() || matches!(value.shape, Shape::Unordered(..)) =>
            {
                if matches!(value.shape, Shape::State(_)) && !models.is_empty() {
                    self.heap.kept_states.insert(variable);
                }
                self.program.compute(variable, "copy", value.operands, site);
                Slot { shape: value.shape, variable: Some(variable), models }
            }
            shape if shape.is_data() || matches!(shape, Shape::Settings) => {
                if matches!(shape, Shape::Key) {
                    self.program.facts.keys.insert(variable);
                }
                self.program.compute(variable, "copy", value.operands, site);
                Slot { shape, variable: Some(variable), models }
            }
            shape => Slot { shape, variable: None, models },
        }
    }

    /// Stores an element of a tuple in a separate variable.
    fn store_part(
        &mut self,
        whole: Variable,
        index: usize,
        part: &Value<'a>,
        shown: &str,
        site: Site,
    ) -> Value<'a> {
        if !part.is_data() && !matches!(part.shape, Shape::Tuple(_)) {
            return part.clone();
        }
        let shown = format!("{shown}[{index}]");
        let variable = match self.program.part_variables.get(&(whole, index)) {
            Some(variable) => *variable,
            None => {
                let variable = self.program.variable(&shown);
                if let Some(frame) = self.program.facts.named.get(&whole).copied() {
                    self.program.facts.named.insert(variable, frame);
                }
                self.program.part_variables.insert((whole, index), variable);
                variable
            }
        };
        let slot = self.store(variable, part.clone(), &shown, site);
        self.heap.read(&slot)
    }

    /// Binds a name in the current frame without emitting a statement.
    pub(super) fn declare(&mut self, name: &'a str, value: Value<'a>) {
        let owner = self.scope.owner_of(name);
        self.set(owner, name, Some(Slot::of(value)));
    }

    /// Forgets the literal that a slot holds: a loop may write it again.
    pub(super) fn forget_literal(&mut self, owner: Owner, name: &'a str) {
        let Some(slot) = self.slot(owner, name) else {
            return;
        };
        if matches!(
            slot.shape,
            Shape::None | Shape::Bool(_) | Shape::Int(_) | Shape::Text(_) | Shape::Settings
        ) {
            let slot = Slot { shape: Shape::Plain, ..slot.clone() };
            self.set(owner, name, Some(slot));
        }
    }

    /// Turns a container that a loop rebinds into data, for JAX: trees of parameters start as
    /// dictionaries and lists, and are returned from functions as values.
    pub(super) fn forget_container(&mut self, owner: Owner, name: &'a str, site: Site) {
        let Some(&Slot { shape: Shape::Object(id), .. }) = self.slot(owner, name) else {
            return;
        };
        if !self.libraries.uses_jax || self.heap.container(id).is_none() {
            return;
        }
        let data = self.heap.data(&Value::object(id));
        let variable = self.variable_of(owner, name, name);
        let slot = self.store(variable, data, name, site);
        self.set(owner, name, Some(slot));
    }

    /// Records the attribute that holds a value.
    fn note_keeper(&mut self, owner: Owner, name: &str, variable: Variable, value: &Value<'a>) {
        let Owner::Object(owner) = owner else { return };
        let kept = match value.as_object() {
            Some(id) => Kept::Object(self.heap.actual(id)),
            None => Kept::Variable(variable),
        };
        let keeper = (self.heap.actual(owner), name.to_owned());
        self.program.facts.kept_in.entry(kept).or_insert(keeper);
    }

    /// Records that rebinding a name discards the state restored into its previous object.
    fn note_rebinding(&mut self, owner: Owner, name: &str, value: &Value<'a>, site: Site) {
        let Some(Slot { shape: Shape::Object(before), .. }) = self.slot(owner, name) else {
            return;
        };
        let before = self.heap.actual(*before);
        let Some(now) = value.as_object().map(|id| self.heap.actual(id)) else {
            return;
        };
        if now > before
            && self.heap.role(now) == self.heap.role(before)
            && self.program.facts.restores.iter().any(|it| it.object == Some(before))
        {
            let cell = self.heap.cell(before);
            self.program.note_rewrite(cell, site);
        }
    }
}

impl<'a> Heap<'a> {
    /// Names the elements of a list after the list.
    fn name_elements(&mut self, id: ObjectId, shown: &str) {
        let elements = self.container(id).map(|it| it.elements.clone()).unwrap_or_default();
        let elements: Vec<ObjectId> = elements.iter().filter_map(Value::as_object).collect();
        for element in elements {
            let object = self.object_mut(element);
            if matches!(object.kind, Kind::State) && object.name.is_none() {
                object.name = Some(shown.to_owned());
            }
        }
    }
}

impl<'a> ProgramBuilder<'a> {
    /// Records values computed from the position of a loop alone as positions.
    pub(super) fn note_derived_position(&mut self, variable: Variable, value: &Value<'a>) {
        if value.operands.is_empty() || !value.is_data() {
            return;
        }
        for id in &self.loops {
            let positions = &mut self.facts.loops[id.0 as usize].positions;
            let is_position = |operand: &Operand| matches!(operand, Operand::Variable(it) if positions.contains(it));
            if value.operands.iter().all(is_position) {
                push_new(positions, variable);
            }
        }
    }
}
