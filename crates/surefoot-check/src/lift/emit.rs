//! Draws, reads and layers as statements of the program.

use ruff_text_size::TextRange;

use super::{
    Draw, Environment, FileId, Global, Layer, Lift, ObjectId, Operand, Place, Purpose, Read, Shape,
    Site, Statement, Value, Variable,
};

impl<'a> Lift<'a> {
    /// Creates a site for a range of the current file.
    pub(super) fn site(&mut self, range: TextRange) -> Site {
        let file = self.file();
        let site = Site(u32::try_from(self.program.facts.sites.len()).unwrap_or(u32::MAX));
        self.program.facts.sites.push(Place { file, range: range.to_std_range() });
        site
    }

    /// The file of the code being executed.
    pub(super) fn file(&self) -> FileId {
        let call = self.execution.calls.last();
        call.map_or_else(|| self.scope.frame(self.scope.current).file, |call| call.file)
    }

    /// Draws from a global generator.
    pub(super) fn draw_global(
        &mut self,
        global: Global,
        purpose: Purpose,
        operands: impl IntoIterator<Item = Operand>,
        site: Site,
    ) -> Value<'a> {
        let generator = self.global(global);
        self.draw(generator, purpose, operands, site)
    }

    /// Draws from a generator; the value also depends on `operands`.
    pub(super) fn draw(
        &mut self,
        generator: ObjectId,
        purpose: Purpose,
        operands: impl IntoIterator<Item = Operand>,
        site: Site,
    ) -> Value<'a> {
        let target = self.program.variable("drawn");
        let cell = self.heap.object(generator).cell;
        let evaluation = self.is_evaluation().then(|| self.execution.evaluation_site(site));
        let moment = self.program.moment();
        let loops = self.program.loops.clone();
        let generator = self.heap.actual(generator);
        let in_worker = self.libraries.worker_globals.is_some();
        let is_copied = in_worker
            && !self.libraries.worker_has_init
            && generator.0 < self.libraries.worker_first
            && self.heap.is_made(generator);
        self.program.facts.draws.push(Draw {
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
        let operands = operands.into_iter().chain(self.program.open_orders()).collect();
        self.program.emit(Statement::Draw { target, generator: cell, operands, site });
        Value::variable(target)
    }

    /// Reads an input that differs between executions.
    pub(super) fn read_environment(
        &mut self,
        what: Environment,
        call: &str,
        site: Site,
    ) -> Variable {
        let target = self.program.variable("read");
        let symbol = self.program.function(call);
        let in_worker = self.libraries.worker_globals.is_some();
        self.program.facts.reads.push(Read {
            what,
            site,
            call: call.to_owned(),
            taken_at: None,
            variable: target,
            in_worker,
        });
        self.program.emit(Statement::Read { target, what: symbol, site });
        target
    }

    /// Records the first use of an unspecified order.
    pub(super) fn note_order_use(&mut self, value: &Value<'a>, site: Site) {
        match &value.shape {
            Shape::Unordered(_, order) => {
                let mut reads = self.program.facts.reads.iter_mut();
                if let Some(read) = reads.find(|read| read.variable == *order) {
                    read.taken_at.get_or_insert(site);
                }
            }
            Shape::Zip(parts) => {
                for part in parts.iter() {
                    self.note_order_use(part, site);
                }
            }
            _ => {}
        }
    }

    /// Applies a layer to its input. It draws from its own generator or from a global one.
    pub(super) fn apply_layer(
        &mut self,
        layer: Layer,
        own: Option<ObjectId>,
        global: Global,
        trains: bool,
        mut value: Value<'a>,
        site: Site,
    ) -> Value<'a> {
        if !trains {
            return value;
        }
        if layer.draws {
            let generator = own.unwrap_or_else(|| self.global(global));
            let drawn = self.draw(generator, Purpose::Layer, value.operands.clone(), site);
            value.depend_on(&drawn);
        }
        if let Some(operation) = layer.nondeterministic {
            value.operands = self.program.nondeterministic(operation, value.operands, site);
        }
        value
    }
}
