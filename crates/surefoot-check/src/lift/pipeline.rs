//! Pipelines of `tf.data`.

use super::{
    Args, Environment, Family, Framework, Global, Heap, Lift, ObjectId, Operand, Purpose, Shape,
    Site, Value, Variable, is_one_of,
};

/// Methods that select or group elements.
const SELECTIONS: &str = "batch padded_batch prefetch repeat take skip shard filter unbatch window rebatch \
    snapshot take_while ragged_batch ignore_errors bucket_by_sequence_length batch_and_drop_remainder";

/// A `tf.data` pipeline: source of the elements and stages.
#[derive(Clone, Debug)]
pub(super) struct Pipeline<'a> {
    /// Values, or other pipelines.
    source: Value<'a>,
    /// Stages, in order.
    stages: Vec<Stage<'a>>,
}

/// A stage of a pipeline.
#[derive(Clone, Debug)]
enum Stage<'a> {
    /// Shuffles the elements, at each pass.
    Shuffle {
        /// Generator of the order.
        generator: ObjectId,
        site: Site,
    },
    /// Applies a function to each element.
    Map(Value<'a>),
    /// Elements arrive in order of completion.
    Arrival(Variable),
    /// Numbers the elements.
    Enumerate,
    /// Elements depend on this too.
    Values(Value<'a>),
}

impl<'a> Lift<'a> {
    /// A pipeline from the arguments of the call that makes it.
    pub(super) fn new_pipeline(&mut self, name: &str, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let names = ["tensors", "filenames", "generator", "datasets", "elems"];
        let named = || names.into_iter().find_map(|name| args.name(name));
        let first = args.first().or_else(named);
        let source = match first {
            // A function that yields elements.
            Some(value) if name.ends_with("from_generator") => {
                let called = self.call_with(value.clone(), Vec::new(), site);
                match called.shape {
                    Shape::Partial(_) => called,
                    _ => self.heap.data(&called),
                }
            }
            Some(value) => value.clone(),
            None => Value::constant(),
        };
        let mut stages = Vec::new();
        if name.ends_with("list_files") && !is_false(args.get(1, "shuffle")) {
            let seed = args.get(2, "seed");
            stages.push(self.shuffle_stage(seed, true, site));
        }
        if name.starts_with("tensorflow_datasets") && args.may_be_true(usize::MAX, "shuffle_files")
        {
            stages.push(self.shuffle_stage(None, true, site));
        }
        self.make_pipeline(source, stages, site)
    }

    /// Batches from the files of a directory, shuffled by default.
    pub(super) fn new_directory(&mut self, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let mut stages = Vec::new();
        if !is_false(args.name("shuffle")) {
            stages.push(self.shuffle_stage(args.name("seed"), true, site));
        }
        let source = self.heap.combine(args.all());
        self.make_pipeline(source, stages, site)
    }

    fn make_pipeline(
        &mut self,
        source: Value<'a>,
        stages: Vec<Stage<'a>>,
        site: Site,
    ) -> Value<'a> {
        let pipeline = Framework::Pipeline(Pipeline { source, stages });
        Value::object(self.make_framework(pipeline, "dataset", site))
    }

    /// A shuffle. It has a generator of its own, with a seed that is drawn from the global generator when the
    /// stage is created unless it is passed: passes over other pipelines do not change its order.
    fn shuffle_stage(
        &mut self,
        seed: Option<&Value<'a>>,
        reshuffles: bool,
        site: Site,
    ) -> Stage<'a> {
        let seed = match seed.filter(|it| !it.is_none()) {
            Some(seed) => self.heap.data(seed),
            None => self.draw_global(Global::TensorFlow, Purpose::Order, [], site),
        };
        if !reshuffles {
            return Stage::Values(seed);
        }
        let generator = self.make_generator(Family::Pipeline, &Args::of(vec![seed], site));
        self.heap.object_mut(generator).name = Some("shuffle".to_owned());
        Stage::Shuffle { generator, site }
    }

    /// Calls a method of a pipeline; most add a stage.
    pub(super) fn call_pipeline_method(
        &mut self,
        id: ObjectId,
        pipeline: Pipeline<'a>,
        name: &str,
        args: &Args<'a>,
    ) -> Value<'a> {
        let site = args.site;
        let mut stages = pipeline.stages;
        let mut source = pipeline.source;
        match name {
            "shuffle" => {
                let reshuffles = !is_false(args.get(2, "reshuffle_each_iteration"));
                stages.push(self.shuffle_stage(args.get(1, "seed"), reshuffles, site));
            }
            "map" | "flat_map" | "interleave" | "apply" => {
                if let Some(function) = args.get(0, "map_func") {
                    stages.push(Stage::Map(function.clone()));
                }
                if is_false(args.name("deterministic")) {
                    let site = self.keyword_site("deterministic", args);
                    stages.push(self.arrival_stage(name, site));
                }
            }
            "with_options" => {
                let options = args.first().and_then(Value::as_object);
                let is_loose = options.is_some_and(|id| {
                    let mut fields = ["deterministic", "experimental_deterministic"].into_iter();
                    fields.any(|field| is_false(self.heap.field(id, field).as_ref()))
                });
                if is_loose {
                    stages.push(self.arrival_stage(name, site));
                }
            }
            // Later passes repeat the first one.
            "cache" => {
                for stage in &mut stages {
                    if let Stage::Shuffle { generator, site } = *stage {
                        let order = self.draw(generator, Purpose::Order, [], site);
                        *stage = Stage::Values(order);
                    }
                }
            }
            "enumerate" => stages.push(Stage::Enumerate),
            "concatenate" | "zip" => {
                let other = args.first().cloned();
                source =
                    Value::of(Shape::Tuple([Some(source), other].into_iter().flatten().collect()));
            }
            "as_numpy_iterator" => return Value::object(id),
            _ if is_one_of(name, SELECTIONS) => {
                let values = self.heap.combine(args.all().filter(|it| it.is_data()));
                if !values.operands.is_empty() {
                    stages.push(Stage::Values(values));
                }
            }
            "reduce" => return self.heap.state_and(id, args),
            _ => return Value::constant(),
        }
        self.make_pipeline(source, stages, site)
    }

    fn arrival_stage(&mut self, call: &str, site: Site) -> Stage<'a> {
        let call = format!("tf.data.Dataset.{call}");
        Stage::Arrival(self.read_environment(Environment::Arrival, &call, site))
    }

    /// Effects of starting an iteration over a pipeline.
    pub(super) fn begin_pipeline(&mut self, id: ObjectId, pipeline: &Pipeline<'a>, site: Site) {
        for part in self.heap.objects_in(&pipeline.source) {
            if part != self.heap.actual(id) {
                self.begin_pass(&Value::object(part), site);
            }
        }
        let mut operands = Vec::new();
        for stage in &pipeline.stages {
            if let Stage::Shuffle { generator, site } = stage {
                let order = self.draw(*generator, Purpose::Order, [], *site);
                operands.extend(order.operands);
            }
        }
        self.write_state(id, "order", operands, site);
    }

    /// One element of a pipeline.
    pub(super) fn element_of_pipeline(
        &mut self,
        id: ObjectId,
        pipeline: &Pipeline<'a>,
        by: Operand,
        site: Site,
    ) -> Value<'a> {
        let cell = Operand::Variable(self.heap.object(id).cell);
        let mut value = self.element_of_source(&pipeline.source, [by, cell], site);
        for stage in &pipeline.stages {
            value = match stage {
                Stage::Shuffle { .. } => value,
                Stage::Map(function) => {
                    let positional = match &value.shape {
                        Shape::Tuple(parts) => parts.to_vec(),
                        _ => vec![value.clone()],
                    };
                    let result = self.call_with(function.clone(), positional, site);
                    self.flattened(result, by, site)
                }
                Stage::Arrival(order) => self.heap.joined(value, &Value::variable(*order)),
                Stage::Values(more) => {
                    self.heap.joined(value, &Value::plain(more.operands.clone()))
                }
                Stage::Enumerate => Value::tuple([Value::plain(vec![by]), value]),
            };
        }
        // Elements are copied, so that unpacking them later sees the value at this point.
        match &value.shape {
            Shape::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.settled_element(part, site));
                Value::of(Shape::Tuple(parts.collect()))
            }
            _ => self.settled_element(&value, site),
        }
    }

    fn settled_element(&mut self, value: &Value<'a>, site: Site) -> Value<'a> {
        let data = self.heap.data(value);
        if data.operands.len() < 2 {
            return data;
        }
        self.program.computed("element", data.operands, data.models, site)
    }

    fn element_of_source(&mut self, source: &Value<'a>, by: [Operand; 2], site: Site) -> Value<'a> {
        match (&source.shape, by[0]) {
            (Shape::Tuple(parts), _) => {
                let parts = parts.iter().map(|part| self.element_of_source(part, by, site));
                Value::of(Shape::Tuple(parts.collect()))
            }
            (Shape::Object(part), counter) if let Some(pipeline) = self.heap.pipeline(*part) => {
                self.element_of_pipeline(*part, &pipeline, counter, site)
            }
            (Shape::Partial(_) | Shape::Function(_), Operand::Variable(counter)) => {
                self.element(source, counter, site)
            }
            (Shape::Partial(_) | Shape::Function(_), _) => Value::constant(),
            _ => {
                let mut data = self.heap.data(source);
                data.depend_on(&Value::plain(by.to_vec()));
                data
            }
        }
    }

    /// An element of a pipeline returned by a function, for `flat_map` and `interleave`.
    fn flattened(&mut self, value: Value<'a>, by: Operand, site: Site) -> Value<'a> {
        match value.as_object().and_then(|id| Some((id, self.heap.pipeline(id)?))) {
            Some((id, pipeline)) => {
                self.begin_pipeline(id, &pipeline, site);
                self.element_of_pipeline(id, &pipeline, by, site)
            }
            None => value,
        }
    }
}

impl<'a> Heap<'a> {
    /// The pipeline that an object is.
    pub(super) fn pipeline(&self, id: ObjectId) -> Option<Pipeline<'a>> {
        match self.framework(id)? {
            Framework::Pipeline(pipeline) => Some(pipeline.clone()),
            _ => None,
        }
    }
}

/// Returns true if an argument is passed and certainly false.
fn is_false(value: Option<&Value<'_>>) -> bool {
    value.is_some_and(|it| matches!(it.shape, Shape::Bool(false)))
}
