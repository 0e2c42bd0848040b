//! Objects with a state, and what happens to them.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Lift;
use super::facts::{Moment, Rewrite, Role};
use super::framework::Framework;
use super::scope::Slot;
use super::value::{Class, Models, ObjectId, Value};
use crate::calculus::{Operand, Site, Variable};
use crate::library::{Family, Global, Layer};

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Object<'a> {
    /// What it is.
    pub kind: Kind<'a>,
    /// Its class, if the project has it.
    pub class: Option<Rc<Class<'a>>>,
    /// Its attributes.
    pub fields: BTreeMap<&'a str, Slot<'a>>,
    /// The variable of its state.
    pub cell: Variable,
    /// What people call it.
    pub name: Option<String>,
    /// Where it is made.
    pub site: Site,
    /// The model it is a part of.
    pub owner: Option<ObjectId>,
    /// Models that are parts of it, in the order in which they were put in.
    pub parts: Vec<ObjectId>,
    /// The model it was copied from.
    pub copy_of: Option<ObjectId>,
    /// The object it turned out to be the same as.
    pub same: Option<ObjectId>,
}

/// Kinds of objects.
#[derive(Clone, Debug)]
pub(super) enum Kind<'a> {
    /// An object of the project without a library's base.
    Plain,
    /// A model or a layer.
    Module {
        /// The variable of its gradients.
        gradients: Variable,
        /// Its number among models.
        number: usize,
        /// Whether it is in training mode.
        trains: bool,
        /// What it does when called, if its code is not in the project.
        layer: Layer,
        /// Whether it averages another model.
        averages: bool,
    },
    /// An optimizer of these models, all if none are known, and of these variables.
    Optimizer {
        /// Models.
        models: Vec<ObjectId>,
        /// Tensors that are no model's.
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
    Generator(Source),
    /// Batches of data.
    Loader(Rc<Loader<'a>>),
    /// An order of data.
    Sampler {
        /// How it is made.
        order: crate::library::Sampler,
        /// The generator it draws from, if not the global one.
        generator: Option<ObjectId>,
        /// What it was made from.
        from: Value<'a>,
    },
    /// A library's data set.
    Dataset {
        /// What it was made from: files, other data sets.
        from: Value<'a>,
        /// What is done to each of its elements.
        transforms: Vec<Value<'a>>,
        /// Data sets in it.
        parts: Vec<ObjectId>,
    },
    /// A transform of a library.
    Transform {
        /// What it does.
        layer: Layer,
        /// Where it draws from.
        global: Global,
        /// Transforms in it.
        parts: Vec<Value<'a>>,
    },
    /// A list, a set, a dictionary, a queue.
    Container(Container<'a>),
    /// Something of a library that has a state.
    State,
    /// Something that a framework trains with.
    Framework(Rc<Framework<'a>>),
}

/// Where a generator comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// It is always there.
    Global(Global),
    /// It was made.
    Made(Family),
    /// That of a process that loads data.
    Worker(Global),
}

/// A loader of batches.
#[derive(Clone, Debug)]
pub(super) struct Loader<'a> {
    /// What it loads from.
    pub dataset: Value<'a>,
    /// Whether it draws the order.
    pub shuffles: bool,
    /// What else gives the order.
    pub sampler: Option<Value<'a>>,
    /// The generator that was passed.
    pub generator: Option<ObjectId>,
    /// Whether other processes load.
    pub has_workers: bool,
    /// What those processes call first.
    pub init: Option<Value<'a>>,
    /// What makes a batch of elements.
    pub collate: Option<Value<'a>>,
    /// Whether nothing is known of how it was made.
    pub is_opaque: bool,
}

/// What is known of the contents of a container.
#[derive(Clone, Debug, Default)]
pub(super) struct Container<'a> {
    /// Values in it, in order, while they are few and known.
    pub elements: Vec<Value<'a>>,
    /// Entries under texts.
    pub entries: Vec<(&'a str, Value<'a>, Site)>,
    /// Whether all its contents are known.
    pub is_closed: bool,
    /// Whether it is a dictionary.
    pub has_keys: bool,
}

impl<'a> Lift<'a> {
    /// A new object. `name` is what its variable is called until somebody binds it.
    pub(super) fn make(&mut self, kind: Kind<'a>, name: &str, site: Site) -> ObjectId {
        let cell = self.program.variable(name);
        self.cells.insert(cell);
        let id = ObjectId(u32::try_from(self.objects.len()).unwrap_or(u32::MAX));
        self.objects.push(Object {
            kind,
            class: None,
            fields: BTreeMap::new(),
            cell,
            name: None,
            site,
            owner: None,
            parts: Vec::new(),
            copy_of: None,
            same: None,
        });
        id
    }

    /// A new model or layer.
    pub(super) fn make_module(&mut self, layer: Layer, site: Site) -> ObjectId {
        let gradients = self.program.variable("gradients");
        let number = self.models.len();
        let kind = Kind::Module { gradients, number, trains: true, layer, averages: false };
        let id = self.make(kind, "parameters", site);
        self.models.push(id);
        let cell = self.object(id).cell;
        self.compute(cell, "new", Vec::new(), site);
        self.compute(gradients, "none", Vec::new(), site);
        id
    }

    /// The object itself, whatever it turned out to be the same as.
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

    /// An object, to be changed.
    pub(super) fn object_mut(&mut self, id: ObjectId) -> &mut Object<'a> {
        let id = self.actual(id);
        &mut self.objects[id.0 as usize]
    }

    /// The model that a part belongs to, or the object itself.
    pub(super) fn root(&self, id: ObjectId) -> ObjectId {
        let mut id = self.actual(id);
        // Parts form a tree; the bound only guards against scripts that tie knots.
        for _ in 0..64 {
            let Some(owner) = self.object(id).owner else {
                break;
            };
            id = self.actual(owner);
        }
        let copies = self.copies.iter().rev();
        copies.filter(|(original, _)| *original == id).map(|(_, copy)| *copy).next().unwrap_or(id)
    }

    /// The variable of an object's state; that of the whole model for a part of one.
    pub(super) fn cell(&self, id: ObjectId) -> Variable {
        self.object(self.root(id)).cell
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
        let mut roots: Vec<ObjectId> = Vec::new();
        if models.is_empty() {
            return roots;
        }
        for (number, id) in self.models.iter().enumerate() {
            let root = self.root(*id);
            if models.has(number) && self.has_parameters(root) && !roots.contains(&root) {
                roots.push(root);
            }
        }
        roots
    }

    /// All whole models.
    pub(super) fn all_roots(&self) -> Vec<ObjectId> {
        let mut roots: Vec<ObjectId> = Vec::new();
        for id in &self.models {
            let root = self.root(*id);
            if self.has_parameters(root) && !roots.contains(&root) {
                roots.push(root);
            }
        }
        roots
    }

    /// Makes `part` a part of the model `whole`.
    pub(super) fn absorb(&mut self, whole: ObjectId, part: ObjectId, site: Site) {
        let (whole, part) = (self.actual(whole), self.actual(part));
        if whole == part || self.object(part).owner.is_some() || self.root(whole) == part {
            return;
        }
        let Kind::Module { layer, .. } = self.object(part).kind else {
            return;
        };
        let from = self.object(part).cell;
        let root = self.root(whole);
        let to = self.object(root).cell;
        self.compute(to, "parts", vec![Operand::Variable(to), Operand::Variable(from)], site);
        self.object_mut(part).owner = Some(whole);
        self.object_mut(whole).parts.push(part);
        for id in [whole, root] {
            if let Kind::Module { layer: own, .. } = &mut self.object_mut(id).kind {
                *own = own.and(layer);
            }
        }
    }

    /// Whether an object is a model or a layer.
    pub(super) fn is_module(&self, id: ObjectId) -> bool {
        matches!(self.object(id).kind, Kind::Module { .. })
    }

    /// Whether a model has anything to train.
    pub(super) fn has_parameters(&self, id: ObjectId) -> bool {
        matches!(
            self.object(id).kind,
            Kind::Module { layer: Layer { has_parameters: true, .. }, .. }
        )
    }

    /// Whether a model is in training mode.
    pub(super) fn trains(&self, id: ObjectId) -> bool {
        matches!(self.object(self.root(id)).kind, Kind::Module { trains: true, .. })
    }

    /// The generator that is always there.
    pub(super) fn global(&mut self, global: Global) -> ObjectId {
        if let Some(id) = self.worker_globals.as_ref().and_then(|globals| globals.get(&global)) {
            return *id;
        }
        if let Some(id) = self.globals.get(&global) {
            return *id;
        }
        let site = self.start;
        let name = match global {
            Global::Torch => "torch",
            Global::NumPy => "numpy",
            Global::Python => "python",
            Global::TensorFlow => "tensorflow",
        };
        let id = self.make(Kind::Generator(Source::Global(global)), name, site);
        self.object_mut(id).name = Some(name.to_owned());
        self.globals.insert(global, id);
        id
    }

    /// What an object is, for those who look at the lifted script.
    pub(super) fn role(&self, id: ObjectId) -> Option<Role> {
        Some(match &self.object(id).kind {
            Kind::Module { averages: true, .. } => Role::Average,
            Kind::Module { .. } => Role::Model,
            Kind::Optimizer { .. } => Role::Optimizer,
            Kind::Scheduler { .. } => Role::Scheduler,
            Kind::Scaler => Role::Scaler,
            Kind::Generator(Source::Global(global)) => Role::Global(*global),
            Kind::Generator(Source::Made(family)) => Role::Generator(*family),
            Kind::Generator(Source::Worker(global)) => Role::Worker(*global),
            Kind::Container(container) if container.has_keys => Role::Dictionary,
            Kind::Container(_) if self.sets.contains(&self.actual(id)) => Role::Set,
            Kind::Container(_) => Role::Container,
            Kind::State => Role::State,
            Kind::Framework(framework) => return framework.role(),
            Kind::Plain
            | Kind::Loader(_)
            | Kind::Sampler { .. }
            | Kind::Dataset { .. }
            | Kind::Transform { .. } => return None,
        })
    }

    /// Notes that a cell is written anew outside of a training step.
    pub(super) fn note_rewrite(&mut self, variable: Variable, site: Site) {
        let in_loop = !self.loops.is_empty();
        let moment = self.moment();
        self.facts.rewrites.push(Rewrite { variable, site, in_loop, moment });
    }

    /// The next moment.
    pub(super) fn moment(&mut self) -> Moment {
        self.clock += 1;
        Moment(self.clock)
    }

    /// One step of an optimizer: new moments, then new parameters.
    pub(super) fn optimizer_step(&mut self, optimizer: ObjectId, extra: &[Operand], site: Site) {
        let Kind::Optimizer { models, tensors } = self.object(optimizer).kind.clone() else {
            return;
        };
        let mut roots: Vec<ObjectId> = Vec::new();
        for model in models {
            let root = self.root(model);
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        if roots.is_empty() && tensors.is_empty() {
            roots = self.all_roots();
        }
        let cell = self.object(optimizer).cell;
        let mut operands = vec![Operand::Variable(cell)];
        let mut pairs = Vec::new();
        for root in &roots {
            if let Kind::Module { gradients, .. } = self.object(*root).kind {
                operands.push(Operand::Variable(gradients));
                pairs.push((self.object(*root).cell, gradients));
            }
        }
        operands.extend(extra);
        if !self.frameworks.forgetful.contains(&optimizer) {
            self.compute(cell, "moments", operands, site);
        }
        for (parameters, gradients) in pairs {
            let mut operands = vec![
                Operand::Variable(parameters),
                Operand::Variable(gradients),
                Operand::Variable(cell),
            ];
            operands.extend(extra);
            self.compute(parameters, "step", operands, site);
        }
        for tensor in tensors {
            self.compute(
                tensor,
                "step",
                vec![Operand::Variable(tensor), Operand::Variable(cell)],
                site,
            );
            self.note_trained(tensor);
        }
        for root in roots {
            let cell = self.object(root).cell;
            self.note_trained(cell);
        }
        self.note_step();
    }

    /// Clears the gradients of these models, or of all.
    pub(super) fn clear_gradients(&mut self, models: &[ObjectId], site: Site) {
        let roots = if models.is_empty() {
            self.all_roots()
        } else {
            models.iter().map(|id| self.root(*id)).collect()
        };
        for root in roots {
            if let Kind::Module { gradients, .. } = self.object(root).kind {
                self.compute(gradients, "none", Vec::new(), site);
            }
        }
    }

    /// Adds the gradients of a loss to those of the models in it.
    pub(super) fn backward(&mut self, loss: &Value<'a>, site: Site) {
        let roots =
            if loss.models.is_empty() { self.all_roots() } else { self.roots_of(loss.models) };
        for root in roots {
            if let Kind::Module { gradients, .. } = self.object(root).kind {
                let parameters = self.object(root).cell;
                let mut operands =
                    vec![Operand::Variable(gradients), Operand::Variable(parameters)];
                operands.extend(&loss.operands);
                self.compute(gradients, "backward", operands, site);
                self.computed_gradients.insert(gradients);
            }
        }
    }
}
