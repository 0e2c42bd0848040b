//! Names, what they are bound to, and what becomes of them where branches meet.

use std::collections::{BTreeMap, HashMap};

use super::Lift;
use super::facts::{Kept, Restore};
use super::object::Kind;
use super::value::{FrameId, Models, ObjectId, Shape, Value};
use crate::FileId;
use crate::calculus::{Operand, Site, Variable};

/// What a call gives back is called; it names nothing.
pub(super) const RESULT: &str = "result";

/// The names of a module, a class body or a call.
#[derive(Clone, Debug)]
pub(super) struct Frame<'a> {
    /// What they are bound to.
    pub slots: HashMap<&'a str, Slot<'a>>,
    /// Where names are looked up that are not here.
    pub parent: Option<FrameId>,
    /// The module of the code.
    pub module: Option<FrameId>,
    /// Names that are declared `global` or `nonlocal` here.
    pub outer: Vec<(&'a str, bool)>,
    /// The file of the code.
    pub file: FileId,
}

/// What a name or an attribute is bound to.
#[derive(Clone, Debug)]
pub(super) struct Slot<'a> {
    /// What it is.
    pub shape: Shape<'a>,
    /// The variable of its data.
    pub variable: Option<Variable>,
    /// The models in it.
    pub models: Models,
}

/// What a slot belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// A frame.
    Frame(FrameId),
    /// An object.
    Object(ObjectId),
}

/// A change of a slot, so that it can be taken back.
#[derive(Clone, Debug)]
pub(super) struct Change<'a> {
    owner: Owner,
    name: &'a str,
    before: Option<Slot<'a>>,
}

impl<'a> Lift<'a> {
    /// A frame for code of `file`.
    pub(super) fn new_frame(
        &mut self,
        parent: Option<FrameId>,
        module: Option<FrameId>,
        file: FileId,
    ) -> FrameId {
        let id = FrameId(u32::try_from(self.frames.len()).unwrap_or(u32::MAX));
        self.frames.push(Frame {
            slots: HashMap::new(),
            parent,
            module,
            outer: Vec::new(),
            file,
        });
        id
    }

    pub(super) fn frame(&self, id: FrameId) -> &Frame<'a> {
        &self.frames[id.0 as usize]
    }

    fn slot(&self, owner: Owner, name: &str) -> Option<&Slot<'a>> {
        match owner {
            Owner::Frame(frame) => self.frame(frame).slots.get(name),
            Owner::Object(object) => self.object(object).fields.get(name),
        }
    }

    /// Binds a slot, and remembers what it was. What a branch made itself needs no memory.
    fn set(&mut self, owner: Owner, name: &'a str, slot: Option<Slot<'a>>) {
        let before = self.replace(owner, name, slot);
        if let Some((frames, objects)) = self.marks.last() {
            let is_older = match owner {
                Owner::Frame(frame) => (frame.0 as usize) < *frames,
                Owner::Object(object) => (object.0 as usize) < *objects,
            };
            if is_older {
                self.journal.push(Change {
                    owner,
                    name,
                    before,
                });
            }
        }
    }

    fn replace(&mut self, owner: Owner, name: &'a str, slot: Option<Slot<'a>>) -> Option<Slot<'a>> {
        match owner {
            Owner::Frame(frame) => {
                let slots = &mut self.frames[frame.0 as usize].slots;
                match slot {
                    Some(slot) => slots.insert(name, slot),
                    None => slots.remove(name),
                }
            }
            Owner::Object(object) => {
                let fields = &mut self.object_mut(object).fields;
                match slot {
                    Some(slot) => fields.insert(name, slot),
                    None => fields.remove(name),
                }
            }
        }
    }

    /// Where an assignment to a name goes.
    pub(super) fn owner_of(&self, name: &str) -> Owner {
        let frame = self.frame(self.current);
        match frame.outer.iter().find(|(it, _)| *it == name) {
            Some((_, true)) => Owner::Frame(frame.module.unwrap_or(self.current)),
            Some((_, false)) => {
                let mut at = frame.parent;
                while let Some(id) = at {
                    if self.frame(id).slots.contains_key(name) {
                        return Owner::Frame(id);
                    }
                    at = self.frame(id).parent;
                }
                Owner::Frame(self.current)
            }
            None => Owner::Frame(self.current),
        }
    }

    /// What a name is bound to.
    pub(super) fn look_up(&self, name: &str) -> Option<Value<'a>> {
        let mut at = Some(self.current);
        while let Some(id) = at {
            let frame = self.frame(id);
            if let Some(slot) = frame.slots.get(name) {
                return Some(self.read(slot));
            }
            at = frame.parent;
        }
        None
    }

    /// The value in a slot.
    pub(super) fn read(&self, slot: &Slot<'a>) -> Value<'a> {
        if let Shape::Stranger(id) = slot.shape
            && let Some(model) = self.recognized(id)
        {
            return Value::object(model);
        }
        let operands = slot.variable.map(Operand::Variable).into_iter().collect();
        Value {
            shape: slot.shape.clone(),
            operands,
            models: slot.models,
        }
    }

    /// The attribute of an object.
    pub(super) fn field(&self, object: ObjectId, name: &str) -> Option<Value<'a>> {
        self.object(object)
            .fields
            .get(name)
            .map(|slot| self.read(slot))
    }

    /// The variable of a slot, made if there is none yet.
    pub(super) fn variable_of(&mut self, owner: Owner, name: &'a str, shown: &str) -> Variable {
        if let Some(Slot {
            variable: Some(variable),
            ..
        }) = self.slot(owner, name)
        {
            return *variable;
        }
        // The same slot has the same variable in all branches.
        let key = (
            matches!(owner, Owner::Object(_)),
            match owner {
                Owner::Frame(frame) => frame.0,
                Owner::Object(object) => self.actual(object).0,
            },
            name,
        );
        if let Some(variable) = self.slot_variables.get(&key) {
            return *variable;
        }
        let variable = self.program.variable(shown);
        if name != "return" {
            let frame = match owner {
                Owner::Frame(frame) => Some(frame),
                Owner::Object(_) => None,
            };
            self.facts.named.insert(variable, frame);
        }
        self.slot_variables.insert(key, variable);
        variable
    }

    /// Binds a name or an attribute to a value. `shown` is how the script writes it.
    pub(super) fn bind(
        &mut self,
        owner: Owner,
        name: &'a str,
        shown: &str,
        value: Value<'a>,
        site: Site,
    ) {
        let variable = self.variable_of(owner, name, shown);
        if let Shape::Loaded(_, keys) = &value.shape
            && !keys.is_empty()
        {
            let in_loop = !self.loops.is_empty();
            let moment = self.moment();
            self.facts.restores.push(Restore {
                variable,
                object: None,
                site,
                in_loop,
                moment,
            });
            // The uninterrupted run goes on with what it has.
            if self.slot(owner, name).is_some() {
                return;
            }
        }
        self.note_keeper(owner, name, variable, &value);
        self.note_rebinding(owner, name, &value, site);
        self.note_derived_position(variable, &value);
        let slot = self.store(variable, value, shown, site);
        self.set(owner, name, Some(slot));
    }

    /// Notes which attribute of which object keeps something.
    fn note_keeper(&mut self, owner: Owner, name: &str, variable: Variable, value: &Value<'a>) {
        let Owner::Object(owner) = owner else { return };
        let kept = match value.as_object() {
            Some(id) => Kept::Object(self.actual(id)),
            None => Kept::Variable(variable),
        };
        let keeper = (self.actual(owner), name.to_owned());
        self.facts.kept_in.entry(kept).or_insert(keeper);
    }

    /// What objects of the project are called where the script is now: `self`, or a name of a call
    /// that is open.
    pub(super) fn visible_names(&self) -> BTreeMap<ObjectId, String> {
        let mut names = BTreeMap::new();
        let calls = self.calls.iter().rev();
        if let Some(receiver) = calls.clone().next().and_then(|call| call.receiver) {
            names.insert(self.actual(receiver), "self".to_owned());
        }
        let frames = calls
            .map(|call| call.frame)
            .chain(self.frame(self.current).module);
        for frame in frames {
            let mut here: Vec<(&str, ObjectId)> = Vec::new();
            for (name, slot) in &self.frame(frame).slots {
                if let Shape::Object(id) = slot.shape
                    && matches!(self.object(id).kind, Kind::Plain)
                    && *name != "self"
                {
                    here.push((name, self.actual(id)));
                }
            }
            here.sort_unstable();
            for (name, id) in here {
                names.entry(id).or_insert_with(|| name.to_owned());
            }
        }
        names
    }

    /// A name that is given another object loses what was restored into the one before.
    fn note_rebinding(&mut self, owner: Owner, name: &str, value: &Value<'a>, site: Site) {
        let Some(Slot {
            shape: Shape::Object(before),
            ..
        }) = self.slot(owner, name)
        else {
            return;
        };
        let before = self.actual(*before);
        let Some(now) = value.as_object().map(|id| self.actual(id)) else {
            return;
        };
        if now > before
            && self.role(now) == self.role(before)
            && self
                .facts
                .restores
                .iter()
                .any(|it| it.object == Some(before))
        {
            let cell = self.cell(before);
            self.note_rewrite(cell, site);
        }
    }

    /// What is computed from the position of a loop alone tells the position too.
    pub(super) fn note_derived_position(&mut self, variable: Variable, value: &Value<'a>) {
        if value.operands.is_empty() || !value.is_data() {
            return;
        }
        for id in &self.loops {
            let positions = &mut self.facts.loops[id.0 as usize].positions;
            let is_position = |operand: &Operand| matches!(operand, Operand::Variable(it) if positions.contains(it));
            if value.operands.iter().all(is_position) && !positions.contains(&variable) {
                positions.push(variable);
            }
        }
    }

    fn store(&mut self, variable: Variable, value: Value<'a>, shown: &str, site: Site) -> Slot<'a> {
        let models = value.models;
        match value.shape {
            Shape::Object(id) => {
                let names = !self.in_head;
                let object = self.object_mut(id);
                if names && object.name.is_none() && shown != RESULT {
                    object.name = Some(shown.to_owned());
                }
                self.name_elements(id, shown);
                Slot {
                    shape: Shape::Object(id),
                    variable: None,
                    models,
                }
            }
            Shape::Tuple(ref parts) => {
                let parts: Vec<Value<'a>> = parts
                    .iter()
                    .enumerate()
                    .map(|(index, part)| self.store_part(variable, index, part, shown, site))
                    .collect();
                Slot {
                    shape: Shape::Tuple(parts.into()),
                    variable: None,
                    models,
                }
            }
            Shape::Unordered(..) | Shape::State(_)
                if !value.operands.is_empty() || matches!(value.shape, Shape::Unordered(..)) =>
            {
                if matches!(value.shape, Shape::State(_)) && !models.is_empty() {
                    self.kept_states.insert(variable);
                }
                self.compute(variable, "copy", value.operands, site);
                Slot {
                    shape: value.shape,
                    variable: Some(variable),
                    models,
                }
            }
            shape @ (Shape::Plain
            | Shape::None
            | Shape::Bool(_)
            | Shape::Int(_)
            | Shape::Text(_)
            | Shape::Range
            | Shape::Settings
            | Shape::Key
            | Shape::Distribution
            | Shape::Stranger(_)) => {
                if matches!(shape, Shape::Key) {
                    self.facts.keys.insert(variable);
                }
                self.compute(variable, "copy", value.operands, site);
                Slot {
                    shape,
                    variable: Some(variable),
                    models,
                }
            }
            shape => Slot {
                shape,
                variable: None,
                models,
            },
        }
    }

    /// Variables in a list are called as the list is.
    fn name_elements(&mut self, id: ObjectId, shown: &str) {
        let Kind::Container(container) = &self.object(id).kind else {
            return;
        };
        let elements: Vec<ObjectId> = container
            .elements
            .iter()
            .filter_map(Value::as_object)
            .collect();
        for element in elements {
            let object = self.object_mut(element);
            if matches!(object.kind, Kind::State) && object.name.is_none() {
                object.name = Some(shown.to_owned());
            }
        }
    }

    /// Keeps a part of a tuple in a variable of its own.
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
        let variable = match self.part_variables.get(&(whole, index)) {
            Some(variable) => *variable,
            None => {
                let variable = self.program.variable(&shown);
                if let Some(frame) = self.facts.named.get(&whole).copied() {
                    self.facts.named.insert(variable, frame);
                }
                self.part_variables.insert((whole, index), variable);
                variable
            }
        };
        let slot = self.store(variable, part.clone(), &shown, site);
        self.read(&slot)
    }

    /// Binds a name in the current frame without anything happening in the program.
    pub(super) fn declare(&mut self, name: &'a str, value: Value<'a>) {
        let owner = self.owner_of(name);
        let slot = Slot {
            shape: value.shape,
            variable: None,
            models: value.models,
        };
        self.set(owner, name, Some(slot));
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
            let mut slot = slot.clone();
            slot.shape = Shape::Plain;
            self.set(owner, name, Some(slot));
        }
    }

    /// What a loop gives another value is data from the beginning, as far as JAX is concerned: trees of
    /// parameters begin as dictionaries and lists, and come back from functions as values.
    pub(super) fn forget_container(&mut self, owner: Owner, name: &'a str, site: Site) {
        let Some(Slot {
            shape: Shape::Object(id),
            ..
        }) = self.slot(owner, name)
        else {
            return;
        };
        let id = *id;
        if !self.frameworks.uses_jax || !matches!(self.object(id).kind, Kind::Container(_)) {
            return;
        }
        let data = self.data(&Value::object(id));
        let variable = self.variable_of(owner, name, name);
        let slot = self.store(variable, data, name, site);
        self.set(owner, name, Some(slot));
    }

    /// Runs the sides of a branch from the same start; their blocks are returned, and names are what
    /// they may be after any of them.
    pub(super) fn branch(
        &mut self,
        sides: Vec<&mut dyn FnMut(&mut Lift<'a>)>,
    ) -> Vec<Vec<crate::calculus::Statement>> {
        let first_new = self.objects.len();
        let mut blocks = Vec::new();
        let mut keys: Vec<(Owner, &'a str)> = Vec::new();
        let mut known = HashMap::new();
        let mut outcomes: Vec<HashMap<usize, Option<Slot<'a>>>> = Vec::new();
        for side in sides {
            let mark = self.journal.len();
            self.marks.push((self.frames.len(), self.objects.len()));
            self.blocks.push(Vec::new());
            side(self);
            blocks.push(self.blocks.pop().unwrap_or_default());
            self.marks.pop();
            let mut after = HashMap::new();
            for change in self.journal.split_off(mark).into_iter().rev() {
                let key = *known.entry((change.owner, change.name)).or_insert_with(|| {
                    keys.push((change.owner, change.name));
                    keys.len() - 1
                });
                let now = self.slot(change.owner, change.name).cloned();
                after.entry(key).or_insert(now);
                self.replace(change.owner, change.name, change.before);
            }
            outcomes.push(after);
        }
        for (key, (owner, name)) in keys.into_iter().enumerate() {
            let mut joined: Option<Option<Slot<'a>>> = None;
            for (index, outcome) in outcomes.iter().enumerate() {
                let after = match outcome.get(&key) {
                    Some(slot) => slot.clone(),
                    None => self.slot(owner, name).cloned(),
                };
                joined = Some(match joined {
                    None => after,
                    Some(other) => self.join(other, after, first_new, blocks.get_mut(index)),
                });
            }
            self.set(owner, name, joined.flatten());
        }
        blocks
    }

    /// What a slot may be after either of two branches. Objects of the same kind become one.
    fn join(
        &mut self,
        one: Option<Slot<'a>>,
        other: Option<Slot<'a>>,
        first_new: usize,
        block: Option<&mut Vec<crate::calculus::Statement>>,
    ) -> Option<Slot<'a>> {
        let (Some(one), Some(other)) = (one.clone(), other.clone()) else {
            return one.or(other);
        };
        let models = one.models.and(other.models);
        let variable = one.variable.or(other.variable);
        let shape = match (one.shape, other.shape) {
            (Shape::Object(a), Shape::Object(b)) => {
                let (a, b) = (self.actual(a), self.actual(b));
                let is_new = |id: ObjectId| id.0 as usize >= first_new;
                let may_stand_for =
                    |id| is_new(id) || (self.loops.is_empty() && !self.is_optimized(id));
                if a != b && may_stand_for(a) && may_stand_for(b) {
                    self.unite(a, b, block);
                }
                Shape::Object(a)
            }
            (Shape::Object(a), _) | (_, Shape::Object(a)) => Shape::Object(a),
            (Shape::Bool(a), Shape::Bool(b)) if a == b => Shape::Bool(a),
            (Shape::Int(a), Shape::Int(b)) if a == b => Shape::Int(a),
            (Shape::Text(a), Shape::Text(b)) if a == b => Shape::Text(a),
            (Shape::None, Shape::None) => Shape::None,
            (Shape::Key, Shape::Key) => Shape::Key,
            (Shape::None, loaded @ Shape::Loaded(..))
            | (loaded @ Shape::Loaded(..), Shape::None) => loaded,
            (Shape::None | Shape::Loaded(..), shape) | (shape, Shape::None | Shape::Loaded(..)) => {
                shape
            }
            (Shape::Unordered(what, order), _) | (_, Shape::Unordered(what, order)) => {
                Shape::Unordered(what, order)
            }
            (
                shape @ (Shape::Function(_)
                | Shape::Class(_)
                | Shape::Library(_)
                | Shape::Partial(_)
                | Shape::Tuple(_)),
                _,
            )
            | (
                _,
                shape @ (Shape::Function(_)
                | Shape::Class(_)
                | Shape::Library(_)
                | Shape::Partial(_)),
            ) => shape,
            _ => Shape::Plain,
        };
        Some(Slot {
            shape,
            variable,
            models,
        })
    }

    /// Whether an optimizer has this model.
    fn is_optimized(&self, id: ObjectId) -> bool {
        self.objects.iter().any(|object| match &object.kind {
            Kind::Optimizer { models, .. } => models.iter().any(|model| self.actual(*model) == id),
            _ => false,
        })
    }

    /// Two objects that stand for each other from here on, one made in each of two branches.
    fn unite(
        &mut self,
        a: ObjectId,
        b: ObjectId,
        block: Option<&mut Vec<crate::calculus::Statement>>,
    ) {
        if std::mem::discriminant(&self.object(a).kind)
            != std::mem::discriminant(&self.object(b).kind)
            || self.object(a).owner.is_some() != self.object(b).owner.is_some()
        {
            return;
        }
        let (kept, gone) = (self.object(a).clone(), self.object(b).clone());
        let mut copies = vec![(kept.cell, gone.cell)];
        match (&mut self.object_mut(a).kind, &gone.kind) {
            (
                Kind::Module {
                    gradients, layer, ..
                },
                Kind::Module {
                    gradients: others,
                    layer: other,
                    ..
                },
            ) => {
                copies.push((*gradients, *others));
                *layer = layer.and(*other);
            }
            (
                Kind::Optimizer { models, tensors },
                Kind::Optimizer {
                    models: others,
                    tensors: other_tensors,
                },
            ) => {
                models.extend(
                    others
                        .iter()
                        .copied()
                        .filter(|it| !models.contains(it))
                        .collect::<Vec<_>>(),
                );
                tensors.extend(other_tensors);
            }
            (Kind::Scheduler { optimizers }, Kind::Scheduler { optimizers: others }) => {
                optimizers.extend(others)
            }
            (Kind::Loader(one), Kind::Loader(other)) => {
                // What either does may happen.
                let mut both = (**one).clone();
                both.shuffles |= other.shuffles;
                both.has_workers |= other.has_workers;
                both.init = both.init.or_else(|| other.init.clone());
                *one = std::rc::Rc::new(both);
            }
            (Kind::Container(one), Kind::Container(_)) => one.is_closed = false,
            _ => {}
        }
        if let Some(block) = block {
            for (to, from) in copies {
                let function = self.function("copy");
                block.push(crate::calculus::Statement::Compute {
                    target: to,
                    function,
                    operands: vec![Operand::Variable(from)],
                    site: gone.site,
                });
            }
        }
        self.objects[b.0 as usize].same = Some(a);
    }
}
