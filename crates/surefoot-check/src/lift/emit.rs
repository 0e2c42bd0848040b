//! Statements of the program that is written.

use ruff_text_size::TextRange;

use super::Lift;
use super::facts::{Draw, Purpose, Read, Unsteady};
use super::value::{ObjectId, Shape, Value};
use crate::Place;
use crate::calculus::{Operand, Site, Statement, Symbol, Variable};
use crate::library::{Environment, Global, Layer};

impl<'a> Lift<'a> {
    /// Where something of the current file is.
    pub(super) fn site(&mut self, range: TextRange) -> Site {
        let file = match self.calls.last() {
            Some(call) => call.file,
            None => self.frame(self.current).file,
        };
        let site = Site(u32::try_from(self.facts.sites.len()).unwrap_or(u32::MAX));
        self.facts.sites.push(Place { file, range: range.to_std_range() });
        site
    }

    pub(super) fn emit(&mut self, statement: Statement) {
        self.emitted += 1;
        if let Some(block) = self.blocks.last_mut() {
            block.push(statement);
        }
    }

    /// The symbol of a function, a constant or a thing that is read.
    pub(super) fn function(&mut self, name: &str) -> Symbol {
        if let Some(symbol) = self.functions.get(name) {
            return *symbol;
        }
        let symbol = self.program.symbol(name);
        self.functions.insert(name.to_owned(), symbol);
        symbol
    }

    /// `target := name(operands)`.
    pub(super) fn compute(
        &mut self,
        target: Variable,
        name: &str,
        operands: Vec<Operand>,
        site: Site,
    ) {
        let function = self.function(name);
        self.emit(Statement::Compute { target, function, operands, site });
    }

    /// A draw from a generator; the value depends on `operands` too.
    pub(super) fn draw(
        &mut self,
        generator: ObjectId,
        purpose: Purpose,
        operands: Vec<Operand>,
        site: Site,
    ) -> Value<'a> {
        let target = self.program.variable("drawn");
        let cell = self.object(generator).cell;
        let evaluation = self.is_evaluation().then(|| self.evaluation_site(site));
        let moment = self.moment();
        let loops = self.loops.clone();
        let generator = self.actual(generator);
        let in_worker = self.worker_globals.is_some();
        let is_copied = in_worker
            && !self.worker_has_init
            && generator.0 < self.worker_first
            && self.is_made(generator);
        self.facts.draws.push(Draw {
            generator,
            site,
            purpose,
            loops,
            evaluation,
            in_worker,
            is_copied,
            is_probe: false,
            target,
            moment,
        });
        self.emit(Statement::Draw { target, generator: cell, operands, site });
        Value::plain(vec![Operand::Variable(target)])
    }

    /// A value that another execution would find different.
    pub(super) fn read_environment(
        &mut self,
        what: Environment,
        call: &str,
        site: Site,
    ) -> Variable {
        let target = self.program.variable("read");
        let symbol = self.function(call);
        let in_worker = self.worker_globals.is_some();
        self.facts.reads.push(Read {
            what,
            site,
            call: call.to_owned(),
            taken_at: None,
            variable: target,
            in_worker,
        });
        self.emit(Statement::Read { target, what: symbol, site });
        target
    }

    /// Notes where the order of something is made use of.
    pub(super) fn note_taken(&mut self, value: &Value<'a>, range: TextRange) {
        match &value.shape {
            Shape::Unordered(_, order) => {
                let site = self.site(range);
                if let Some(read) = self.facts.reads.iter_mut().find(|read| read.variable == *order)
                {
                    read.taken_at.get_or_insert(site);
                }
            }
            Shape::Zip(parts) => {
                for part in parts.iter() {
                    self.note_taken(part, range);
                }
            }
            _ => {}
        }
    }

    /// An operation that may give other bits for the same input.
    pub(super) fn unsteady(
        &mut self,
        operation: &'static str,
        operands: Vec<Operand>,
        site: Site,
    ) -> Vec<Operand> {
        if !self.facts.uses_cuda || self.facts.asks_for_determinism {
            return operands;
        }
        let target = self.program.variable("unsteady");
        let function = self.function(operation);
        self.facts.unsteady.push(Unsteady { operation, site });
        self.emit(Statement::Nondeterministic { target, function, operands, site });
        vec![Operand::Variable(target)]
    }

    /// What a layer does to its input.
    pub(super) fn apply_layer(
        &mut self,
        layer: Layer,
        global: Global,
        trains: bool,
        mut value: Value<'a>,
        site: Site,
    ) -> Value<'a> {
        if layer.draws && trains {
            let generator = self.global(global);
            let drawn = self.draw(generator, Purpose::Layer, value.operands.clone(), site);
            value.depend_on(&drawn);
        }
        if let Some(operation) = layer.nondeterministic
            && trains
        {
            value.operands = self.unsteady(operation, std::mem::take(&mut value.operands), site);
        }
        value
    }
}
