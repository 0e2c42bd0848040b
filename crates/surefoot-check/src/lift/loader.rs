//! Iteration over data: draws at the start of a pass, and the effects of each batch.

use std::collections::BTreeMap;

use super::{
    GeneratorOrigin, Global, Kind, Lift, Loader, Models, ObjectId, Operand, Purpose, Sampler,
    Shape, Site, Statement, Value,
};

impl<'a> Lift<'a> {
    /// Effects of starting an iteration over a value.
    pub(super) fn begin_pass(&mut self, iterated: &Value<'a>, site: Site) {
        match &iterated.shape {
            Shape::Zip(parts) => {
                for part in parts.iter() {
                    self.begin_pass(part, site);
                }
            }
            Shape::Object(id) => {
                if let Kind::Loader(loader) = &self.heap.object(*id).kind {
                    let loader = loader.clone();
                    self.begin_epoch(*id, &loader, site);
                } else if let Some(pipeline) = self.heap.pipeline(*id) {
                    self.begin_pipeline(*id, &pipeline, site);
                }
            }
            _ => {}
        }
    }

    /// PyTorch draws a seed for its workers at every pass, whether there are any or not, then the
    /// order.
    fn begin_epoch(&mut self, id: ObjectId, loader: &Loader<'a>, site: Site) {
        if loader.is_opaque {
            return;
        }
        let generator = loader.generator.unwrap_or_else(|| self.global(Global::Torch));
        let base = self.draw(generator, Purpose::WorkerSeed, [], site);
        let made = self.heap.object(id).site;
        let sampler = loader.sampler.as_ref();
        let order = sampler.and_then(|sampler| self.order_of(sampler, loader, site));
        let mut operands = order.map_or_else(Vec::new, |order| order.operands);
        // `shuffle=True` and a sampler exclude each other in PyTorch; a script that passes both selects one.
        if loader.shuffles {
            let shuffled = self.draw(generator, Purpose::Order, [], made);
            operands.extend(shuffled.operands);
        }
        self.write_state(id, "order", operands, site);
        if loader.has_workers {
            let globals = self.workers_of(id, site);
            for generator in globals.values() {
                let (generator, operands) =
                    (self.heap.object(*generator).cell, base.operands.clone());
                self.program.emit(Statement::Seed { generator, operands, site });
            }
            if let Some(init) = &loader.init {
                let before = self.libraries.worker_globals.replace(globals);
                self.call_with(init.clone(), vec![Value::constant()], site);
                self.libraries.worker_globals = before;
            }
        }
    }

    fn order_of(
        &mut self,
        sampler: &Value<'a>,
        loader: &Loader<'a>,
        site: Site,
    ) -> Option<Value<'a>> {
        let id = sampler.as_object()?;
        match self.heap.object(id).kind.clone() {
            Kind::Sampler { order: Sampler::Random, generator, .. } => {
                let generator =
                    generator.or(loader.generator).unwrap_or_else(|| self.global(Global::Torch));
                let made = self.heap.object(id).site;
                Some(self.draw(generator, Purpose::Order, [], made))
            }
            // A batch sampler wraps another sampler.
            Kind::Sampler { from, .. } if from.as_object().is_some_and(|it| it != id) => {
                self.order_of(&from, loader, site)
            }
            Kind::Plain => {
                let order = self.call_hook(id, "__iter__", Vec::new(), site)?;
                Some(self.heap.data(&order))
            }
            _ => None,
        }
    }

    /// The generators of the processes of a loader.
    pub(super) fn workers_of(&mut self, id: ObjectId, site: Site) -> BTreeMap<Global, ObjectId> {
        if let Some(globals) = self.libraries.workers.get(&id) {
            return globals.clone();
        }
        let kind = |global| Kind::Generator(GeneratorOrigin::Worker(global));
        let all = [Global::Torch, Global::NumPy, Global::Python].into_iter();
        let globals: BTreeMap<Global, ObjectId> =
            all.map(|global| (global, self.make(kind(global), "worker", site))).collect();
        self.libraries.workers.insert(id, globals.clone());
        globals
    }

    /// One element of an iterable object.
    pub(super) fn element_of_object(&mut self, id: ObjectId, by: Operand, site: Site) -> Value<'a> {
        match self.heap.object(id).kind.clone() {
            Kind::Module { .. } | Kind::Optimizer { .. } => Value::object(id),
            Kind::Loader(loader) => {
                let index = Value::plain(vec![by, Operand::Variable(self.heap.object(id).cell)]);
                let before = (
                    self.libraries.worker_globals.take(),
                    self.libraries.worker_has_init,
                    self.libraries.worker_first,
                );
                if loader.has_workers && !loader.is_opaque {
                    self.libraries.worker_globals = Some(self.workers_of(id, site));
                    self.libraries.worker_has_init = loader.init.is_some();
                    self.libraries.worker_first =
                        u32::try_from(self.heap.objects.len()).unwrap_or(u32::MAX);
                }
                let sample = self.sample(&loader.dataset, &index, site);
                let batch = match &loader.collate {
                    Some(collate) => self.call_with(collate.clone(), vec![sample], site),
                    None => sample,
                };
                (
                    self.libraries.worker_globals,
                    self.libraries.worker_has_init,
                    self.libraries.worker_first,
                ) = before;
                batch
            }
            Kind::Dataset { .. } => self.sample(&Value::object(id), &Value::plain(vec![by]), site),
            Kind::Framework(_) => match self.heap.pipeline(id) {
                Some(pipeline) => self.element_of_pipeline(id, &pipeline, by, site),
                None => Value::plain(vec![by]),
            },
            Kind::Plain => {
                let names = ["__iter__", "__next__", "__getitem__"];
                let index = Value::plain(vec![by]);
                let Some((name, element)) = self.call_first_hook(id, names, &index, site) else {
                    return index;
                };
                match element.as_object() {
                    // `__iter__` may return the object itself, or another one.
                    Some(other) if self.heap.actual(other) == self.heap.actual(id) => index,
                    Some(other) if name == "__iter__" => self.element_of_object(other, by, site),
                    _ if matches!(
                        element.shape,
                        Shape::Partial(_) | Shape::Zip(_) | Shape::Iterator(_)
                    ) =>
                    {
                        self.element_by(&element, by, site)
                    }
                    _ => element,
                }
            }
            Kind::Container(container) => {
                match container.elements.iter().find(|it| !it.is_data()) {
                    Some(thing) => thing.clone(),
                    None => {
                        let models = container.elements.iter().map(|it| it.models);
                        let models = models.fold(Models::default(), Models::and);
                        Value::plain(vec![by, self.heap.state(id)]).with_models(models)
                    }
                }
            }
            _ => Value::plain(vec![by, self.heap.state(id)]),
        }
    }

    fn element_by(&mut self, iterated: &Value<'a>, by: Operand, site: Site) -> Value<'a> {
        match by {
            Operand::Variable(counter) => self.element(iterated, counter, site),
            _ => self.heap.data(iterated),
        }
    }

    /// A sample of a data set, after its transforms.
    fn sample(&mut self, dataset: &Value<'a>, index: &Value<'a>, site: Site) -> Value<'a> {
        let Some(id) = dataset.as_object() else {
            return self.heap.combine([dataset, index]);
        };
        self.libraries.sampling += 1;
        let sample = self.sample_of(id, dataset, index, site);
        self.libraries.sampling -= 1;
        sample
    }

    fn sample_of(
        &mut self,
        id: ObjectId,
        dataset: &Value<'a>,
        index: &Value<'a>,
        site: Site,
    ) -> Value<'a> {
        match self.heap.object(id).kind.clone() {
            Kind::Dataset { from, transforms, parts } => {
                let mut value = self.heap.combine([&from, index]);
                for part in parts {
                    if part != id {
                        let inner = self.sample(&Value::object(part), index, site);
                        value.depend_on(&self.heap.data(&inner));
                    }
                }
                for transform in transforms {
                    value = self.apply(transform, value, site);
                }
                value
            }
            Kind::Plain => {
                let names = ["__getitem__", "__iter__"];
                match self.call_first_hook(id, names, index, site) {
                    Some((_, mut value)) => {
                        if value.is_data() {
                            value.depend_on(index);
                        }
                        value
                    }
                    None => index.clone(),
                }
            }
            _ => self.heap.combine([dataset, index]),
        }
    }

    /// Calls the first of these methods that an object has; `__getitem__` receives the index.
    fn call_first_hook<const N: usize>(
        &mut self,
        id: ObjectId,
        names: [&'static str; N],
        index: &Value<'a>,
        site: Site,
    ) -> Option<(&'static str, Value<'a>)> {
        let class = self.heap.object(id).class.clone()?;
        let name = names.into_iter().find(|name| self.class_attribute(&class, name).is_some())?;
        let index = (name == "__getitem__").then(|| index.clone());
        Some((name, self.call_hook(id, name, index.into_iter().collect(), site)?))
    }
}
