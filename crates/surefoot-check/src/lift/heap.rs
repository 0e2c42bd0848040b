//! Objects with state, and the relations between them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{
    Container, Framework, GeneratorOrigin, Global, Kind, Layer, Models, Object, ObjectId, Operand,
    Role, Shape, Slot, UnknownId, UnknownObject, Value, Variable, push_new,
};

/// All objects of a script.
#[derive(Default)]
pub(super) struct Heap<'a> {
    pub objects: Vec<Object<'a>>,
    /// Environments and their generators.
    pub environments: BTreeMap<ObjectId, ObjectId>,
    /// Containers that are sets.
    pub sets: BTreeSet<ObjectId>,
    /// Variables that hold the state of an object.
    pub cells: HashSet<Variable>,
    /// Models and layers, in the order in which they are created.
    pub models: Vec<ObjectId>,
    /// Global generators.
    pub globals: BTreeMap<Global, ObjectId>,
    /// Models called through a copy, innermost last: original, copy.
    pub copies: Vec<(ObjectId, ObjectId)>,
    /// Results of calls into unknown libraries.
    pub unknown_objects: Vec<UnknownObject>,
    /// Function parameters and the variables passed for them.
    pub same_value: HashMap<Variable, Variable>,
    /// Variables that hold a copy of a model's state.
    pub kept_states: HashSet<Variable>,
    /// Gradients that a backward pass has written.
    pub computed_gradients: HashSet<Variable>,
}

impl<'a> Heap<'a> {
    pub(super) fn is_made(&self, id: ObjectId) -> bool {
        matches!(self.object(id).kind, Kind::Generator(GeneratorOrigin::Made(_)))
    }

    /// Combines values into one that depends on all of them.
    pub(super) fn combine<'v>(&self, values: impl IntoIterator<Item = &'v Value<'a>>) -> Value<'a>
    where
        'a: 'v,
    {
        let mut whole = Value::constant();
        for value in values {
            let value = self.data(value);
            whole.depend_on(&value);
        }
        whole
    }

    /// Converts a value to data; the state of objects and unspecified orders become operands.
    pub(super) fn data(&self, value: &Value<'a>) -> Value<'a> {
        let mut data = Value::plain(value.operands.clone());
        data.models = value.models;
        match &value.shape {
            Shape::Object(id) => {
                if !matches!(
                    self.object(*id).kind,
                    Kind::Plain
                        | Kind::Transform { .. }
                        | Kind::Loader(_)
                        | Kind::Sampler { .. }
                        | Kind::Framework(_)
                ) {
                    data.operands.push(Operand::Variable(self.cell(*id)));
                }
                data.models = data.models.and(self.models_of(*id));
                if let Some(container) = self.container(*id) {
                    data.operands.extend(container.order.map(|(_, it)| Operand::Variable(it)));
                    for element in container.elements.iter().take(8) {
                        if let Shape::Object(part) = element.shape {
                            data.models = data.models.and(self.models_of(part));
                        }
                        data.models = data.models.and(element.models);
                    }
                }
            }
            Shape::State(ids) | Shape::Parameters(ids) => {
                for id in ids.iter() {
                    data.operands.push(Operand::Variable(self.cell(*id)));
                    data.models = data.models.and(self.models_of(*id));
                }
            }
            Shape::Unordered(_, order) => data.operands.push(Operand::Variable(*order)),
            Shape::Tuple(parts) | Shape::Zip(parts) => {
                for part in parts.iter() {
                    let part = self.data(part);
                    data.depend_on(&part);
                }
            }
            Shape::Partial(partial) => {
                let of = self.data(&partial.0);
                data.depend_on(&of);
            }
            _ => {}
        }
        data
    }

    /// Follows merges to the object itself.
    pub(super) fn actual(&self, mut id: ObjectId) -> ObjectId {
        while let Some(same) = self.objects[id.0 as usize].same {
            id = same;
        }
        id
    }

    /// An object.
    pub(super) fn object(&self, id: ObjectId) -> &Object<'a> {
        &self.objects[self.actual(id).0 as usize]
    }

    /// An object, mutable.
    pub(super) fn object_mut(&mut self, id: ObjectId) -> &mut Object<'a> {
        let id = self.actual(id);
        &mut self.objects[id.0 as usize]
    }

    /// The model that a part belongs to, or the object itself.
    pub(super) fn root(&self, id: ObjectId) -> ObjectId {
        let mut id = self.actual(id);
        // Submodules form a tree; the bound guards against cycles.
        for _ in 0..64 {
            let Some(owner) = self.object(id).owner else {
                break;
            };
            id = self.actual(owner);
        }
        let copies = self.copies.iter().rev();
        copies.filter(|(original, _)| *original == id).map(|(_, copy)| *copy).next().unwrap_or(id)
    }

    /// Variable of an object's state; for submodules, that of the whole model.
    pub(super) fn cell(&self, id: ObjectId) -> Variable {
        self.object(self.root(id)).cell
    }

    /// The state of an object; for submodules, that of the whole model.
    pub(super) fn state(&self, id: ObjectId) -> Operand {
        Operand::Variable(self.cell(id))
    }

    /// Variable of the gradients of a model.
    pub(super) fn gradients(&self, id: ObjectId) -> Option<Variable> {
        match self.object(id).kind {
            Kind::Module { gradients, .. } => Some(gradients),
            _ => None,
        }
    }

    /// The contents of a list, a set, a dictionary or a queue.
    pub(super) fn container(&self, id: ObjectId) -> Option<&Container<'a>> {
        match &self.object(id).kind {
            Kind::Container(container) => Some(container),
            _ => None,
        }
    }

    /// The contents of a list, a set, a dictionary or a queue, mutable.
    pub(super) fn container_mut(&mut self, id: ObjectId) -> Option<&mut Container<'a>> {
        match &mut self.object_mut(id).kind {
            Kind::Container(container) => Some(container),
            _ => None,
        }
    }

    /// The contents of a value, if it is a list, a set, a dictionary or a queue.
    pub(super) fn container_in(&self, value: &Value<'a>) -> Option<&Container<'a>> {
        self.container(value.as_object()?)
    }

    /// The object of a framework.
    pub(super) fn framework(&self, id: ObjectId) -> Option<&Framework<'a>> {
        match &self.object(id).kind {
            Kind::Framework(framework) => Some(framework),
            _ => None,
        }
    }

    /// The numbers of the model that an object is or belongs to.
    pub(super) fn models_of(&self, id: ObjectId) -> Models {
        match self.object(self.root(id)).kind {
            Kind::Module { number, .. } => Models::one(number),
            _ => Models::default(),
        }
    }

    /// The whole models among these.
    pub(super) fn roots_of(&self, models: Models) -> Vec<ObjectId> {
        let numbered = self.models.iter().enumerate();
        self.trainable_roots(numbered.filter(|(number, _)| models.has(*number)).map(|(_, id)| id))
    }

    /// All whole models.
    pub(super) fn all_roots(&self) -> Vec<ObjectId> {
        self.trainable_roots(self.models.iter())
    }

    fn trainable_roots<'i>(&self, ids: impl Iterator<Item = &'i ObjectId>) -> Vec<ObjectId> {
        let mut roots = Vec::new();
        for root in ids.map(|id| self.root(*id)).filter(|root| self.has_parameters(*root)) {
            push_new(&mut roots, root);
        }
        roots
    }

    /// Returns true if an object is a model or a layer.
    pub(super) fn is_module(&self, id: ObjectId) -> bool {
        matches!(self.object(id).kind, Kind::Module { .. })
    }

    /// Returns true if a model has anything to train.
    pub(super) fn has_parameters(&self, id: ObjectId) -> bool {
        matches!(
            self.object(id).kind,
            Kind::Module { layer: Layer { has_parameters: true, .. }, .. }
        )
    }

    /// Returns true if a model is in training mode.
    pub(super) fn trains(&self, id: ObjectId) -> bool {
        matches!(self.object(self.root(id)).kind, Kind::Module { trains: true, .. })
    }

    /// Sets the training mode of a model.
    pub(super) fn set_mode(&mut self, id: ObjectId, on: bool) {
        if let Kind::Module { trains, .. } = &mut self.object_mut(id).kind {
            *trains = on;
        }
    }

    /// Returns true if the class of an object inherits from a library class with this prefix.
    pub(super) fn inherits(&self, id: ObjectId, prefix: &str) -> bool {
        let class = self.object(id).class.as_ref();
        class.is_some_and(|it| it.library_bases().iter().any(|base| base.starts_with(prefix)))
    }

    /// Role of an object in the lifted script.
    pub(super) fn role(&self, id: ObjectId) -> Option<Role> {
        Some(match &self.object(id).kind {
            Kind::Module { averages: true, .. } => Role::Average,
            Kind::Module { .. } => Role::Model,
            Kind::Optimizer { .. } => Role::Optimizer,
            Kind::Scheduler { .. } => Role::Scheduler,
            Kind::Scaler => Role::Scaler,
            Kind::Generator(GeneratorOrigin::Global(global)) => Role::Global(*global),
            Kind::Generator(GeneratorOrigin::Made(family)) => Role::Generator(*family),
            Kind::Generator(GeneratorOrigin::Worker(global)) => Role::Worker(*global),
            Kind::Container(container) if container.has_keys => Role::Dictionary,
            Kind::Container(_) if self.sets.contains(&self.actual(id)) => Role::Set,
            Kind::Container(_) => Role::Container,
            Kind::State if self.environments.contains_key(&self.actual(id)) => Role::Environment,
            Kind::State => Role::State,
            Kind::Framework(framework) => return framework.role(),
            Kind::Plain
            | Kind::Loader(_)
            | Kind::Sampler { .. }
            | Kind::Dataset { .. }
            | Kind::Transform { .. } => return None,
        })
    }

    /// The value in a slot.
    pub(super) fn read(&self, slot: &Slot<'a>) -> Value<'a> {
        if let Shape::Unknown(id) = slot.shape
            && let Some(object) = self.unknown_objects[id.0].object
        {
            return Value::object(object);
        }
        let operands = slot.variable.map(Operand::Variable).into_iter().collect();
        Value { shape: slot.shape.clone(), operands, models: slot.models }
    }

    /// The attribute of an object.
    pub(super) fn field(&self, object: ObjectId, name: &str) -> Option<Value<'a>> {
        self.object(object).fields.get(name).map(|slot| self.read(slot))
    }

    /// Result of a call into an unknown library, computed from `whole`.
    pub(super) fn new_unknown(&mut self, unknown: UnknownObject, whole: Value<'a>) -> Value<'a> {
        let id = UnknownId(self.unknown_objects.len());
        self.unknown_objects.push(unknown);
        Value { shape: Shape::Unknown(id), ..whole }
    }

    /// Sets an attribute on behalf of a framework.
    pub(super) fn set_field(&mut self, id: ObjectId, name: &'static str, value: &Value<'a>) {
        self.object_mut(id).fields.insert(name, Slot::of(value.clone()));
    }

    /// All objects in a value: in tuples, lists and dictionaries too.
    pub(super) fn objects_in(&self, value: &Value<'a>) -> Vec<ObjectId> {
        let mut found = Vec::new();
        let mut open = vec![(value.clone(), 0)];
        while let Some((value, depth)) = open.pop() {
            match value.as_object().filter(|id| self.container(*id).is_none()) {
                Some(id) => found.push(self.actual(id)),
                None if depth < 4 => {
                    let parts = self.parts_of(&value);
                    open.extend(parts.into_iter().rev().map(|part| (part, depth + 1)));
                }
                None => {}
            }
        }
        found
    }
}
