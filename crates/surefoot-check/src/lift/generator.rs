//! Generators: creation, seeding, draws, state.

use super::{
    Args, Environment, Family, GeneratorOrigin, Global, Heap, Kind, Lift, ObjectId, Operand,
    Purpose, Seed, Shape, Site, Statement, Value,
};
use std::rc::Rc;

impl<'a> Lift<'a> {
    /// Seeds a generator.
    pub(super) fn seed(&mut self, generator: ObjectId, args: &Args<'a>) {
        let site = args.site;
        let whole = self.heap.combine(args.all());
        let generator = self.heap.actual(generator);
        let is_nothing = args.all().next().is_none_or(|it| it.is_none());
        let mut operands = whole.operands;
        if is_nothing {
            operands.push(self.entropy(site));
        }
        let cell = self.heap.object(generator).cell;
        let moment = self.program.moment();
        let seed = Seed { generator, site, operands: operands.clone(), moment };
        self.program.facts.seeds.push(seed);
        self.program.emit(Statement::Seed { generator: cell, operands, site });
        self.program.note_rewrite(cell, site);
    }

    pub(super) fn make_generator(&mut self, family: Family, args: &Args<'a>) -> ObjectId {
        let site = args.site;
        let id = self.make(Kind::Generator(GeneratorOrigin::Made(family)), "generator", site);
        let cell = self.heap.object(id).cell;
        // PyTorch generators start with a fixed seed, others with entropy.
        let passed = args.first().or_else(|| args.name("seed"));
        let is_passed = passed.is_some_and(|it| !it.is_none()) || family == Family::Torch;
        let mut operands = self.heap.combine(args.all()).operands;
        if !is_passed {
            operands.push(self.entropy(site));
        }
        self.program.emit(Statement::Seed { generator: cell, operands, site });
        id
    }

    fn entropy(&mut self, site: Site) -> Operand {
        Operand::Variable(self.read_environment(Environment::Entropy, "entropy", site))
    }

    /// Draws from the generator passed as an argument, or from the global one if there is no seed.
    pub(super) fn seeded_draw(&mut self, global: Global, name: &str, args: &Args<'a>) -> Value<'a> {
        let site = args.site;
        let whole = self.heap.combine(args.all());
        let seed = args.name("seed");
        let passed = seed.and_then(Value::as_object).or_else(|| self.heap.generator_of(args));
        let is_generator = |id: &ObjectId| matches!(self.heap.object(*id).kind, Kind::Generator(_));
        let generator = match passed.filter(is_generator) {
            Some(generator) => generator,
            None if seed.is_some_and(|it| !it.is_none()) => return whole,
            None => self.global(global),
        };
        let drawn = self.draw(generator, purpose_of(name), whole.operands, site);
        drawn.with_models(whole.models)
    }

    /// Copies the current state of an object.
    pub(super) fn state_of(&mut self, id: ObjectId, site: Site) -> Value<'a> {
        let models = self.heap.models_of(id);
        let kept = self.program.computed_as("state", "copy", [self.heap.state(id)], models, site);
        Value { shape: Shape::State(Rc::new([self.heap.actual(id)])), ..kept }
    }
}

impl<'a> Heap<'a> {
    /// The generator among the arguments.
    pub(super) fn generator_of(&self, args: &Args<'a>) -> Option<ObjectId> {
        let named =
            ["generator", "rng", "random_state"].into_iter().find_map(|name| args.name(name));
        let all = named.into_iter().chain(args.positional.iter());
        all.filter_map(Value::as_object)
            .find(|id| matches!(self.object(*id).kind, Kind::Generator(_)))
    }
}

/// Purpose of a draw, from the function's name.
pub(super) fn purpose_of(name: &str) -> Purpose {
    match name.rsplit('.').next() {
        Some("shuffle" | "permutation" | "randperm" | "permuted") => Purpose::Order,
        _ => Purpose::Values,
    }
}
