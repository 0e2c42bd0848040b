//! Lightning: the loop of `Trainer.fit`.

use super::{
    Args, Container, Framework, Holdings, Kind, Lift, Lightning, ObjectId, Rule, Runner, Shape,
    Site, SwitchSet, Value, is_one_of,
};

/// Methods of modules that change nothing that a checkpoint holds.
const SILENT: &str = "log log_dict print save_hyperparameters toggle_optimizer untoggle_optimizer freeze \
    unfreeze clip_gradients lr_schedulers";

/// A Lightning trainer.
#[derive(Clone, Debug)]
pub(super) struct Trainer<'a> {
    /// Callbacks.
    callbacks: Vec<ObjectId>,
    /// Checkpoint to resume from, in Lightning versions before `fit(ckpt_path=)`.
    resumes: Option<Value<'a>>,
}

/// Data loaders of a trainer.
struct Loaders<'a> {
    training: Value<'a>,
    validation: Option<Value<'a>>,
}

impl<'a> Lift<'a> {
    /// Calls something of Lightning.
    pub(super) fn call_lightning(&mut self, call: Lightning, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let framework = match call {
            Lightning::Trainer => {
                self.set_trainer_switches(args);
                let callbacks = args.name("callbacks");
                Framework::Trainer(Trainer {
                    callbacks: callbacks.map_or_else(Vec::new, |it| self.heap.objects_in(it)),
                    resumes: args.name("resume_from_checkpoint").cloned(),
                })
            }
            Lightning::Checkpoint => Framework::ModelCheckpoint {
                is_without_optimizers: args.may_be_true(usize::MAX, "save_weights_only"),
            },
        };
        Value::object(self.make_framework(framework, "trainer", site))
    }

    fn set_trainer_switches(&mut self, args: &Args<'a>) {
        match args.name("deterministic").map(|it| &it.shape) {
            Some(Shape::Text("warn")) => {
                let site = self.keyword_site("deterministic", args);
                let rule = Rule::WarnOnly;
                self.program.facts.switches.push(SwitchSet { rule, site });
            }
            Some(Shape::Bool(true)) => self.program.facts.is_deterministic = true,
            _ => {}
        }
        if args.is_true(usize::MAX, "benchmark") {
            let site = self.keyword_site("benchmark", args);
            let rule = Rule::CudnnBenchmark;
            self.program.facts.switches.push(SwitchSet { rule, site });
        }
    }

    /// Calls a method of a trainer.
    pub(super) fn call_trainer_method(
        &mut self,
        trainer: &Trainer<'a>,
        name: &str,
        args: Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        match name {
            "fit" => {
                let model = args.get(0, "model").cloned().unwrap_or_default();
                match model.as_object() {
                    Some(id)
                        if self.heap.is_module(id) && self.hook(id, "training_step").is_some() =>
                    {
                        self.fit_module(trainer, id, &args);
                    }
                    // The module is of an unknown library.
                    _ => {
                        let data = args.get(1, "train_dataloaders").cloned();
                        self.train_with_hub(&model, &data.unwrap_or_default(), site);
                    }
                }
            }
            "save_checkpoint" => self.output_models(site),
            _ => {}
        }
        Value::constant()
    }

    fn fit_module(&mut self, trainer: &Trainer<'a>, model: ObjectId, args: &Args<'a>) {
        let site = args.site;
        self.forget_fields(model);
        let loaders = self.loaders(model, args);
        let configured = self.call_hook(model, "configure_optimizers", Vec::new(), site);
        let made = configured.map_or_else(Vec::new, |it| self.optimizers_in(&it, site));
        let all = made.iter().copied();
        let optimizers: Vec<ObjectId> = all.filter(|id| self.heap.is_optimizer(*id)).collect();
        let is_schedule =
            |id: &ObjectId| matches!(self.heap.object(*id).kind, Kind::Scheduler { .. });
        let schedulers: Vec<ObjectId> = made.iter().copied().filter(is_schedule).collect();
        for (index, id) in optimizers.iter().enumerate() {
            let name = &mut self.heap.object_mut(*id).name;
            name.get_or_insert_with(|| format!("optimizers[{index}]"));
        }
        self.libraries.module_optimizers = optimizers.clone();
        let callbacks = trainer.callbacks.iter().copied();
        let hooked: Vec<ObjectId> =
            callbacks.filter(|id| self.heap.object(*id).class.is_some()).collect();
        for id in &hooked {
            self.forget_fields(*id);
        }
        let path = args.get(4, "ckpt_path").or(trainer.resumes.as_ref());
        let is_resumed = path.is_some_and(|it| !it.is_none());
        if is_resumed {
            let loaded = self.load(&Args::none(site));
            self.call_hook(model, "on_load_checkpoint", vec![loaded], site);
        }
        let hook = |lift: &mut Lift<'a>, name: &str| {
            lift.call_hook(model, name, Vec::new(), site);
            for id in &hooked {
                let passed = vec![Value::of(Shape::Settings), Value::object(model)];
                lift.call_hook(*id, name, passed, site);
            }
        };
        hook(self, "on_fit_start");
        hook(self, "on_train_start");
        let is_automatic = !matches!(
            self.heap.field(model, "automatic_optimization").map(|it| it.shape),
            Some(Shape::Bool(false))
        );
        self.run_library_loop(site, Runner::Trainer, "epoch", false, |lift, _| {
            hook(lift, "on_train_epoch_start");
            lift.begin_pass(&loaders.training, site);
            lift.run_library_loop(site, Runner::Trainer, "batch_idx", true, |lift, counter| {
                let batch = lift.element(&loaders.training, counter, site);
                let index = Value::variable(counter);
                hook(lift, "on_train_batch_start");
                let loss = lift.call_hook(model, "training_step", vec![batch, index], site);
                if let (Some(loss), true) = (loss, is_automatic) {
                    let loss = lift.heap.data(&loss);
                    let root = lift.heap.root(model);
                    lift.clear_gradients(&[root], site);
                    lift.backward(&loss, site);
                    for optimizer in &optimizers {
                        lift.optimizer_step(*optimizer, &[], site);
                    }
                }
                hook(lift, "on_train_batch_end");
            });
            if is_automatic {
                for scheduler in &schedulers {
                    lift.call_object_method(*scheduler, "step", Args::none(site));
                }
            }
            lift.validate_module(model, &loaders, site);
            hook(lift, "on_validation_epoch_end");
            hook(lift, "on_train_epoch_end");
            hook(lift, "training_epoch_end");
            lift.save_module(trainer, model, &made, is_resumed, site);
        });
        hook(self, "on_train_end");
        hook(self, "on_fit_end");
    }

    /// The loaders passed to `fit`, or those of a data module or the model.
    fn loaders(&mut self, model: ObjectId, args: &Args<'a>) -> Loaders<'a> {
        let site = args.site;
        let data = args
            .name("datamodule")
            .or_else(|| args.get(1, "train_dataloaders"))
            .or_else(|| args.name("train_dataloader"))
            .cloned();
        let is_module =
            |lift: &mut Lift<'a>, id: &ObjectId| lift.hook(*id, "train_dataloader").is_some();
        let passed = data.as_ref().and_then(Value::as_object);
        let source =
            passed.filter(|id| is_module(self, id)).or_else(|| data.is_none().then_some(model));
        let Some(source) = source else {
            let validation = args.passed(2, "val_dataloaders").cloned();
            return Loaders { training: data.unwrap_or_default(), validation };
        };
        self.call_hook(source, "prepare_data", Vec::new(), site);
        self.call_hook(source, "setup", vec![Value::of(Shape::Text("fit"))], site);
        let training = self.call_hook(source, "train_dataloader", Vec::new(), site);
        Loaders {
            training: training.unwrap_or_default(),
            validation: self.call_hook(source, "val_dataloader", Vec::new(), site),
        }
    }

    fn validate_module(&mut self, model: ObjectId, loaders: &Loaders<'a>, site: Site) {
        let (Some(validation), Some(_)) =
            (&loaders.validation, self.hook(model, "validation_step"))
        else {
            return;
        };
        let root = self.heap.root(model);
        self.heap.set_mode(root, false);
        self.execution.no_grad += 1;
        self.libraries.evaluating += 1;
        self.begin_pass(validation, site);
        let counter = self.program.variable("batch_idx");
        self.program.compute(counter, "any", [], site);
        let batch = self.element(validation, counter, site);
        let index = Value::variable(counter);
        self.call_hook(model, "validation_step", vec![batch, index], site);
        self.libraries.evaluating -= 1;
        self.execution.no_grad -= 1;
        self.heap.set_mode(root, true);
    }

    /// Checkpoint at the end of an epoch: models, optimizers, schedules, callbacks, positions and
    /// additions by the module, but no generators and no plain attributes.
    fn save_module(
        &mut self,
        trainer: &Trainer<'a>,
        model: ObjectId,
        configured: &[ObjectId],
        is_resumed: bool,
        site: Site,
    ) {
        let writer = |id: &ObjectId| match self.heap.framework(*id)? {
            Framework::ModelCheckpoint { is_without_optimizers } => {
                Some((self.heap.object(*id).site, *is_without_optimizers))
            }
            _ => None,
        };
        let writers: Vec<(Site, bool)> = trainer.callbacks.iter().filter_map(writer).collect();
        let root = self.heap.root(model);
        if !is_resumed {
            let holdings = Holdings { objects: vec![root], ..Holdings::default() };
            self.output_models_in(&holdings, site);
            return;
        }
        let container = Container { is_closed: true, ..Container::default() };
        let added = self.make(Kind::Container(container), "checkpoint", site);
        self.call_hook(model, "on_save_checkpoint", vec![Value::object(added)], site);
        let mut holdings = self.heap.holdings(&Value::object(added), 4);
        for id in &trainer.callbacks {
            for name in ["state_dict", "on_save_checkpoint"] {
                if let Some(state) = self.call_hook(*id, name, Vec::new(), site) {
                    let of_callback = self.heap.holdings(&state, 4);
                    holdings.objects.extend(of_callback.objects);
                    holdings.variables.extend(of_callback.variables);
                }
            }
        }
        holdings.objects.push(root);
        self.program.hold_positions(&mut holdings);
        let writers = if writers.is_empty() { vec![(site, false)] } else { writers };
        for (site, is_without_optimizers) in writers {
            let mut holdings = holdings.clone();
            if !is_without_optimizers {
                holdings.objects.extend(configured);
            }
            self.note_save(holdings, None, site);
        }
    }

    /// Calls a method that a module inherits from Lightning; `None` for other methods.
    pub(super) fn call_lightning_method(
        &mut self,
        id: ObjectId,
        name: &str,
        args: &Args<'a>,
    ) -> Option<Value<'a>> {
        let site = args.site;
        if !self.heap.inherits(id, "pytorch_lightning.") {
            return None;
        }
        Some(match name {
            "optimizers" => match self.libraries.module_optimizers[..] {
                [one] => Value::object(one),
                ref several => {
                    Value::of(Shape::Tuple(several.iter().copied().map(Value::object).collect()))
                }
            },
            "manual_backward" => {
                let whole = self.heap.combine(args.all());
                self.backward(&whole, site);
                Value::constant()
            }
            _ if is_one_of(name, SILENT) => Value::constant(),
            _ => return None,
        })
    }
}
