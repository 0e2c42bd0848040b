//! Things that a library made which is not known.
//!
//! Nothing is known of them until the script says what they are by how it uses them: what gives an
//! optimizer its parameters is a model, what is told to train is a trainer. Both are told, once for each
//! callee.

use std::rc::Rc;

use ruff_text_size::TextRange;

use super::Lift;
use super::facts::Unknown;
use super::value::{Arguments, ObjectId, Shape, StrangerId, Value};
use crate::calculus::{Operand, Site};
use crate::library::Layer;

/// Something that a library made which is not known.
#[derive(Clone, Debug)]
pub(super) struct Stranger {
    /// What was called.
    callee: Rc<str>,
    /// Where.
    site: Site,
    /// The model it turned out to be.
    model: Option<ObjectId>,
}

impl<'a> Lift<'a> {
    /// What a call of an unknown library gives, made of `whole`.
    pub(super) fn new_stranger(&mut self, callee: &str, whole: Value<'a>, site: Site) -> Value<'a> {
        let id = StrangerId(self.strangers.len());
        self.strangers.push(Stranger {
            callee: callee.into(),
            site,
            model: None,
        });
        Value {
            shape: Shape::Stranger(id),
            ..whole
        }
    }

    /// The model that something unknown turned out to be.
    pub(super) fn recognized(&self, id: StrangerId) -> Option<ObjectId> {
        self.strangers[id.0].model
    }

    /// Calls a method of something unknown; nothing if it is one as any data has.
    pub(super) fn call_stranger(
        &mut self,
        id: StrangerId,
        base: &Value<'a>,
        name: &str,
        arguments: &Arguments<'a>,
        range: TextRange,
    ) -> Option<Value<'a>> {
        let callee = self.strangers[id.0].callee.clone();
        match name {
            // Its parameters are not told from it: many ask for them, and only an optimizer trains them.
            "parameters" | "named_parameters" | "to" | "cuda" | "cpu" | "eval" | "float"
            | "half" | "double" | "bfloat16" => Some(base.clone()),
            "train" | "fit" if is_trainer(&callee) => {
                let site = self.site(range);
                self.tell_unknown(
                    &format!("{callee}.{name}"),
                    site,
                    "it trains the model",
                    true,
                );
                None
            }
            "train" => Some(base.clone()),
            "backward" if !arguments.positional.is_empty() => {
                let whole = self.combine(arguments.all());
                let site = self.site(range);
                self.backward(&whole, site);
                self.call_unknown(&format!("{callee}.{name}"), arguments, range);
                Some(Value::constant())
            }
            // It gives back what it is given, wrapped.
            "prepare" => {
                self.call_unknown(&format!("{callee}.{name}"), arguments, range);
                match &arguments.positional[..] {
                    [one] => Some(one.clone()),
                    all => Some(Value::of(Shape::Tuple(all.into()))),
                }
            }
            _ => None,
        }
    }

    /// Something unknown has parameters for an optimizer: it is a model.
    pub(super) fn recognize(&mut self, id: StrangerId, operands: Vec<Operand>) -> ObjectId {
        if let Some(model) = self.strangers[id.0].model {
            return model;
        }
        let Stranger { callee, site, .. } = self.strangers[id.0].clone();
        let layer = Layer {
            has_parameters: true,
            ..Layer::default()
        };
        let model = self.make_module(layer, site);
        let cell = self.object(model).cell;
        self.compute(cell, "new", operands, site);
        self.strangers[id.0].model = Some(model);
        self.tell_unknown(&callee, site, "it makes the model", false);
        model
    }

    /// Tells that something unknown takes part in the training, once for each callee.
    pub(super) fn tell_unknown(&mut self, callee: &str, site: Site, part: &str, trains: bool) {
        if self.known_unknowns.insert(callee.to_owned()) {
            self.facts.unknown.push(Unknown {
                callee: callee.to_owned(),
                site,
                part: part.to_owned(),
                trains,
            });
        }
    }
}

/// Whether a class trains what it is given, by its name.
fn is_trainer(callee: &str) -> bool {
    callee.ends_with("Trainer") || callee.ends_with("Learner")
}
