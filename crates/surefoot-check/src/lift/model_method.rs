//! Calls of models, and of their methods.

use std::rc::Rc;

use super::{Args, Global, Lift, ObjectId, Operand, Purpose, Shape, Value, is_one_of, library};

/// Methods that return parameters or buffers.
const PARAMETERS: &str = "parameters named_parameters buffers named_buffers trainable_parameters";

impl<'a> Lift<'a> {
    pub(super) fn call_model(
        &mut self,
        id: ObjectId,
        layer: library::Layer,
        args: Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        if layer.is_keras {
            return self.call_keras_model(id, layer, args);
        }
        let cell = self.heap.cell(id);
        let forward = self.hook(id, "forward").or_else(|| self.hook(id, "__call__"));
        if let Some(function) = forward {
            let mut result = self.enter(&function, args);
            let models = self.heap.models_of(id).and(result.models);
            result.mark(Operand::Variable(cell), models);
            return result;
        }
        let value = self.heap.combine(args.all());
        let trains = self.heap.trains(id);
        let mut value = self.apply_parts(id, layer, trains, value, site);
        let models = self.heap.models_of(id).and(value.models);
        value.mark(Operand::Variable(cell), models);
        value
    }

    pub(super) fn call_model_method(
        &mut self,
        id: ObjectId,
        name: &'a str,
        args: Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        let root = self.heap.root(id);
        if self.heap.is_keras(id)
            && let Some(value) = self.call_keras_method(id, name, &args)
        {
            return value;
        }
        if let Some(value) = self.call_lightning_method(id, name, &args) {
            return value;
        }
        match name {
            "train" | "eval" | "requires_grad_" | "to" | "cuda" | "cpu" | "half" | "float"
            | "double" | "bfloat16" | "type" | "share_memory" | "to_empty" | "xpu" | "compile" => {
                if matches!(name, "train" | "eval") {
                    let off = matches!(args.first().map(|it| &it.shape), Some(Shape::Bool(false)));
                    self.heap.set_mode(root, name == "train" && !off);
                }
                Value::object(id)
            }
            _ if is_one_of(name, PARAMETERS) => {
                let models = self.heap.models_of(id);
                Value::of(Shape::Parameters(Rc::new([root]))).with_models(models)
            }
            "zero_grad" => {
                self.clear_gradients(&[root], site);
                Value::constant()
            }
            "apply" => {
                if let Some(function) = args.positional.into_iter().next() {
                    self.call_with(function, vec![Value::object(id)], site);
                }
                Value::object(id)
            }
            "modules" | "children" | "named_modules" | "named_children" | "items" | "values" => {
                Value::object(id)
            }
            "register_buffer" | "register_parameter" => {
                if let (Some(name), Some(value)) = (
                    args.get(0, "name").and_then(Value::as_text).copied(),
                    args.positional.get(1).or_else(|| args.name("tensor")),
                ) {
                    self.register(id, name, value, site);
                }
                Value::constant()
            }
            "append" | "add_module" | "insert" | "extend" | "register_module" => {
                self.absorb_each(id, args.all(), site);
                Value::object(id)
            }
            "update_parameters" | "update" => {
                let whole = self.heap.combine(args.all());
                let cell = self.heap.object(root).cell;
                self.write_cell(id, whole.operands, site);
                if !self.program.loops.is_empty() {
                    self.program.note_trained(cell);
                }
                Value::constant()
            }
            "backward" => {
                let whole = self.heap.combine(args.all());
                self.backward(&whole, site);
                Value::constant()
            }
            "reset_parameters" | "init_weights" | "_init_weights" | "initialize"
            | "_reset_parameters" => {
                let drawn = self.draw_global(Global::Torch, Purpose::Parameters, [], site);
                self.write_cell(id, drawn.operands, site);
                Value::constant()
            }
            "no_sync" | "register_forward_hook" | "register_hook" | "hparams" => Value::constant(),
            _ => self.call_object(id, args),
        }
    }
}
