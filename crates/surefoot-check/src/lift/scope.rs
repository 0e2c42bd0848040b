//! Names and their bindings.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::{FileId, FrameId, Kind, Lift, Models, ObjectId, Shape, Value, Variable};

/// Name of the variable of a call's result.
pub(super) const RESULT: &str = "result";

/// The names of a module, a class body or a call.
#[derive(Clone, Debug)]
pub(super) struct Frame<'a> {
    /// Bindings.
    pub slots: HashMap<&'a str, Slot<'a>>,
    /// Enclosing frame.
    pub parent: Option<FrameId>,
    /// The module of the code.
    pub module: Option<FrameId>,
    /// Names that are declared `global` or `nonlocal` here.
    pub outer: Vec<(&'a str, bool)>,
    /// The file of the code.
    pub file: FileId,
}

/// Binding of a name or an attribute.
#[derive(Clone, Debug)]
pub(super) struct Slot<'a> {
    pub shape: Shape<'a>,
    /// Variable of its data.
    pub variable: Option<Variable>,
    /// The models in it.
    pub models: Models,
}

/// Owner of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// A frame.
    Frame(FrameId),
    /// An object.
    Object(ObjectId),
}

impl<'a> Slot<'a> {
    /// A binding without a variable.
    pub(super) fn of(value: Value<'a>) -> Slot<'a> {
        Slot { shape: value.shape, variable: None, models: value.models }
    }
}

/// A change of a slot, for undo.
#[derive(Clone, Debug)]
pub(super) struct Change<'a> {
    /// Owner of the slot.
    pub owner: Owner,
    /// Its name.
    pub name: &'a str,
    /// Previous binding.
    pub before: Option<Slot<'a>>,
}

/// The frames of a script and the changes that open branches made to them.
#[derive(Default)]
pub(super) struct Scope<'a> {
    pub frames: Vec<Frame<'a>>,
    /// The frame of the code being executed.
    pub current: FrameId,
    pub module_frames: BTreeMap<FileId, FrameId>,
    /// The first library that each file imports all names of.
    pub stars: BTreeMap<FileId, Rc<str>>,
    /// Variable of each slot.
    pub slot_variables: HashMap<(Owner, &'a str), Variable>,
    /// Changes to slots since the outermost open branch began.
    pub changes: Vec<Change<'a>>,
    /// Number of frames and objects at the start of each open branch.
    pub marks: Vec<(usize, usize)>,
}

impl<'a> Lift<'a> {
    pub(super) fn slot(&self, owner: Owner, name: &str) -> Option<&Slot<'a>> {
        match owner {
            Owner::Frame(frame) => self.scope.frame(frame).slots.get(name),
            Owner::Object(object) => self.heap.object(object).fields.get(name),
        }
    }

    /// Binds a slot, and remembers what it was. What a branch made itself needs no memory.
    pub(super) fn set(&mut self, owner: Owner, name: &'a str, slot: Option<Slot<'a>>) {
        let before = self.replace(owner, name, slot);
        if let Some((frames, objects)) = self.scope.marks.last() {
            let is_older = match owner {
                Owner::Frame(frame) => (frame.0 as usize) < *frames,
                Owner::Object(object) => (object.0 as usize) < *objects,
            };
            if is_older {
                self.scope.changes.push(Change { owner, name, before });
            }
        }
    }

    pub(super) fn replace(
        &mut self,
        owner: Owner,
        name: &'a str,
        slot: Option<Slot<'a>>,
    ) -> Option<Slot<'a>> {
        match (owner, slot) {
            (Owner::Frame(id), Some(slot)) => {
                self.scope.frames[id.0 as usize].slots.insert(name, slot)
            }
            (Owner::Frame(id), None) => self.scope.frames[id.0 as usize].slots.remove(name),
            (Owner::Object(id), Some(slot)) => self.heap.object_mut(id).fields.insert(name, slot),
            (Owner::Object(id), None) => self.heap.object_mut(id).fields.remove(name),
        }
    }

    /// Value of a name.
    pub(super) fn look_up(&self, name: &str) -> Option<Value<'a>> {
        let mut at = Some(self.scope.current);
        while let Some(id) = at {
            let frame = self.scope.frame(id);
            if let Some(slot) = frame.slots.get(name) {
                return Some(self.heap.read(slot));
            }
            at = frame.parent;
        }
        None
    }

    /// Variable of a slot, created on first use.
    pub(super) fn variable_of(&mut self, owner: Owner, name: &'a str, shown: &str) -> Variable {
        if let Some(Slot { variable: Some(variable), .. }) = self.slot(owner, name) {
            return *variable;
        }
        // The same slot has the same variable in all branches.
        let owner = match owner {
            Owner::Frame(_) => owner,
            Owner::Object(object) => Owner::Object(self.heap.actual(object)),
        };
        let key = (owner, name);
        if let Some(variable) = self.scope.slot_variables.get(&key) {
            return *variable;
        }
        let variable = self.program.variable(shown);
        if name != "return" {
            let frame = match owner {
                Owner::Frame(frame) => Some(frame),
                Owner::Object(_) => None,
            };
            self.program.facts.named.insert(variable, frame);
        }
        self.scope.slot_variables.insert(key, variable);
        variable
    }

    /// Names of project objects at the current point of the script: `self`, or a name in an
    /// open call.
    pub(super) fn visible_names(&self) -> BTreeMap<ObjectId, String> {
        let mut names = BTreeMap::new();
        let calls = self.execution.calls.iter().rev();
        if let Some(receiver) = calls.clone().next().and_then(|call| call.receiver) {
            names.insert(self.heap.actual(receiver), "self".to_owned());
        }
        let frames =
            calls.map(|call| call.frame).chain(self.scope.frame(self.scope.current).module);
        for frame in frames {
            let mut here: Vec<(&str, ObjectId)> = Vec::new();
            for (name, slot) in &self.scope.frame(frame).slots {
                if let Shape::Object(id) = slot.shape
                    && matches!(self.heap.object(id).kind, Kind::Plain)
                    && *name != "self"
                {
                    here.push((name, self.heap.actual(id)));
                }
            }
            here.sort_unstable();
            for (name, id) in here {
                names.entry(id).or_insert_with(|| name.to_owned());
            }
        }
        names
    }
}

impl<'a> Scope<'a> {
    /// A frame for code of `file`.
    pub(super) fn new_frame(
        &mut self,
        parent: Option<FrameId>,
        module: Option<FrameId>,
        file: FileId,
    ) -> FrameId {
        let id = FrameId(u32::try_from(self.frames.len()).unwrap_or(u32::MAX));
        self.frames.push(Frame { slots: HashMap::new(), parent, module, outer: Vec::new(), file });
        id
    }

    pub(super) fn frame(&self, id: FrameId) -> &Frame<'a> {
        &self.frames[id.0 as usize]
    }

    /// Frame that an assignment to a name writes.
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
}
