//! Calls of models, and of their methods.

use std::rc::Rc;

use super::Lift;
use super::facts::Purpose;
use super::object::Kind;
use super::value::{Arguments, ObjectId, Shape, Value};
use crate::calculus::Operand;
use crate::library::{self, Global};

impl<'a> Lift<'a> {
    pub(super) fn call_model(
        &mut self,
        id: ObjectId,
        layer: library::Layer,
        arguments: Arguments<'a>,
    ) -> Value<'a> {
        let site = arguments.site;
        if layer.is_keras {
            return self.call_keras_model(id, layer, arguments);
        }
        let cell = self.heap.cell(id);
        let forward = self.heap.object(id).class.clone().and_then(|class| {
            self.class_attribute(&class, "forward")
                .or_else(|| self.class_attribute(&class, "__call__"))
        });
        if let Some(Value { shape: Shape::Function(function), .. }) = forward {
            let bound = self.bound_method(&function, id);
            let mut result = self.enter(&bound, arguments);
            let models = self.heap.models_of(id).and(result.models);
            result.mark(Operand::Variable(cell), models);
            return result;
        }
        let mut value = self.heap.combine(arguments.all());
        let parts = self.heap.object(id).parts.clone();
        if parts.is_empty() || parts.len() > 64 {
            let trains = self.heap.trains(id);
            value = self.apply_layer(layer, Global::Torch, trains, value, site);
            if layer.keeps_statistics && trains {
                let operands = value.operands.clone();
                self.write_cell(id, operands, site);
            }
        } else {
            for part in parts {
                let arguments = Arguments::of(vec![value], site);
                let result = self.call_object(part, arguments);
                value = self.heap.data(&result);
            }
        }
        let models = self.heap.models_of(id).and(value.models);
        value.mark(Operand::Variable(cell), models);
        value
    }

    pub(super) fn call_model_method(
        &mut self,
        id: ObjectId,
        name: &'a str,
        arguments: Arguments<'a>,
    ) -> Value<'a> {
        let site = arguments.site;
        let root = self.heap.root(id);
        if self.heap.is_keras(id)
            && let Some(value) = self.call_keras_method(id, name, &arguments)
        {
            return value;
        }
        if let Some(value) = self.call_lightning_method(id, name, &arguments) {
            return value;
        }
        match name {
            "train" | "eval" | "requires_grad_" | "to" | "cuda" | "cpu" | "half" | "float"
            | "double" | "bfloat16" | "type" | "share_memory" | "to_empty" | "xpu" | "compile" => {
                if matches!(name, "train" | "eval") {
                    let on = name == "train"
                        && !matches!(
                            arguments.first().map(|it| &it.shape),
                            Some(Shape::Bool(false))
                        );
                    if let Kind::Module { trains, .. } = &mut self.heap.object_mut(root).kind {
                        *trains = on;
                    }
                }
                Value::object(id)
            }
            "parameters"
            | "named_parameters"
            | "buffers"
            | "named_buffers"
            | "trainable_parameters" => Value {
                shape: Shape::Parameters(Rc::new([root])),
                operands: Vec::new(),
                models: self.heap.models_of(id),
            },
            "zero_grad" => {
                self.clear_gradients(&[root], site);
                Value::constant()
            }
            "apply" => {
                if let Some(function) = arguments.positional.into_iter().next() {
                    self.call_value(function, Arguments::of(vec![Value::object(id)], site));
                }
                Value::object(id)
            }
            "modules" | "children" | "named_modules" | "named_children" | "items" | "values" => {
                Value::object(id)
            }
            "register_buffer" | "register_parameter" => {
                if let (Some(name), Some(value)) = (
                    arguments.get(0, "name").and_then(Value::as_text).copied(),
                    arguments.positional.get(1).or_else(|| arguments.name("tensor")),
                ) {
                    self.register(id, name, value, site);
                }
                Value::constant()
            }
            "append" | "add_module" | "insert" | "extend" | "register_module" => {
                for value in arguments.all() {
                    self.absorb_all(id, value, site);
                }
                Value::object(id)
            }
            "update_parameters" | "update" => {
                let whole = self.heap.combine(arguments.all());
                let cell = self.heap.object(root).cell;
                self.write_cell(id, whole.operands, site);
                if !self.program.loops.is_empty() {
                    self.program.note_trained(cell);
                }
                Value::constant()
            }
            "backward" => {
                let whole = self.heap.combine(arguments.all());
                self.backward(&whole, site);
                Value::constant()
            }
            "reset_parameters" | "init_weights" | "_init_weights" | "initialize"
            | "_reset_parameters" => {
                let generator = self.global(Global::Torch);
                let drawn = self.draw(generator, Purpose::Parameters, Vec::new(), site);
                self.write_cell(id, drawn.operands, site);
                Value::constant()
            }
            "no_sync" | "register_forward_hook" | "register_hook" | "hparams" => Value::constant(),
            _ => self.call_object(id, arguments),
        }
    }
}
