//! Objects with state, and the operations on them.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{
    Class, Environment, Family, Framework, Global, Layer, Lift, LoopId, ObjectId, Operand, Site,
    Slot, Value, Variable, push_new,
};

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Object<'a> {
    pub kind: Kind<'a>,
    /// Class, for classes of the project.
    pub class: Option<Rc<Class<'a>>>,
    /// Its attributes.
    pub fields: BTreeMap<&'a str, Slot<'a>>,
    /// Variable of its state.
    pub cell: Variable,
    /// Name in the script.
    pub name: Option<String>,
    /// Site of its creation.
    pub site: Site,
    /// Loops around its creation, outermost first.
    pub loops: Vec<LoopId>,
    /// Model that it is a submodule of.
    pub owner: Option<ObjectId>,
    /// Submodules, in order of registration.
    pub parts: Vec<ObjectId>,
    /// The model it was copied from.
    pub copy_of: Option<ObjectId>,
    /// Object that it was merged into.
    pub same: Option<ObjectId>,
}

/// Kinds of objects.
#[derive(Clone, Debug)]
pub(super) enum Kind<'a> {
    /// An object of a project class without a library base.
    Plain,
    /// A model or a layer.
    Module {
        /// Variable of its gradients.
        gradients: Variable,
        /// Its number among models.
        number: usize,
        /// True if it is in training mode.
        trains: bool,
        /// Behaviour when called, for layers of a library.
        layer: Layer,
        /// True if it averages another model.
        averages: bool,
    },
    /// An optimizer; of all models if none are listed.
    Optimizer {
        /// Models.
        models: Vec<ObjectId>,
        /// Tensors outside of models.
        tensors: Vec<Variable>,
    },
    /// A learning-rate schedule.
    Scheduler {
        /// The optimizers it sets.
        optimizers: Vec<ObjectId>,
    },
    /// A gradient scaler.
    Scaler,
    /// A generator.
    Generator(GeneratorOrigin),
    /// Batches of data.
    Loader(Rc<Loader<'a>>),
    /// An order of data.
    Sampler {
        /// Kind of order.
        order: crate::library::Sampler,
        /// The generator it draws from, if not the global one.
        generator: Option<ObjectId>,
        /// Source.
        from: Value<'a>,
    },
    /// A library's data set.
    Dataset {
        /// Source: files, other data sets.
        from: Value<'a>,
        /// Transforms applied to each element.
        transforms: Vec<Value<'a>>,
        /// Data sets in it.
        parts: Vec<ObjectId>,
    },
    /// A transform of a library.
    Transform {
        /// Behaviour of the layer.
        layer: Layer,
        /// Generator that it draws from.
        global: Global,
        /// Transforms in it.
        parts: Vec<Value<'a>>,
    },
    /// A list, a set, a dictionary, a queue.
    Container(Container<'a>),
    /// A library object with state.
    State,
    /// An object of a training framework.
    Framework(Rc<Framework<'a>>),
}

/// Origin of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GeneratorOrigin {
    /// A global generator.
    Global(Global),
    /// Created by the script.
    Made(Family),
    /// Generator of a data-loading worker process.
    Worker(Global),
}

/// A loader of batches.
#[derive(Clone, Debug)]
pub(super) struct Loader<'a> {
    /// Data set.
    pub dataset: Value<'a>,
    /// True if it draws the order.
    pub shuffles: bool,
    /// Sampler that determines the order.
    pub sampler: Option<Value<'a>>,
    /// The generator that was passed.
    pub generator: Option<ObjectId>,
    /// True if it has worker processes.
    pub has_workers: bool,
    /// `worker_init_fn`.
    pub init: Option<Value<'a>>,
    /// `collate_fn`.
    pub collate: Option<Value<'a>>,
    /// True if its arguments are unknown.
    pub is_opaque: bool,
}

/// Known contents of a container.
#[derive(Clone, Debug, Default)]
pub(super) struct Container<'a> {
    /// Elements, in order, as long as they are few and known.
    pub elements: Vec<Value<'a>>,
    /// Entries under texts.
    pub entries: Vec<(&'a str, Value<'a>, Site)>,
    /// True if the contents are complete.
    pub is_closed: bool,
    /// True if it is a dictionary.
    pub has_keys: bool,
    /// Order of its elements, if that differs between executions.
    pub order: Option<(Environment, Variable)>,
}

impl<'a> Container<'a> {
    /// All values in it.
    pub(super) fn values(&self) -> impl Iterator<Item = &Value<'a>> {
        self.elements.iter().chain(self.entries.iter().map(|(_, value, _)| value))
    }

    /// The value under a text.
    pub(super) fn entry(&self, key: &str) -> Option<&Value<'a>> {
        self.entries.iter().find(|(it, _, _)| *it == key).map(|(_, value, _)| value)
    }
}

impl<'a> Lift<'a> {
    /// Creates an object. `name` names its variable until it is bound.
    pub(super) fn make(&mut self, kind: Kind<'a>, name: &str, site: Site) -> ObjectId {
        let cell = self.program.variable(name);
        self.heap.cells.insert(cell);
        let id = ObjectId(u32::try_from(self.heap.objects.len()).unwrap_or(u32::MAX));
        self.heap.objects.push(Object {
            kind,
            class: None,
            fields: BTreeMap::new(),
            cell,
            name: None,
            site,
            loops: self.program.loops.clone(),
            owner: None,
            parts: Vec::new(),
            copy_of: None,
            same: None,
        });
        id
    }

    /// Creates an object whose state is computed from `operands`.
    pub(super) fn make_new(
        &mut self,
        kind: Kind<'a>,
        name: &str,
        operands: impl IntoIterator<Item = Operand>,
        site: Site,
    ) -> Value<'a> {
        let id = self.make(kind, name, site);
        self.write_state(id, "new", operands, site);
        Value::object(id)
    }

    /// Computes the state of an object from `operands`.
    pub(super) fn write_state(
        &mut self,
        id: ObjectId,
        function: &str,
        operands: impl IntoIterator<Item = Operand>,
        site: Site,
    ) {
        let cell = self.heap.object(id).cell;
        self.program.compute(cell, function, operands, site);
    }

    /// A new model or layer.
    pub(super) fn make_module(&mut self, layer: Layer, site: Site) -> ObjectId {
        let gradients = self.program.variable("gradients");
        let number = self.heap.models.len();
        let kind = Kind::Module { gradients, number, trains: true, layer, averages: false };
        let id = self.make(kind, "parameters", site);
        self.heap.models.push(id);
        self.write_state(id, "new", [], site);
        self.program.compute(gradients, "none", [], site);
        id
    }

    /// Makes `part` a submodule of `whole`.
    pub(super) fn absorb(&mut self, whole: ObjectId, part: ObjectId, site: Site) {
        let (whole, part) = (self.heap.actual(whole), self.heap.actual(part));
        if whole == part || self.heap.object(part).owner.is_some() || self.heap.root(whole) == part
        {
            return;
        }
        let Kind::Module { layer, .. } = self.heap.object(part).kind else {
            return;
        };
        let from = self.heap.object(part).cell;
        let root = self.heap.root(whole);
        let to = self.heap.object(root).cell;
        self.program.compute(to, "parts", [to, from].map(Operand::Variable), site);
        self.heap.object_mut(part).owner = Some(whole);
        self.heap.object_mut(whole).parts.push(part);
        for id in [whole, root] {
            if let Kind::Module { layer: own, .. } = &mut self.heap.object_mut(id).kind {
                *own = own.and(layer);
            }
        }
    }

    /// Returns a global generator.
    pub(super) fn global(&mut self, global: Global) -> ObjectId {
        if let Some(id) =
            self.libraries.worker_globals.as_ref().and_then(|globals| globals.get(&global))
        {
            return *id;
        }
        if let Some(id) = self.heap.globals.get(&global) {
            return *id;
        }
        let site = super::facts::START;
        let name = match global {
            Global::Torch => "torch",
            Global::NumPy => "numpy",
            Global::Python => "python",
            Global::TensorFlow => "tensorflow",
        };
        let id = self.make(Kind::Generator(GeneratorOrigin::Global(global)), name, site);
        self.heap.object_mut(id).name = Some(name.to_owned());
        self.heap.globals.insert(global, id);
        id
    }

    /// One step of an optimizer: new moments, then new parameters.
    pub(super) fn optimizer_step(&mut self, optimizer: ObjectId, extra: &[Operand], site: Site) {
        let Kind::Optimizer { models, tensors } = self.heap.object(optimizer).kind.clone() else {
            return;
        };
        let mut roots: Vec<ObjectId> = Vec::new();
        for model in models {
            push_new(&mut roots, self.heap.root(model));
        }
        if roots.is_empty() && tensors.is_empty() {
            roots = self.heap.all_roots();
        }
        let cell = self.heap.object(optimizer).cell;
        let pair =
            |root: &ObjectId| Some((self.heap.object(*root).cell, self.heap.gradients(*root)?));
        let pairs: Vec<(Variable, Variable)> = roots.iter().filter_map(pair).collect();
        let gradients = pairs.iter().map(|(_, gradients)| *gradients);
        let used = [cell].into_iter().chain(gradients).map(Operand::Variable);
        if !self.libraries.stateless_optimizers.contains(&optimizer) {
            self.program.compute(cell, "moments", used.chain(extra.iter().copied()), site);
        }
        for (parameters, gradients) in pairs {
            let operands = [parameters, gradients, cell].map(Operand::Variable).into_iter();
            self.program.compute(parameters, "step", operands.chain(extra.iter().copied()), site);
        }
        for tensor in tensors {
            self.program.compute(tensor, "step", [tensor, cell].map(Operand::Variable), site);
            self.program.note_trained(tensor);
        }
        for root in roots {
            self.program.note_trained(self.heap.object(root).cell);
        }
        self.program.note_step(site);
    }

    /// Clears the gradients of these models, or of all.
    pub(super) fn clear_gradients(&mut self, models: &[ObjectId], site: Site) {
        let roots = if models.is_empty() {
            self.heap.all_roots()
        } else {
            models.iter().map(|id| self.heap.root(*id)).collect()
        };
        for root in roots {
            if let Some(gradients) = self.heap.gradients(root) {
                self.program.compute(gradients, "none", [], site);
            }
        }
    }

    /// Adds the gradients of a loss to those of the models in it.
    pub(super) fn backward(&mut self, loss: &Value<'a>, site: Site) {
        let mut roots = self.heap.roots_of(loss.models);
        if roots.is_empty() {
            roots = self.heap.all_roots();
        }
        for root in roots {
            if let Some(gradients) = self.heap.gradients(root) {
                let own = [gradients, self.heap.object(root).cell].map(Operand::Variable);
                let mut operands = own.to_vec();
                operands.extend(&loss.operands);
                operands.extend(self.program.open_orders());
                self.program.compute(gradients, "backward", operands, site);
                self.heap.computed_gradients.insert(gradients);
            }
        }
        self.program.facts.steps.push(site);
    }
}
