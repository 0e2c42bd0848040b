//! Models and their layers.

use super::{
    Args, Global, Heap, Kind, Layer, Lift, ObjectId, Purpose, Shape, Site, Value, push_new,
};

impl<'a> Lift<'a> {
    pub(super) fn new_layer(&mut self, layer: Layer, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let shown = self.execution.statement.unwrap_or(site);
        let id = self.make_module(layer, shown);
        let cell = self.heap.object(id).cell;
        let is_pretrained =
            args.may_be_true(usize::MAX, "pretrained") || args.may_be_true(usize::MAX, "weights");
        if layer.draws_parameters && !is_pretrained {
            let drawn = self.draw_global(Global::Torch, Purpose::Parameters, [], shown);
            self.program.compute(cell, "initial", drawn.operands, shown);
        }
        let whole = self.heap.combine(args.all().filter(|it| it.is_data()));
        if !whole.operands.is_empty() {
            self.write_cell(id, whole.operands, shown);
        }
        self.absorb_each(id, args.all(), shown);
        Value::object(id)
    }

    /// Makes all models in values parts of another.
    pub(super) fn absorb_each<'v>(
        &mut self,
        id: ObjectId,
        values: impl Iterator<Item = &'v Value<'a>>,
        site: Site,
    ) where
        'a: 'v,
    {
        for value in values {
            self.absorb_all(id, value, site);
        }
    }

    /// Makes all models in a value parts of another.
    fn absorb_all(&mut self, id: ObjectId, value: &Value<'a>, site: Site) {
        match &value.shape {
            Shape::Object(part) if self.heap.is_module(*part) => self.absorb(id, *part, site),
            Shape::Unknown(unknown) if !self.heap.is_keras(id) => {
                let part = self.make_unknown_a_model(*unknown, value.operands.clone());
                self.absorb(id, part, site);
            }
            _ => {
                for part in self.heap.parts_of(value) {
                    self.absorb_all(id, &part, site);
                }
            }
        }
    }

    /// An independent copy.
    pub(super) fn copy(
        &mut self,
        original: Option<&Value<'a>>,
        averages: bool,
        site: Site,
    ) -> Value<'a> {
        let Some(value) = original else {
            return Value::constant();
        };
        let Some(id) = value.as_object() else {
            return match &value.shape {
                Shape::State(ids) => {
                    ids.first().map_or_else(|| value.clone(), |id| self.state_of(*id, site))
                }
                Shape::Plain => self.heap.data(value),
                _ => value.clone(),
            };
        };
        let id = self.heap.actual(id);
        let original = self.heap.object(id).clone();
        let copy = match original.kind {
            Kind::Module { layer, trains, .. } => {
                let copy = self.make_module(layer, site);
                if let Kind::Module { averages: it, trains: mode, .. } =
                    &mut self.heap.object_mut(copy).kind
                {
                    *it = averages;
                    *mode = trains;
                }
                copy
            }
            Kind::Plain
            | Kind::Loader(_)
            | Kind::Transform { .. }
            | Kind::Dataset { .. }
            | Kind::Framework(_)
            | Kind::Sampler { .. } => return value.clone(),
            kind => self.make(kind, "copy", site),
        };
        self.write_state(copy, "copy", [self.heap.state(id)], site);
        let object = self.heap.object_mut(copy);
        object.class = original.class;
        object.fields = original.fields;
        object.parts = original.parts;
        object.copy_of = Some(id);
        Value::object(copy)
    }
}

impl<'a> Heap<'a> {
    /// All models in values: as objects, parameters or computed results.
    pub(super) fn models_in<'v>(&self, values: impl Iterator<Item = &'v Value<'a>>) -> Vec<ObjectId>
    where
        'a: 'v,
    {
        let mut found = Vec::new();
        for value in values {
            self.gather_models(value, &mut found, 4);
        }
        found
    }

    fn gather_models(&self, value: &Value<'a>, found: &mut Vec<ObjectId>, depth: usize) {
        match &value.shape {
            Shape::Parameters(ids) => ids.iter().for_each(|id| push_new(found, self.root(*id))),
            Shape::Object(id) if self.is_module(*id) => push_new(found, self.root(*id)),
            _ if depth > 0 => {
                for part in self.parts_of(value) {
                    self.gather_models(&part, found, depth - 1);
                }
            }
            _ => {}
        }
        for root in self.roots_of(value.models) {
            push_new(found, root);
        }
    }
}
