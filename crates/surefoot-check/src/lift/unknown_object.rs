//! Objects created by unknown libraries.
//!
//! Their use shows what they are: an object whose parameters an optimizer takes is a model, an
//! object whose `train` or `fit` is called may be a trainer. Both are reported, once per
//! callee.

use std::rc::Rc;

use super::Lift;
use super::object::Kind;
use super::value::{Arguments, ObjectId, Shape, UnknownId, Value};
use crate::calculus::{Operand, Site};
use crate::library::Layer;

/// An object created by an unknown library.
#[derive(Clone, Debug)]
pub(super) struct UnknownObject {
    /// Qualified name of the callee.
    pub callee: Rc<str>,
    pub site: Site,
    /// The model, once an optimizer has taken its parameters.
    pub model: Option<ObjectId>,
}

impl<'a> Lift<'a> {
    /// Calls an unknown library.
    pub(super) fn call_unknown(&mut self, name: &str, arguments: &Arguments<'a>) -> Value<'a> {
        let site = arguments.site;
        let name = name.trim_start_matches('.');
        let whole = self.heap.combine(arguments.all());
        let mut received: Vec<ObjectId> = Vec::new();
        for id in arguments.all().filter_map(Value::as_object) {
            let is_part = match &self.heap.object(id).kind {
                Kind::Module { .. } => self.heap.has_parameters(self.heap.root(id)),
                kind => matches!(
                    kind,
                    Kind::Optimizer { .. }
                        | Kind::Generator(_)
                        | Kind::Loader(_)
                        | Kind::Scheduler { .. }
                ),
            };
            if is_part {
                received.push(self.heap.root(id));
            }
        }
        for value in arguments.all() {
            if let Shape::Parameters(ids) = &value.shape {
                received.extend(ids.iter().map(|id| self.heap.root(*id)));
            }
        }
        if received.is_empty() && whole.models.is_empty() {
            return self.heap.new_unknown(name, whole, site);
        }
        // Pure computations on tensors are reported once per library.
        let package = name.split('.').next().unwrap_or(name);
        let callee = if received.is_empty() { package } else { name };
        let mut names: Vec<String> = received
            .iter()
            .filter_map(|id| self.heap.object(*id).name.clone())
            .map(|name| format!("`{name}`"))
            .collect();
        names.sort();
        names.dedup();
        let what = match (received.is_empty(), names.is_empty()) {
            (true, _) => "it receives what a model computed".to_owned(),
            (false, true) => "it receives the model".to_owned(),
            (false, false) => format!("it receives {}", names.join(", ")),
        };
        self.program.report_unknown(callee, site, &what, false);
        // The callee may train its arguments.
        if received.iter().any(|id| matches!(self.heap.object(*id).kind, Kind::Optimizer { .. })) {
            for root in self.heap.all_roots() {
                let cell = self.heap.object(root).cell;
                self.program.note_trained(cell);
            }
        }
        for id in received {
            self.write_cell(id, whole.operands.clone(), site);
        }
        whole
    }

    /// Calls a method of an unknown object; `None` for methods that any data has.
    pub(super) fn call_unknown_method(
        &mut self,
        id: UnknownId,
        base: &Value<'a>,
        name: &str,
        arguments: &Arguments<'a>,
    ) -> Option<Value<'a>> {
        let site = arguments.site;
        let callee = self.heap.unknown_objects[id.0].callee.clone();
        match name {
            // Parameters stand for the object itself; only an optimizer shows that it is a model.
            "parameters" | "named_parameters" | "to" | "cuda" | "cpu" | "eval" | "float"
            | "half" | "double" | "bfloat16" => Some(base.clone()),
            "train" | "fit" if is_trainer(&callee) => {
                self.program.report_unknown(
                    &format!("{callee}.{name}"),
                    site,
                    "it trains the model",
                    true,
                );
                None
            }
            "train" => Some(base.clone()),
            "backward" if !arguments.positional.is_empty() => {
                let whole = self.heap.combine(arguments.all());
                self.backward(&whole, site);
                self.call_unknown(&format!("{callee}.{name}"), arguments);
                Some(Value::constant())
            }
            // Returns its arguments, wrapped.
            "prepare" => {
                self.call_unknown(&format!("{callee}.{name}"), arguments);
                match &arguments.positional[..] {
                    [one] => Some(one.clone()),
                    all => Some(Value::tuple(all)),
                }
            }
            _ => None,
        }
    }

    /// Turns an unknown object into a model, because an optimizer takes its parameters.
    pub(super) fn make_unknown_a_model(
        &mut self,
        id: UnknownId,
        operands: Vec<Operand>,
    ) -> ObjectId {
        if let Some(model) = self.heap.unknown_objects[id.0].model {
            return model;
        }
        let UnknownObject { callee, site, .. } = self.heap.unknown_objects[id.0].clone();
        let layer = Layer { has_parameters: true, ..Layer::default() };
        let model = self.make_module(layer, site);
        self.write_state(model, "new", operands, site);
        self.heap.unknown_objects[id.0].model = Some(model);
        self.program.report_unknown(&callee, site, "it makes the model", false);
        model
    }
}

/// Returns true if the name of a class is that of a trainer.
fn is_trainer(callee: &str) -> bool {
    callee.ends_with("Trainer") || callee.ends_with("Learner")
}
