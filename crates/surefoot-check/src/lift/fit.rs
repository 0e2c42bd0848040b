//! `model.fit` of Keras: the loop that it runs, and the callbacks in it.

use super::{
    Args, Callback, Framework, Global, Heap, Kind, Lift, Models, ObjectId, Operand, Purpose,
    Runner, Shape, Site, Value, Variable, push_new,
};

/// A callback of a `fit`.
#[derive(Clone)]
pub(super) enum Called<'a> {
    /// One of the library.
    Library(ObjectId, Callback, Args<'a>),
    /// One of the project.
    Project(ObjectId),
}

impl<'a> Lift<'a> {
    /// Runs epochs over batches, with validation and callbacks at the end of each epoch.
    pub(super) fn fit(&mut self, id: ObjectId, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let data = args.get(0, "x").or_else(|| args.name("generator"));
        let data = data.cloned().unwrap_or_default();
        let labels = args.get(1, "y").cloned();
        let validation = args.name("validation_data").cloned();
        let callbacks =
            args.get(5, "callbacks").map_or_else(Vec::new, |it| self.heap.callbacks_in(it));
        for callback in &callbacks {
            if let Called::Project(callback) = callback {
                self.forget_fields(*callback);
                self.heap.set_field(*callback, "model", &Value::object(id));
                self.call_hook(*callback, "on_train_begin", Vec::new(), site);
            }
        }
        if self.hook(id, "train_step").is_some() {
            self.forget_fields(id);
        }
        // `fit` shuffles arrays, and the batches of a sequence.
        let shuffles = args.flag("shuffle") != Some(false);
        let order = shuffles.then(|| self.heap.order_of_fit(&data)).flatten();
        let in_processes = self.heap.loads_in_processes(&data, args);
        // `fit` inside a loop of the script is one iteration of that loop.
        let continues = args.get(11, "initial_epoch").is_some() || !self.program.loops.is_empty();
        self.run_library_loop(site, Runner::Fit, "epoch", false, |lift, epoch| {
            let number = Value::variable(epoch);
            for callback in &callbacks {
                lift.call_back(callback, "on_epoch_begin", vec![number.clone()], id, site);
            }
            let mut drawn = Value::constant();
            if let Some(global) = order {
                drawn = lift.draw_global(global, Purpose::DefaultOrder, [], site);
            }
            lift.begin_pass(&data, site);
            lift.run_library_loop(site, Runner::Fit, "batch", true, |lift, batch| {
                let element = lift.batch_of(&data, batch, in_processes, site);
                let more = lift.heap.combine(labels.iter().chain([&drawn]));
                let element = lift.heap.joined(element, &more);
                lift.keras_train_step(id, element, site);
                for callback in &callbacks {
                    let number = Value::variable(batch);
                    lift.call_back(callback, "on_train_batch_end", vec![number.clone()], id, site);
                    lift.call_back(callback, "on_batch_end", vec![number], id, site);
                }
            });
            let metrics = match &validation {
                Some(validation) => lift.keras_evaluate(id, Some(validation), site),
                None => Value::variable(lift.heap.cell(id)),
            };
            for callback in &callbacks {
                lift.end_epoch(callback, id, &number, &metrics, continues, site);
            }
        });
        if let Some(optimizer) = self.optimizer_of(id) {
            self.libraries.built.insert(optimizer);
        }
        for callback in &callbacks {
            self.end_training(callback, id, site);
        }
        let cell = self.heap.cell(id);
        self.program.computed("history", [Operand::Variable(cell)], Models::default(), site)
    }

    fn batch_of(
        &mut self,
        data: &Value<'a>,
        counter: Variable,
        in_processes: bool,
        site: Site,
    ) -> Value<'a> {
        let (true, Some(id)) = (in_processes, data.as_object()) else {
            return self.element(data, counter, site);
        };
        let globals = self.workers_of(id, site);
        for generator in globals.values() {
            push_new(&mut self.program.facts.unseeded_processes, *generator);
        }
        let before = self.libraries.worker_globals.replace(globals);
        let batch = self.element(data, counter, site);
        self.libraries.worker_globals = before;
        batch
    }

    /// A step on one batch: that of the class, or forward, backward and the optimizer.
    pub(super) fn keras_train_step(
        &mut self,
        id: ObjectId,
        batch: Value<'a>,
        site: Site,
    ) -> Value<'a> {
        self.libraries.training.push(true);
        let result = match self.hook(id, "train_step") {
            Some(function) => {
                let args = Args::of(vec![batch], site);
                self.enter(&function, args)
            }
            None => {
                let data = self.heap.data(&batch);
                let output = self.call_object(id, Args::of(inputs_of(batch), site));
                let mut loss = self.heap.data(&output);
                loss.depend_on(&data);
                let optimizer = self.optimizer_for(id, site);
                let root = self.heap.root(id);
                self.keras_step(optimizer, &[root], &loss.operands, site);
                loss
            }
        };
        self.libraries.training.pop();
        let data = self.heap.data(&result);
        self.program.computed("loss", data.operands, Models::default(), site)
    }

    /// The model applied to data, without training.
    pub(super) fn keras_evaluate(
        &mut self,
        id: ObjectId,
        data: Option<&Value<'a>>,
        site: Site,
    ) -> Value<'a> {
        let data = data.cloned().unwrap_or_default();
        self.libraries.training.push(false);
        self.libraries.evaluating += 1;
        self.begin_pass(&data, site);
        let batch = match &data.shape {
            Shape::Object(_) | Shape::Partial(_) => {
                let counter = self.program.variable("batch");
                self.program.compute(counter, "any", [], site);
                self.element(&data, counter, site)
            }
            _ => data.clone(),
        };
        let output = self.call_object(id, Args::of(inputs_of(batch.clone()), site));
        self.libraries.evaluating -= 1;
        self.libraries.training.pop();
        let mut whole = self.heap.data(&output);
        whole.depend_on(&self.heap.data(&batch));
        whole
    }

    /// A method of a callback, if the project has it.
    fn call_back(
        &mut self,
        callback: &Called<'a>,
        name: &str,
        positional: Vec<Value<'a>>,
        model: ObjectId,
        site: Site,
    ) {
        match callback {
            Called::Project(id) => {
                self.call_hook(*id, name, positional, site);
            }
            Called::Library(_, Callback::Lambda, args) => {
                if let Some(function) = args.name(name).cloned() {
                    self.call_with(function, positional, site);
                }
            }
            Called::Library(_, Callback::Schedule, args) if name == "on_epoch_begin" => {
                let Some(function) = args.get(0, "schedule").cloned() else {
                    return;
                };
                let optimizer = self.optimizer_for(model, site);
                let cell = self.heap.cell(optimizer);
                let mut positional = positional;
                positional.push(Value::variable(cell));
                let rate = self.call_with(function, positional, site);
                let operands = self.heap.data(&rate).operands;
                if !operands.is_empty() {
                    self.write_cell(optimizer, operands, site);
                }
            }
            Called::Library(..) => {}
        }
    }

    /// Runs a callback at the end of an epoch.
    fn end_epoch(
        &mut self,
        callback: &Called<'a>,
        model: ObjectId,
        epoch: &Value<'a>,
        metrics: &Value<'a>,
        continues: bool,
        site: Site,
    ) {
        let (id, kind, args) = match callback {
            Called::Library(id, kind, args) => (*id, *kind, args),
            Called::Project(_) => {
                let positional = vec![epoch.clone(), metrics.clone()];
                self.call_back(callback, "on_epoch_end", positional, model, site);
                return;
            }
        };
        let made = self.heap.object(id).site;
        let cell = self.heap.object(id).cell;
        let update_state = |lift: &mut Lift<'a>, name: &str| {
            lift.heap.object_mut(id).name.get_or_insert_with(|| name.to_owned());
            let operands = [Operand::Variable(cell)].into_iter().chain(metrics.operands.clone());
            lift.program.compute(cell, "remember", operands, site);
        };
        match kind {
            Callback::EarlyStopping => {
                update_state(self, "EarlyStopping");
                self.stop_library_loop(vec![Operand::Variable(cell)], site);
            }
            Callback::Plateau => {
                update_state(self, "ReduceLROnPlateau");
                let optimizer = self.optimizer_for(model, site);
                self.write_cell(optimizer, [Operand::Variable(cell)], site);
                // The learning rate is state even of an optimizer without moments.
                if self.libraries.stateless_optimizers.contains(&optimizer) {
                    let root = self.heap.root(model);
                    self.write_cell(root, [Operand::Variable(cell)], site);
                }
            }
            Callback::Backup => {
                let mut holdings = self.model_holdings(model, None, false);
                self.program.hold_positions(&mut holdings);
                self.note_save(holdings, None, made);
            }
            Callback::Checkpoint => {
                let file = self.program.file_name(args.get(0, "filepath"));
                let is_weights = args.may_be_true(usize::MAX, "save_weights_only");
                let mut holdings = self.model_holdings(model, file.as_deref(), is_weights);
                if self.libraries.is_read_again(file.as_deref()) {
                    self.restore_weights(file.as_deref(), &holdings);
                    // The file does not hold the epoch; the script must pass it to `fit`.
                    if continues {
                        self.program.hold_positions(&mut holdings);
                    }
                    self.note_save(holdings, file, made);
                } else {
                    self.output_models_in(&holdings, made);
                }
            }
            Callback::Lambda => {
                let positional = vec![epoch.clone(), metrics.clone()];
                self.call_back(callback, "on_epoch_end", positional, model, site);
            }
            Callback::Schedule | Callback::Base | Callback::Silent => {}
        }
    }

    /// Runs a callback at the end of the training.
    fn end_training(&mut self, callback: &Called<'a>, model: ObjectId, site: Site) {
        match callback {
            Called::Project(_) => self.call_back(callback, "on_train_end", Vec::new(), model, site),
            Called::Library(id, Callback::EarlyStopping, args)
                if args.may_be_true(usize::MAX, "restore_best_weights") =>
            {
                let cell = self.heap.object(*id).cell;
                let root = self.heap.root(model);
                self.write_cell(root, [Operand::Variable(cell)], site);
            }
            Called::Library(..) => {}
        }
    }
}

impl<'a> Heap<'a> {
    fn callbacks_in(&self, value: &Value<'a>) -> Vec<Called<'a>> {
        let objects = self.objects_in(value);
        let called = objects.into_iter().filter_map(|id| match self.framework(id) {
            Some(Framework::Callback(callback, args)) => {
                Some(Called::Library(id, *callback, args.clone()))
            }
            Some(_) => None,
            None => self.object(id).class.is_some().then_some(Called::Project(id)),
        });
        called.collect()
    }

    /// Generator from which `fit` draws the order of its data.
    fn order_of_fit(&self, data: &Value<'a>) -> Option<Global> {
        match &data.shape {
            Shape::Partial(_) | Shape::Function(_) | Shape::Iterator(_) => None,
            Shape::Object(id) => match &self.object(*id).kind {
                Kind::Container(_) => Some(Global::TensorFlow),
                Kind::Plain => {
                    let bases = self.object(*id).class.as_ref()?.library_bases();
                    let is_sequence = bases
                        .iter()
                        .any(|name| name.ends_with(".PyDataset") || name.ends_with(".Sequence"));
                    is_sequence.then_some(Global::Python)
                }
                _ => None,
            },
            _ => Some(Global::TensorFlow),
        }
    }

    /// Returns true if worker processes load the batches.
    fn loads_in_processes(&self, data: &Value<'a>, args: &Args<'a>) -> bool {
        let of_object = data
            .as_object()
            .and_then(|id| self.field(id, "use_multiprocessing"))
            .is_some_and(|it| matches!(it.shape, Shape::Bool(true)));
        of_object || args.is_true(usize::MAX, "use_multiprocessing")
    }

    /// Combines a batch with the other inputs of its step.
    pub(super) fn joined(&self, batch: Value<'a>, more: &Value<'a>) -> Value<'a> {
        if let Shape::Tuple(parts) = &batch.shape {
            let parts = parts.iter().map(|part| self.joined(part.clone(), more));
            return Value::of(Shape::Tuple(parts.collect()));
        }
        let mut data = self.data(&batch);
        data.depend_on(more);
        data
    }
}

/// The inputs of a model in a batch; the last element is the target.
fn inputs_of(batch: Value<'_>) -> Vec<Value<'_>> {
    match &batch.shape {
        Shape::Tuple(parts) if parts.len() > 1 => parts[..1].to_vec(),
        _ => vec![batch],
    }
}
