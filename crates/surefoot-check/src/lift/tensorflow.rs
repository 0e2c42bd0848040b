//! Calls of TensorFlow: variables, checkpoints, generators, pipelines.

use std::rc::Rc;

use super::{
    Args, Container, Environment, Family, Framework, GeneratorOrigin, Global, Heap, Holdings, Kind,
    Lift, ObjectId, Operand, ProgramBuilder, Role, Rule, Shape, Site, SwitchSet, TensorFlow, Value,
};

impl<'a> Lift<'a> {
    /// Calls something of TensorFlow.
    pub(super) fn call_tensorflow(
        &mut self,
        call: TensorFlow,
        name: &str,
        args: &Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        match call {
            TensorFlow::Variable => {
                let initial = args.get(0, "initial_value").cloned();
                let whole = self.heap.combine(initial.iter());
                self.make_new(Kind::State, "variable", whole.operands, site)
            }
            TensorFlow::Checkpoint => {
                let named = args.named.iter();
                let entries = named.map(|(name, value)| (*name, value.clone(), site)).collect();
                let elements = args.positional.clone();
                let container =
                    Container { elements, entries, is_closed: true, has_keys: true, order: None };
                let content = self.make(Kind::Container(container), "content", site);
                let id = self.make_framework(Framework::Checkpoint(content), "checkpoint", site);
                Value::object(id)
            }
            TensorFlow::Manager => {
                let of = args.get(0, "checkpoint").and_then(Value::as_object);
                let Some(content) = of.and_then(|id| self.heap.checkpoint_content(id)) else {
                    return Value::constant();
                };
                Value::object(self.make_framework(Framework::Checkpoint(content), "manager", site))
            }
            TensorFlow::Dataset | TensorFlow::Files => self.new_pipeline(name, args),
            TensorFlow::Generator => Value::object(self.make_generator(Family::TensorFlow, args)),
            TensorFlow::EntropyGenerator => {
                let read = self.read_environment(Environment::Entropy, "entropy", site);
                let passed = Args::of(vec![Value::variable(read)], site);
                Value::object(self.make_generator(Family::TensorFlow, &passed))
            }
            TensorFlow::GlobalGenerator => Value::object(self.global(Global::TensorFlow)),
            TensorFlow::Options => Value::object(self.make(Kind::Plain, "options", site)),
            TensorFlow::Call => {
                let Some(function) = args.get(0, "func").cloned() else {
                    return Value::constant();
                };
                let passed = args.get(1, "inp").cloned();
                let positional = passed.as_ref().map_or_else(Vec::new, |it| self.heap.parts_of(it));
                let result = self.call_with(function, positional, site);
                let mut whole = self.heap.combine(passed.iter());
                whole.depend_on(&self.heap.data(&result));
                if result.is_data() { whole } else { result }
            }
            TensorFlow::Run => {
                let Some(function) = args.get(0, "fn").cloned() else {
                    return Value::constant();
                };
                let passed = args.get(1, "args").cloned();
                let positional =
                    passed.as_ref().map_or_else(Vec::new, |it| match self.heap.parts_of(it) {
                        parts if parts.is_empty() => vec![it.clone()],
                        parts => parts,
                    });
                self.call_with(function, positional, site)
            }
            TensorFlow::Strategy => Value::library("tensorflow.distribute.Strategy"),
            TensorFlow::Resize => {
                let method = args.get(2, "method");
                let is_smooth = method.is_none_or(|it| {
                    matches!(it.as_text(), Some(&("bilinear" | "bicubic")))
                        || matches!(&it.shape, Shape::Library(name) if name.ends_with("BILINEAR"))
                });
                match is_smooth {
                    true => self.call_operation("the gradient of a bilinear resize", args),
                    false => self.heap.combine(args.all()),
                }
            }
        }
    }

    /// Calls a method of a framework's object.
    pub(super) fn call_framework_method(
        &mut self,
        id: ObjectId,
        framework: &Rc<Framework<'a>>,
        name: &'a str,
        args: Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        match &**framework {
            Framework::Pipeline(pipeline) => {
                self.call_pipeline_method(id, pipeline.clone(), name, &args)
            }
            Framework::Checkpoint(content) => {
                match name {
                    "save" | "write" => self.save_objects(*content, site),
                    "restore" | "read" | "restore_or_initialize" => {
                        self.restore_objects(*content, site)
                    }
                    _ => {}
                }
                Value::constant()
            }
            Framework::Trainer(trainer) => self.call_trainer_method(&trainer.clone(), name, args),
            Framework::HubTrainer { model, data } => {
                if name == "train" {
                    self.train_with_hub(model, data, site);
                }
                Value::constant()
            }
            Framework::Accelerator => self.call_accelerator_method(name, &args),
            Framework::Callback(..) | Framework::ModelCheckpoint { .. } => {
                self.heap.combine(args.all())
            }
        }
    }

    /// `checkpoint.save(..)`.
    fn save_objects(&mut self, content: ObjectId, site: Site) {
        let mut holdings = self.heap.holdings(&Value::object(content), 6);
        self.add_optimizers(&mut holdings);
        // Attributes are saved with their objects.
        holdings.is_open = false;
        let has_memory = holdings.objects.iter().any(|id| {
            matches!(self.heap.role(*id), Some(Role::Optimizer | Role::Generator(_) | Role::State))
        });
        let mut restores = self.program.facts.restores.iter();
        let is_restored =
            restores.any(|it| it.object.is_some_and(|id| holdings.objects.contains(&id)));
        if !self.program.loops.is_empty() && (has_memory || is_restored) {
            self.note_save(holdings, None, site);
            return;
        }
        self.output_models_in(&holdings, site);
    }

    /// Outputs the saved models: they are the result of the run.
    pub(super) fn output_models_in(&mut self, holdings: &Holdings, site: Site) {
        let models = self.heap.cells_of_models(holdings);
        let operands: Vec<Operand> = models.map(Operand::Variable).collect();
        if !operands.is_empty() {
            self.program.emit(crate::calculus::Statement::Output { operands, site });
        }
    }

    /// Adds the optimizers of compiled models.
    fn add_optimizers(&self, holdings: &mut Holdings) {
        for id in holdings.objects.clone() {
            if let Some(optimizer) = self.optimizer_of(id) {
                holdings.objects.push(optimizer);
            }
        }
    }

    /// `checkpoint.restore(..)`. Objects created later are restored on creation.
    fn restore_objects(&mut self, content: ObjectId, site: Site) {
        let mut holdings = self.heap.holdings(&Value::object(content), 6);
        self.add_optimizers(&mut holdings);
        let keys = holdings.keys.iter().map(|key| key.name.clone()).collect();
        let moment = self.program.moment();
        let load = self.program.note_load(keys, None, site, moment);
        for object in holdings.objects {
            if object != content && self.heap.role(object).is_some() {
                let cell = self.heap.cell(object);
                self.program.note_restore(cell, Some(object), load, site);
            }
        }
    }

    /// Calls a method that writes a variable; `None` for other methods.
    pub(super) fn call_variable_method(
        &mut self,
        id: ObjectId,
        name: &str,
        args: &Args<'a>,
    ) -> Option<Value<'a>> {
        let site = args.site;
        let cell = self.heap.cell(id);
        let parameter = if name == "assign" { "value" } else { "delta" };
        let value = args.get(0, parameter).cloned().unwrap_or_default();
        match name {
            "assign" => {
                if let Shape::Loaded(load, _) = value.shape {
                    self.program.note_restore(cell, Some(id), load, site);
                } else {
                    self.program.note_derived_position(cell, &value);
                    let operands = self.heap.data(&value).operands;
                    self.program.compute(cell, "copy", operands, site);
                }
            }
            "assign_add" if matches!(value.shape, Shape::Int(_)) => {
                self.program.note_counted(cell);
                self.program.compute(cell, "succ", [Operand::Variable(cell)], site);
            }
            "assign_add" | "assign_sub" | "scatter_update" | "scatter_nd_update"
            | "scatter_nd_add" => {
                let operands = self.heap.data(&value).operands;
                self.write_cell(id, operands, site);
            }
            _ => return None,
        }
        Some(Value::object(id))
    }
}

impl<'a> Heap<'a> {
    /// The container of the objects that a checkpoint or its manager saves.
    fn checkpoint_content(&self, id: ObjectId) -> Option<ObjectId> {
        match self.framework(id)? {
            Framework::Checkpoint(content) => Some(*content),
            _ => None,
        }
    }

    /// An attribute of a framework's object.
    pub(super) fn framework_attribute(&self, id: ObjectId, name: &str) -> Value<'a> {
        let Some(content) = self.checkpoint_content(id) else {
            return match name {
                "process_index" | "local_process_index" => Value::plain(vec![Operand::Rank]),
                "num_processes" => Value::plain(vec![Operand::Workers]),
                _ => Value::constant(),
            };
        };
        if name == "checkpoint" {
            return Value::object(id);
        }
        let entry = self.container(content).and_then(|it| it.entry(name));
        entry.cloned().unwrap_or_default()
    }

    /// Returns true for generators of TensorFlow.
    pub(super) fn is_tensorflow_generator(&self, id: ObjectId) -> bool {
        matches!(
            self.object(id).kind,
            Kind::Generator(
                GeneratorOrigin::Made(Family::TensorFlow)
                    | GeneratorOrigin::Global(Global::TensorFlow)
            )
        )
    }
}

impl<'a> ProgramBuilder<'a> {
    /// Sets an environment variable, which may be a switch of TensorFlow or XLA.
    pub(super) fn set_environment(&mut self, name: &Value<'a>, value: &Value<'a>, site: Site) {
        let (Some(name), Some(value)) = (name.as_text(), value.as_text()) else {
            return;
        };
        let rule = match *name {
            "TF_CUDNN_USE_AUTOTUNE" if *value == "1" => Rule::Autotune,
            "XLA_FLAGS"
                if value.contains("autotune_level=") && !value.contains("autotune_level=0") =>
            {
                Rule::Autotune
            }
            "NVIDIA_TF32_OVERRIDE" if *value == "1" => Rule::Precision,
            _ => return,
        };
        self.facts.switches.push(SwitchSet { rule, site });
    }
}
