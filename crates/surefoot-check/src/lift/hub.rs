//! The trainer of Transformers, the accelerator of Accelerate, and environments of Gym.

use super::{
    Args, Family, Framework, Global, Hub, Kind, Layer, Lift, ObjectId, Operand, Purpose, Runner,
    Shape, Site, Value,
};

/// Generators that `set_seed` of Transformers and Accelerate seeds, and that their checkpoints hold.
pub(super) const SEEDED: [Global; 3] = [Global::Python, Global::NumPy, Global::Torch];

impl<'a> Lift<'a> {
    /// Calls something of Transformers, Accelerate or Gym.
    pub(super) fn call_hub(&mut self, call: Hub, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        match call {
            Hub::Trainer => {
                // The constructor seeds, with `args.seed`.
                for global in SEEDED {
                    let generator = self.global(global);
                    self.seed(generator, &Args::of(vec![Value::of(Shape::Settings)], site));
                }
                let model = args.get(0, "model").cloned().unwrap_or_default();
                let data = args.name("train_dataset").cloned().unwrap_or_default();
                let trainer = Framework::HubTrainer { model, data };
                Value::object(self.make_framework(trainer, "trainer", site))
            }
            Hub::Accelerator => {
                Value::object(self.make_framework(Framework::Accelerator, "accelerator", site))
            }
            Hub::Environment => {
                let generator = self.make_generator(Family::Environment, &Args::none(site));
                let id = self.make(Kind::State, "environment", site);
                self.write_state(id, "new", [], site);
                self.heap.object_mut(generator).owner = Some(id);
                self.heap.environments.insert(id, generator);
                Value::object(id)
            }
        }
    }

    /// Runs the loop of `Trainer.train`, which saves everything it needs to be resumed.
    pub(super) fn train_with_hub(&mut self, model: &Value<'a>, data: &Value<'a>, site: Site) {
        let model = match model.shape {
            Shape::Object(id) if self.heap.is_module(id) => id,
            Shape::Unknown(id) => self.make_unknown_a_model(id, model.operands.clone()),
            // Its base class is unknown.
            Shape::Object(id) => {
                let layer =
                    Layer { has_parameters: true, draws_parameters: true, ..Layer::default() };
                let statement = self.execution.statement.replace(self.heap.object(id).site);
                let made = self.new_layer(layer, &Args::none(site)).as_object();
                self.execution.statement = statement;
                made.unwrap_or(id)
            }
            // The name of a model on the hub.
            _ => self
                .make_module(Layer { has_parameters: true, draws: true, ..Layer::default() }, site),
        };
        let root = self.heap.root(model);
        let kind = Kind::Optimizer { models: vec![root], tensors: Vec::new() };
        let optimizer = self.make(kind, "optimizer", site);
        self.write_state(optimizer, "new", [], site);
        self.run_library_loop(site, Runner::Hub, "epoch", false, |lift, _| {
            lift.run_library_loop(site, Runner::Hub, "batch", true, |lift, counter| {
                let batch = lift.element(data, counter, site);
                let loss = lift.call_object(model, Args::of(vec![batch], site));
                let loss = lift.heap.data(&loss);
                lift.clear_gradients(&[root], site);
                lift.backward(&loss, site);
                lift.optimizer_step(optimizer, &[], site);
            });
        });
    }

    /// Calls a method of an accelerator.
    pub(super) fn call_accelerator_method(&mut self, name: &str, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        match name {
            "prepare" | "register_for_checkpointing" => {
                let passed = Value::tuple(&args.positional[..]);
                self.libraries.prepared.extend(self.heap.objects_in(&passed));
                match &args.positional[..] {
                    [one] => one.clone(),
                    _ => passed,
                }
            }
            _ if name.starts_with("prepare_") || name == "unwrap_model" => args.first_or_default(),
            "backward" => {
                let loss = self.heap.combine(args.all());
                self.backward(&loss, site);
                Value::constant()
            }
            "save" => {
                self.save(args.first(), args);
                Value::none()
            }
            "save_state" => {
                let prepared = self.libraries.prepared.iter().copied().map(Value::object);
                let prepared = Value::of(Shape::Tuple(prepared.collect()));
                let mut holdings = self.heap.holdings(&prepared, 2);
                let globals = SEEDED.iter().filter_map(|it| self.heap.globals.get(it));
                holdings.objects.extend(globals);
                // Scripts keep the position in the name of the directory.
                self.program.hold_positions(&mut holdings);
                holdings.is_open = false;
                if !self.program.loops.is_empty() {
                    self.note_save(holdings, None, site);
                }
                Value::none()
            }
            "load_state" => {
                let moment = self.program.moment();
                let load = self.program.note_load(Vec::new(), None, site, moment);
                for id in self.libraries.prepared.clone() {
                    self.program.note_restore(self.heap.cell(id), Some(id), load, site);
                }
                Value::none()
            }
            "gather" | "gather_for_metrics" | "reduce" | "pad_across_processes" => {
                self.heap.combine(args.all())
            }
            _ => Value::constant(),
        }
    }

    /// Calls a method of an environment or of its action space.
    pub(super) fn call_environment_method(
        &mut self,
        id: ObjectId,
        generator: ObjectId,
        name: &str,
        args: &Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        let cell = Operand::Variable(self.heap.object(id).cell);
        match name {
            "seed" => {
                self.seed(generator, args);
                Value::none()
            }
            "reset" => {
                if let Some(seed) = args.passed(usize::MAX, "seed") {
                    self.seed(generator, &Args::of(vec![seed.clone()], site));
                }
                let drawn = self.draw(generator, Purpose::Values, [], site);
                self.write_state(id, "reset", drawn.operands, site);
                Value::plain(vec![cell])
            }
            "step" => {
                let mut operands = self.heap.combine(args.all()).operands;
                operands.push(cell);
                let drawn = self.draw(generator, Purpose::Values, operands, site);
                self.write_cell(id, drawn.operands, site);
                Value::plain(vec![cell])
            }
            "sample" => self.draw(generator, Purpose::Values, [], site),
            "close" | "render" => Value::none(),
            _ => self.heap.state_and(id, args),
        }
    }
}
