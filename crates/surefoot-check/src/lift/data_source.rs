//! Creation of data loaders and data sets.

use std::rc::Rc;

use super::{Args, Kind, Lift, Loader, ObjectId, Shape, Value};

impl<'a> Lift<'a> {
    /// Creates a `DataLoader`.
    pub(super) fn new_loader(&mut self, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let has_workers =
            args.get(5, "num_workers").is_some_and(|it| !matches!(it.shape, Shape::Int(0)));
        let sampler = args.get(3, "sampler").or_else(|| args.get(4, "batch_sampler"));
        let loader = Loader {
            dataset: args.get(0, "dataset").cloned().unwrap_or_default(),
            // Settings and computed flags may be true: `sampler is None`.
            shuffles: args.may_be_true(2, "shuffle"),
            sampler: sampler.filter(|it| !it.is_none()).cloned(),
            generator: self.heap.generator_of(args),
            has_workers,
            init: args.passed(9, "worker_init_fn").cloned(),
            collate: args.get(6, "collate_fn").filter(|it| !it.is_data()).cloned(),
            is_opaque: false,
        };
        self.make_new(Kind::Loader(Rc::new(loader)), "loader", [], site)
    }

    /// A data set of a library.
    pub(super) fn new_dataset(&mut self, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let named = ["transform", "transforms", "target_transform"];
        let mut transforms: Vec<Value<'a>> =
            named.into_iter().filter_map(|name| args.name(name)).cloned().collect();
        let is_transform = |value: &&Value<'a>| match &value.shape {
            Shape::Object(id) => matches!(self.heap.object(*id).kind, Kind::Transform { .. }),
            Shape::Function(_) | Shape::Partial(_) => true,
            _ => false,
        };
        transforms.extend(args.positional.iter().filter(is_transform).cloned());
        let is_dataset = |id: &ObjectId| {
            let object = self.heap.object(*id);
            matches!(object.kind, Kind::Dataset { .. })
                || (matches!(object.kind, Kind::Plain) && object.class.is_some())
        };
        let mut parts = Vec::new();
        for value in &args.positional {
            let inner = self.heap.parts_of(value);
            let objects = inner.iter().chain([value]).filter_map(Value::as_object);
            parts.extend(objects.filter(is_dataset));
        }
        let from = self.heap.combine(args.all());
        let operands = from.operands.clone();
        self.make_new(Kind::Dataset { from, transforms, parts }, "dataset", operands, site)
    }
}
