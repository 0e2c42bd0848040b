//! Checkpoints: saves, loads and restores.

use super::{
    Args, Heap, Holdings, Key, Kind, Lift, Load, LoadId, Moment, ObjectId, Operand, ProgramBuilder,
    Restore, Role, Shape, Site, Statement, Value, Variable,
};

impl<'a> Lift<'a> {
    /// A call that saves a value.
    pub(super) fn save(&mut self, what: Option<&Value<'a>>, args: &Args<'a>) {
        let site = args.site;
        let Some(what) = what else { return };
        let holdings = self.heap.holdings(what, 4);
        let file = self.program.file_name(args.get(1, "f").or_else(|| args.name("file")));
        if self.is_checkpoint(&holdings, file.as_deref()) {
            self.note_save(holdings, file, site);
            return;
        }
        // Stored copies of weights are outputs too.
        let kept = holdings.variables.iter().filter(|it| self.heap.kept_states.contains(it));
        let models = self.heap.cells_of_models(&holdings);
        let models: Vec<Operand> = models.chain(kept.copied()).map(Operand::Variable).collect();
        if !models.is_empty() {
            self.program.emit(Statement::Output { operands: models, site });
        } else if self.libraries.uses_jax && !self.program.loops.is_empty() {
            self.note_save(holdings, file, site);
            if let Some(save) = self.program.facts.saves.last_mut() {
                save.is_candidate = true;
            }
        }
    }

    /// Returns true if a save is one to resume from: made in a loop, with more than a model, or loaded again
    /// by the script itself.
    fn is_checkpoint(&self, holdings: &Holdings, file: Option<&str>) -> bool {
        if self.program.loops.is_empty() {
            return false;
        }
        let has_memory = holdings.objects.iter().any(|id| {
            let role = self.heap.role(*id);
            matches!(role, Some(Role::Optimizer | Role::Scheduler | Role::Scaler))
                || matches!(role, Some(Role::Global(_) | Role::Generator(_)))
        });
        let loops = &self.program.facts.loops;
        let has_position = self.program.loops.iter().any(|id| {
            loops[id.0 as usize].positions.iter().any(|it| holdings.variables.contains(it))
        });
        let has_model = holdings.objects.iter().any(|id| self.heap.is_module(*id));
        let mut loads = self.program.facts.loads.iter();
        let is_loaded =
            has_model && loads.any(|load| load.file.is_some() && load.file.as_deref() == file);
        has_memory || (has_model && has_position && self.program.is_resumed(holdings)) || is_loaded
    }

    /// A call that loads.
    pub(super) fn load(&mut self, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let file = self.program.file_name(args.first().or_else(|| args.name("f")));
        let moment = self.program.moment();
        let id = self.program.note_load(Vec::new(), file, site, moment);
        Value::of(Shape::Loaded(id, std::rc::Rc::new([])))
    }

    /// Writes a loaded or stored state into an object.
    pub(super) fn restore(&mut self, id: ObjectId, state: &Value<'a>, site: Site) {
        let cell = self.heap.cell(id);
        match &state.shape {
            Shape::Loaded(load, _) => {
                let root = self.heap.root(id);
                self.program.note_restore(cell, Some(root), *load, site);
                // Weights that are always loaded replace drawn ones.
                if self.scope.marks.is_empty()
                    && self.execution.tries == 0
                    && self.heap.is_module(root)
                    && self.program.loops.is_empty()
                {
                    self.program.compute(cell, "loaded", [], site);
                }
            }
            _ => {
                let mut all = match &state.shape {
                    Shape::State(_) if !state.operands.is_empty() => state.operands.clone(),
                    _ => self.heap.data(state).operands,
                };
                if self.heap.is_module(self.heap.root(id))
                    && self.heap.root(id) != self.heap.actual(id)
                {
                    all.push(Operand::Variable(cell));
                }
                self.program.compute(cell, "copy", all, site);
                if !self.program.loops.is_empty() && self.heap.is_module(id) {
                    self.program.note_trained(cell);
                }
            }
        }
    }

    /// Outputs the parameters of all models, because a file keeps them.
    pub(super) fn output_models(&mut self, site: Site) {
        let roots = self.heap.all_roots().into_iter();
        let operands: Vec<Operand> =
            roots.map(|root| Operand::Variable(self.heap.object(root).cell)).collect();
        if !operands.is_empty() {
            self.program.emit(Statement::Output { operands, site });
        }
    }
}

impl<'a> ProgramBuilder<'a> {
    /// Returns true if the script reads the position that a save holds.
    pub(super) fn is_resumed(&self, holdings: &Holdings) -> bool {
        let is_position = |it: &Variable| {
            let mut loops = self.loops.iter().map(|id| &self.facts.loops[id.0 as usize]);
            loops.any(|looped| looped.positions.contains(it))
        };
        holdings.keys.iter().any(|key| {
            key.holdings.variables.iter().any(is_position)
                && self.facts.loads.iter().any(|load| load.keys.contains(&key.name))
        })
    }

    /// File name if known, otherwise the expression.
    pub(super) fn file_name(&self, value: Option<&Value<'a>>) -> Option<String> {
        let value = value?;
        match (value.as_text(), &value.operands[..]) {
            (Some(text), _) => Some((*text).to_owned()),
            (None, [Operand::Variable(variable)]) => {
                Some(format!("{}#{}", self.program.name(*variable), variable.0))
            }
            _ => None,
        }
    }

    /// Records the use of a key of a loaded checkpoint.
    pub(super) fn note_key(&mut self, load: LoadId, key: &str) {
        let keys = &mut self.facts.loads[load.0 as usize].keys;
        if !keys.iter().any(|it| it == key) {
            keys.push(key.to_owned());
        }
    }

    /// Records that the use of a loaded checkpoint cannot be followed.
    pub(super) fn note_escape(&mut self, load: LoadId) {
        self.facts.loads[load.0 as usize].escapes = true;
    }

    /// Records a load.
    pub(super) fn note_load(
        &mut self,
        keys: Vec<String>,
        file: Option<String>,
        site: Site,
        moment: Moment,
    ) -> LoadId {
        let id = LoadId(u32::try_from(self.facts.loads.len()).unwrap_or(u32::MAX));
        self.facts.loads.push(Load { site, keys, escapes: false, file, moment });
        id
    }

    /// Records a restore from a checkpoint.
    pub(super) fn note_restore(
        &mut self,
        variable: Variable,
        object: Option<ObjectId>,
        load: LoadId,
        site: Site,
    ) {
        let moment = self.moment();
        self.facts.restores.push(Restore { variable, object, load, site, moment });
    }
}

impl<'a> Heap<'a> {
    /// Contents of a saved value.
    pub(super) fn holdings(&self, value: &Value<'a>, depth: usize) -> Holdings {
        let mut holdings = Holdings::default();
        let add = |holdings: &mut Holdings, other: &Holdings| {
            holdings.objects.extend(&other.objects);
            holdings.variables.extend(&other.variables);
            holdings.is_open |= other.is_open;
        };
        let variables = |operands: &[Operand]| -> Vec<Variable> {
            let mut found = Vec::new();
            for operand in operands {
                let mut next = operand.variable();
                // Saving a parameter saves the argument passed for it.
                while let Some(variable) = next.filter(|it| !found.contains(it)) {
                    found.push(variable);
                    next = self.same_value.get(&variable).copied();
                }
            }
            found
        };
        match &value.shape {
            Shape::State(ids) | Shape::Parameters(ids) => {
                holdings.objects.extend(ids.iter().map(|id| self.root(*id)));
                holdings.variables.extend(variables(&value.operands));
            }
            Shape::Tuple(parts) => {
                for part in parts.iter() {
                    add(&mut holdings, &self.holdings(part, depth.saturating_sub(1)));
                }
            }
            Shape::Object(id) => {
                let id = self.root(*id);
                holdings.objects.push(id);
                holdings.variables.push(self.cell(id));
                match &self.object(id).kind {
                    _ if depth == 0 => holdings.is_open = true,
                    Kind::Container(container) => {
                        for (name, value, site) in &container.entries {
                            let inner = self.holdings(value, depth - 1);
                            add(&mut holdings, &inner);
                            let (name, site) = ((*name).to_owned(), Some(*site));
                            holdings.keys.push(Key { name, site, holdings: inner });
                        }
                        for element in &container.elements {
                            add(&mut holdings, &self.holdings(element, depth - 1));
                        }
                        holdings.is_open |= !container.is_closed && container.entries.is_empty();
                    }
                    Kind::Plain => {
                        for slot in self.object(id).fields.values() {
                            add(&mut holdings, &self.holdings(&self.read(slot), depth - 1));
                        }
                    }
                    _ => {}
                }
            }
            Shape::Loaded(..) => holdings.is_open = true,
            _ => {
                holdings.variables.extend(variables(&value.operands));
                // A library object built from models may hold more state.
                holdings.is_open |= !value.models.is_empty() && value.operands.len() > 1;
            }
        }
        holdings
    }

    /// Variables of the models that a saved value contains.
    pub(super) fn cells_of_models(&self, holdings: &Holdings) -> impl Iterator<Item = Variable> {
        let models = holdings.objects.iter().filter(|id| self.is_module(**id));
        models.map(|id| self.cell(*id))
    }
}
