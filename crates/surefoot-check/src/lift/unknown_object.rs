//! Objects created by unknown libraries, or by classes that settings name.
//!
//! Their use shows what they are. An object that was made from parameters and is stepped is an optimizer; one
//! that was made from an optimizer and is stepped is a schedule; one that was made from a model and is called
//! is that model, wrapped; one whose parameters an optimizer takes is a model. An object whose `train` or `fit`
//! is called may be a trainer. All are reported, once per callee.

use std::rc::Rc;

use ruff_python_ast::Expr;

use super::{
    Args, Global, Kind, Layer, Lift, Moment, ObjectId, Operand, Purpose, SEEDED, Shape, Site,
    UnknownId, Value,
};

/// An object created by an unknown library.
#[derive(Clone, Debug)]
pub(super) struct UnknownObject {
    /// Qualified name of the callee.
    pub callee: Rc<str>,
    pub site: Site,
    /// The statement of the call, outside of model constructors.
    pub statement: Site,
    pub moment: Moment,
    /// Models, optimizers, schedules and loaders that the callee received.
    pub received: Vec<ObjectId>,
    /// True if the callee received parameters instead of the models themselves.
    pub takes_parameters: bool,
    /// True if it is loaded from a file, and draws no parameters.
    pub is_loaded: bool,
    /// True if the callee received a function that trains.
    pub is_followed: bool,
    /// The object that it is, once its use has shown that.
    pub object: Option<ObjectId>,
}

impl<'a> Lift<'a> {
    /// Calls an unknown library.
    pub(super) fn call_unknown(&mut self, name: &str, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let name = name.trim_start_matches('.');
        if is_seeding(name) {
            for global in SEEDED {
                let generator = self.global(global);
                let seed = args.all().next().cloned();
                let seed = seed.unwrap_or_else(|| Value::of(Shape::Settings));
                self.seed(generator, &Args::of(vec![seed], site));
            }
            return Value::none();
        }
        match name.rsplit('.').next() {
            Some("rank" | "get_rank" | "local_rank" | "get_local_rank" | "get_ordinal") => {
                return Value::plain(vec![Operand::Rank]);
            }
            Some("world_size" | "get_world_size") => return Value::plain(vec![Operand::Workers]),
            _ => {}
        }
        let moment = self.program.moment();
        let statement = self.execution.statement.unwrap_or(site);
        let is_followed = self.call_back_all(args);
        let whole = self.heap.combine(args.all());
        let mut received: Vec<ObjectId> = Vec::new();
        let mut takes_parameters = false;
        for value in args.all() {
            match &value.shape {
                Shape::Object(id) if self.heap.takes_part(*id) => {
                    received.push(self.heap.root(*id))
                }
                Shape::Parameters(ids) => {
                    takes_parameters = true;
                    received.extend(ids.iter().map(|id| self.heap.root(*id)));
                }
                Shape::Object(_) | Shape::Tuple(_) => {
                    let models = self.heap.models_in([value].into_iter());
                    takes_parameters |= !models.is_empty();
                    received.extend(models);
                }
                _ => {}
            }
        }
        if !received.is_empty() || !whole.models.is_empty() {
            self.report_received(name, &received, site);
        }
        for id in &received {
            self.write_cell(*id, whole.operands.clone(), site);
        }
        if received.iter().any(|id| self.heap.is_optimizer(*id)) {
            self.program.facts.handed_over.push(site);
        }
        let is_loaded = is_loaded(name)
            // The name of a trained model.
            || args.positional.first().is_some_and(|it| it.as_text().is_some())
            || ["pretrained", "weights"].iter().any(|it| args.may_be_true(usize::MAX, it));
        let unknown = UnknownObject {
            callee: name.into(),
            site,
            statement,
            moment,
            received,
            takes_parameters,
            is_loaded,
            is_followed,
            object: None,
        };
        self.heap.new_unknown(unknown, whole)
    }

    fn report_received(&mut self, name: &str, received: &[ObjectId], site: Site) {
        // Pure computations on tensors are reported once per library.
        let package = name.split('.').next().unwrap_or(name);
        let callee = if received.is_empty() { package } else { name };
        let names = received.iter().filter_map(|id| self.heap.object(*id).name.as_ref());
        let mut names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        names.sort();
        names.dedup();
        let what = match (received.is_empty(), names.is_empty()) {
            (true, _) => "it receives what a model computed".to_owned(),
            (false, true) => "it receives the model".to_owned(),
            (false, false) => format!("it receives {}", names.join(", ")),
        };
        self.program.report_unknown(callee, site, &what, false);
    }

    /// Calls a method of an unknown object; `None` for methods that any data has.
    pub(super) fn call_unknown_method(
        &mut self,
        id: UnknownId,
        receiver: &'a Expr,
        base: &Value<'a>,
        name: &'a str,
        args: &Args<'a>,
    ) -> Option<Value<'a>> {
        let site = args.site;
        self.call_back_all(args);
        let UnknownObject { callee, received, takes_parameters, is_followed, .. } =
            self.heap.unknown_objects[id.0].clone();
        let has_optimizer = received.iter().any(|id| self.heap.is_optimizer(*id));
        let has_model = received.iter().any(|id| self.heap.is_module(*id));
        let is_stepped = has_model && !callee.ends_with("Env");
        match name {
            "train" | "fit" if is_trainer(&callee) && !is_followed => {
                let method = format!("{callee}.{name}");
                self.program.report_unknown(&method, site, "it trains the model", true);
                let whole = self.heap.combine(args.all());
                for id in received {
                    if self.heap.is_module(id) {
                        self.write_cell(id, whole.operands.clone(), site);
                        self.program.note_trained(self.heap.cell(id));
                    }
                }
                return None;
            }
            "step" | "zero_grad" | "add_param_group" | "state_dict" | "load_state_dict"
                if takes_parameters
                    || has_optimizer
                    || (is_stepped && matches!(name, "step" | "zero_grad")) =>
            {
                let object = self.stepped(&received, has_optimizer, site);
                self.settle(id, object, receiver);
                return Some(self.call_object_method(object, name, args.clone()));
            }
            "backward" if !args.positional.is_empty() => {
                let whole = self.heap.combine(args.all());
                self.backward(&whole, site);
                return Some(Value::constant());
            }
            // Returns its arguments, wrapped.
            "prepare" => {
                self.call_unknown(&format!("{callee}.{name}"), args);
                return Some(match &args.positional[..] {
                    [one] => one.clone(),
                    all => Value::tuple(all),
                });
            }
            // Parameters stand for the object itself; only an optimizer shows that it is a model.
            "parameters" | "named_parameters" | "to" | "cuda" | "cpu" | "eval" | "float"
            | "half" | "double" | "bfloat16" | "train"
                if !has_model =>
            {
                return Some(base.clone());
            }
            _ => {}
        }
        let wrapped = self.unwrapped(id)?;
        Some(self.call_object_method(wrapped, name, args.clone()))
    }

    /// The optimizer or the schedule that an unknown callee made.
    fn stepped(&mut self, received: &[ObjectId], is_schedule: bool, site: Site) -> ObjectId {
        let of = |lift: &Lift<'a>, is_optimizer: bool| -> Vec<ObjectId> {
            let all = received.iter().copied();
            all.filter(|id| lift.heap.is_optimizer(*id) == is_optimizer).collect()
        };
        let object = match is_schedule {
            true => self.make(Kind::Scheduler { optimizers: of(self, true) }, "scheduler", site),
            false => {
                let kind = Kind::Optimizer { models: of(self, false), tensors: Vec::new() };
                self.make(kind, "optimizer", site)
            }
        };
        // It exists since before the loop in which its use shows what it is.
        let cell = self.heap.object(object).cell;
        self.program.compute_first(cell, "new", site);
        object
    }

    fn settle(&mut self, id: UnknownId, object: ObjectId, receiver: &Expr) {
        let name = self.shown(receiver);
        self.heap.object_mut(object).name.get_or_insert(name);
        self.heap.unknown_objects[id.0].object = Some(object);
    }

    /// The object that an unknown callee returned, wrapped: the only one that it received.
    pub(super) fn unwrapped(&mut self, id: UnknownId) -> Option<ObjectId> {
        let unknown = &mut self.heap.unknown_objects[id.0];
        if unknown.object.is_none() && !unknown.takes_parameters {
            let [one] = unknown.received[..] else {
                return None;
            };
            unknown.object = Some(one);
        }
        unknown.object
    }

    /// The objects that an unknown callee returned, if it received as many.
    pub(super) fn unwrapped_parts(&self, id: UnknownId, count: usize) -> Option<Vec<Value<'a>>> {
        let unknown = &self.heap.unknown_objects[id.0];
        let received = unknown.received.iter().copied();
        (unknown.received.len() == count && !unknown.takes_parameters)
            .then(|| received.map(Value::object).collect())
    }

    /// Turns an unknown object into a model, because an optimizer takes its parameters.
    pub(super) fn make_unknown_a_model(
        &mut self,
        id: UnknownId,
        operands: Vec<Operand>,
    ) -> ObjectId {
        if let Some(model) = self.unwrapped(id) {
            return model;
        }
        let unknown = self.heap.unknown_objects[id.0].clone();
        let model = if unknown.moment.in_loop {
            self.new_unknown_model(&unknown, operands)
        } else {
            // It exists since before the loop in which its use shows what it is.
            let blocks = self.program.blocks.split_off(1);
            let loops = std::mem::take(&mut self.program.loops);
            let model = self.new_unknown_model(&unknown, operands);
            self.program.loops = loops;
            self.program.blocks.extend(blocks);
            model
        };
        self.heap.unknown_objects[id.0].object = Some(model);
        self.program.report_unknown(&unknown.callee, unknown.site, "it makes the model", false);
        model
    }

    fn new_unknown_model(&mut self, unknown: &UnknownObject, operands: Vec<Operand>) -> ObjectId {
        let statement = unknown.statement;
        let layer = Layer { has_parameters: true, ..Layer::default() };
        let model = self.make_module(layer, unknown.site);
        self.write_state(model, "new", operands, unknown.site);
        if !unknown.is_loaded {
            let drawn = self.draw_global(Global::Torch, Purpose::Parameters, [], statement);
            self.write_cell(model, drawn.operands, statement);
            if let Some(draw) = self.program.facts.draws.last_mut() {
                draw.moment = unknown.moment;
            }
        }
        model
    }
}

impl<'a> super::heap::Heap<'a> {
    /// Returns true if an object takes part in the training: a model, an optimizer, a generator, data.
    fn takes_part(&self, id: ObjectId) -> bool {
        match &self.object(id).kind {
            Kind::Module { .. } => self.has_parameters(self.root(id)),
            kind => matches!(
                kind,
                Kind::Optimizer { .. }
                    | Kind::Generator(_)
                    | Kind::Loader(_)
                    | Kind::Scheduler { .. }
            ),
        }
    }
}

/// Returns true if a function seeds generators: `seed_everything`, `set_determinism`.
fn is_seeding(callee: &str) -> bool {
    let name = callee.rsplit('.').next().unwrap_or(callee).to_ascii_lowercase();
    let is_verb =
        ["set", "seed", "fix", "manual", "init", "enable", "make_", "same", "reset", "torch_"];
    (name.contains("seed") || name.contains("determinis"))
        && is_verb.iter().any(|verb| name.starts_with(verb))
}

/// Returns true if a function loads a model instead of drawing its parameters.
fn is_loaded(callee: &str) -> bool {
    let name = callee.rsplit('.').next().unwrap_or(callee).to_ascii_lowercase();
    ["load", "pretrained", "restore", "import"].iter().any(|word| name.contains(word))
}

/// Returns true if the name of a class is that of a trainer.
fn is_trainer(callee: &str) -> bool {
    callee.ends_with("Trainer") || callee.ends_with("Learner")
}
