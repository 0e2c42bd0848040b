//! Loops of Python.

use std::collections::BTreeMap;

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{Expr, Stmt, StmtFor, StmtWhile};
use ruff_text_size::Ranged;

use super::{
    Args, Heap, Kind, Lift, Loop, LoopId, ObjectId, Operand, Owner, ProgramBuilder, Shape, Site,
    Statement, Value, Variable,
};

/// Maximum number of known objects for which a loop is unrolled.
const UNROLLED: usize = 8;

impl<'a> Lift<'a> {
    pub(super) fn run_for(&mut self, it: &'a StmtFor) {
        let mut iterated = self.eval(&it.iter);
        if let Shape::Unknown(id) = iterated.shape
            && let Some(object) = self.unwrapped(id)
        {
            iterated = Value::object(object);
        }
        let site = self.site(it.iter.range());
        let iterated = self.iteration_value(iterated, site);
        self.note_order_use(&iterated, site);
        if let Some(elements) = self.heap.unrolled(&iterated) {
            for element in elements {
                self.execution.in_head = true;
                let site = self.site(it.target.range());
                self.assign(&it.target, element, site);
                self.execution.in_head = false;
                self.run_block(&it.body);
            }
            self.run_block(&it.orelse);
            return;
        }
        let site = self.site(it.target.range().cover(it.iter.range()));
        let name = position_name(&it.target, &iterated);
        let target = &*it.target;
        let order = match iterated.shape {
            Shape::Unordered(what, order) => Some((what, order)),
            _ => None,
        };
        self.program.orders.extend(order);
        self.run_loop(&it.body, site, name, &iterated, None, |lift, counter| {
            let site = lift.site(it.iter.range());
            let element = lift.element(&iterated, counter, site);
            lift.execution.in_head = true;
            let site = lift.site(target.range());
            lift.assign(target, element, site);
            lift.execution.in_head = false;
            lift.note_positions(target, &iterated);
        });
        if order.is_some() {
            self.program.orders.pop();
        }
        self.run_block(&it.orelse);
    }

    pub(super) fn run_while(&mut self, it: &'a StmtWhile) {
        let site = self.site(it.test.range());
        let forever = Value::constant();
        self.run_loop(&it.body, site, None, &forever, Some(&it.test), |_, _| {});
        self.run_block(&it.orelse);
    }

    /// Executes the body of a loop once, as the body of a loop of the program.
    fn run_loop(
        &mut self,
        body: &'a [Stmt],
        site: Site,
        name: Option<String>,
        iterated: &Value<'a>,
        test: Option<&'a Expr>,
        begin: impl FnOnce(&mut Lift<'a>, Variable),
    ) {
        let assigned = assigned(body);
        for name in assigned.names {
            let owner = self.scope.owner_of(name);
            self.forget_literal(owner, name);
            self.forget_container(owner, name, site);
        }
        let receiver = self.execution.calls.last().and_then(|call| call.receiver);
        for field in assigned.fields {
            if let Some(receiver) = receiver {
                let receiver = self.heap.actual(receiver);
                self.forget_literal(Owner::Object(receiver), field);
            }
        }
        let drawn = self.program.facts.draws.len();
        self.begin_pass(iterated, site);
        let pass_draws =
            self.program.facts.draws[drawn..].iter().map(|draw| draw.generator).collect();
        let stop = assigned.leaves.then(|| {
            let stop = self.program.variable("left early");
            self.program.compute(stop, "going on", [], site);
            stop
        });
        let counter = self.program.variable(name.as_deref().unwrap_or("round"));
        let bound = self.bound(iterated, site);
        let id = self.program.open_loop(counter, name, site);
        let looped = &mut self.program.facts.loops[id.0 as usize];
        looped.is_over_data = self.heap.is_data(iterated);
        looped.is_while = test.is_some();
        looped.pass_draws = pass_draws;
        self.program.stops.push(stop);
        self.program.blocks.push(Vec::new());
        let tested = test.map(|test| {
            let holds = self.eval(test);
            let operands = self.heap.data(&holds).operands;
            self.program.note_test(&operands, id);
            operands
        });
        self.program.blocks.push(Vec::new());
        begin(self, counter);
        self.run_block(body);
        self.end_round(id, site);
        let mut inner = self.program.blocks.pop().unwrap_or_default();
        let mut before = self.program.blocks.pop().unwrap_or_default();
        match tested {
            Some(operands) if !operands.is_empty() => {
                let condition = self.program.symbol("while");
                let (then, otherwise) = (inner, Vec::new());
                before.push(Statement::If { condition, operands, then, otherwise, site });
            }
            _ => before.append(&mut inner),
        }
        let mut inner = before;
        if let Some(stop) = stop {
            let condition = self.program.symbol("left early");
            let operands = vec![Operand::Variable(stop)];
            let (then, otherwise) = (Vec::new(), inner);
            inner = vec![Statement::If { condition, operands, then, otherwise, site }];
        }
        self.program.stops.pop();
        self.program.loops.pop();
        self.program.emit(Statement::For { counter, bound, body: inner, site });
    }

    /// A checkpoint at the end of each iteration of the outermost loop that trains the same models.
    pub(super) fn end_round(&mut self, id: LoopId, site: Site) {
        let looped = &self.program.facts.loops[id.0 as usize];
        let saves = self.program.facts.saves.iter().any(|save| save.loops.last() == Some(&id));
        let is_outermost = looped.parent.is_none_or(|it| self.is_search(it)) && !self.is_search(id);
        if saves || (is_outermost && looped.trains) {
            let label = self.program.label("end of the iteration");
            let frames = self.open_frames();
            let names = self.visible_names();
            let looped = &mut self.program.facts.loops[id.0 as usize];
            looped.end = Some(label);
            looped.frames = frames;
            looped.names = names;
            self.program.emit(Statement::Checkpoint { label, site });
        }
    }

    /// Returns true if a loop makes all models that are trained in it: a search over settings, or folds of a
    /// cross-validation. A run is not resumed across its iterations.
    pub(super) fn is_search(&self, id: LoopId) -> bool {
        let mut models = self.heap.all_roots().into_iter().filter(|root| {
            let object = self.heap.object(*root);
            self.program.trained.contains(&object.cell) && object.copy_of.is_none()
        });
        let is_made = |root: ObjectId| self.heap.object(root).loops.contains(&id);
        models.next().is_some_and(is_made) && models.all(is_made)
    }

    /// Bound of a loop.
    fn bound(&mut self, iterated: &Value<'a>, site: Site) -> Operand {
        let operands = match &iterated.shape {
            Shape::Object(id) if self.heap.container(*id).is_some() => vec![self.heap.state(*id)],
            Shape::Object(_) | Shape::Zip(_) => Vec::new(),
            // The order does not matter to the count.
            _ => iterated.operands.clone(),
        };
        match operands[..] {
            [] => Operand::Constant(self.program.function("count")),
            [one] => one,
            _ => {
                let bound = self.program.variable("count");
                self.program.compute(bound, "count", operands, site);
                Operand::Variable(bound)
            }
        }
    }

    /// Variables in the target of a loop that hold its position.
    fn note_positions(&mut self, target: &'a Expr, iterated: &Value<'a>) {
        let is_counted = matches!(iterated.shape, Shape::Range | Shape::Zip(_));
        let first = match target {
            Expr::Tuple(tuple) if is_counted => tuple.elts.first(),
            Expr::Name(_) if is_counted => Some(target),
            _ => None,
        };
        let Some(Expr::Name(name)) = first else {
            return;
        };
        let owner = self.scope.owner_of(name.id.as_str());
        let variable = self.variable_of(owner, name.id.as_str(), name.id.as_str());
        if let Some(id) = self.program.loops.last().copied() {
            self.program.facts.loops[id.0 as usize].positions.push(variable);
        }
    }

    /// One element of an iterated value.
    pub(super) fn element(
        &mut self,
        iterated: &Value<'a>,
        counter: Variable,
        site: Site,
    ) -> Value<'a> {
        let by_counter = Operand::Variable(counter);
        match &iterated.shape {
            Shape::Zip(parts) => {
                // Elements are paired with their number.
                let element = |part: &Value<'a>| {
                    let mut element = self.element(part, counter, site);
                    if let Shape::Unordered(_, order) = part.shape {
                        element.operands.push(Operand::Variable(order));
                    }
                    element
                };
                let parts = parts.iter().map(element).collect();
                Value::of(Shape::Tuple(parts)).with_models(iterated.models)
            }
            Shape::Parameters(_)
            | Shape::State(_)
            | Shape::Settings
            | Shape::Loaded(..)
            | Shape::Key => iterated.clone(),
            Shape::Object(id) | Shape::Iterator(id) => {
                self.element_of_object(*id, by_counter, site)
            }
            // The order affects what is accumulated, not the element.
            Shape::Unordered(..) => {
                let mut element = Value::plain(iterated.operands.clone());
                element.operands.push(by_counter);
                element.with_models(iterated.models)
            }
            Shape::Plain | Shape::Range | Shape::Tuple(_) | Shape::Text(_) => {
                let mut element = self.heap.data(iterated);
                element.operands.push(by_counter);
                element
            }
            // The body of a generator function runs with the loop.
            Shape::Function(function) => {
                let mut element = self.enter(function, Args::none(site));
                element.operands.push(by_counter);
                element
            }
            Shape::Partial(partial) => {
                let args = Args { site, ..partial.1.clone() };
                let mut element = match &partial.0.shape {
                    Shape::Function(function) => self.enter(function, args),
                    _ => self.call_value(partial.0.clone(), args),
                };
                if element.is_data() {
                    element.operands.push(by_counter);
                }
                element
            }
            _ => Value::plain(vec![by_counter]),
        }
    }
}

impl<'a> ProgramBuilder<'a> {
    /// Opens a loop of the script or of a framework.
    pub(super) fn open_loop(
        &mut self,
        counter: Variable,
        name: Option<String>,
        site: Site,
    ) -> LoopId {
        let id = LoopId(u32::try_from(self.facts.loops.len()).unwrap_or(u32::MAX));
        let moment = self.moment();
        self.facts.loops.push(Loop {
            site,
            parent: self.loops.last().copied(),
            counter,
            name,
            positions: vec![counter],
            is_over_data: false,
            trains: false,
            is_while: false,
            runner: None,
            end: None,
            frames: Vec::new(),
            names: BTreeMap::new(),
            pass_draws: Vec::new(),
            iterator: None,
            moment,
        });
        self.loops.push(id);
        id
    }

    /// Names a `while` loop after the first variable in its test.
    fn note_test(&mut self, operands: &[Operand], id: LoopId) {
        let first = operands.iter().find_map(|it| it.variable());
        let name = &mut self.facts.loops[id.0 as usize].name;
        *name = name.take().or_else(|| Some(self.program.name(first?).to_owned()));
    }
}

impl<'a> Heap<'a> {
    /// Elements of a short, known sequence.
    pub(super) fn unrolled(&self, iterated: &Value<'a>) -> Option<Vec<Value<'a>>> {
        let is_worth_it = |elements: &[Value<'a>]| {
            let is_thing = |value: &Value<'a>| match &value.shape {
                Shape::Tuple(parts) => parts.iter().any(|part| !part.is_data()),
                _ => !value.is_data(),
            };
            !elements.is_empty() && elements.len() <= UNROLLED && elements.iter().any(is_thing)
        };
        let elements = match &iterated.shape {
            Shape::Tuple(parts) => parts,
            _ => {
                let container = self.container_in(iterated)?;
                let is_list = container.is_closed && container.entries.is_empty();
                is_list.then_some(&container.elements[..])?
            }
        };
        is_worth_it(elements).then(|| elements.to_vec())
    }

    /// Returns true if a loop iterates over batches or samples.
    pub(super) fn is_data(&self, iterated: &Value<'a>) -> bool {
        match &iterated.shape {
            Shape::Object(id) => matches!(
                self.object(*id).kind,
                Kind::Loader(_) | Kind::Dataset { .. } | Kind::Plain | Kind::Framework(_)
            ),
            Shape::Iterator(_) => true,
            Shape::Zip(parts) => parts.iter().any(|part| self.is_data(part)),
            Shape::Function(_) | Shape::Plain | Shape::Partial(_) => true,
            _ => false,
        }
    }
}

/// Name of the position of a loop: the index of `enumerate`, or the number of `range`.
fn position_name(target: &Expr, iterated: &Value<'_>) -> Option<String> {
    match (target, &iterated.shape) {
        (Expr::Tuple(tuple), Shape::Zip(_)) => match tuple.elts.first() {
            Some(Expr::Name(name)) => Some(name.id.to_string()),
            _ => None,
        },
        (Expr::Name(name), Shape::Range) => Some(name.id.to_string()),
        _ => None,
    }
}

/// Names and attributes that the body of a loop writes.
#[derive(Default)]
pub(super) struct Assigned<'a> {
    names: Vec<&'a str>,
    pub fields: Vec<&'a str>,
    leaves: bool,
    inner: usize,
}

impl<'a> Assigned<'a> {
    fn target(&mut self, target: &'a Expr) {
        match target {
            Expr::Name(name) => self.names.push(name.id.as_str()),
            Expr::Attribute(it) => self.fields.push(it.attr.as_str()),
            Expr::Tuple(it) => it.elts.iter().for_each(|it| self.target(it)),
            Expr::List(it) => it.elts.iter().for_each(|it| self.target(it)),
            Expr::Starred(it) => self.target(&it.value),
            _ => {}
        }
    }
}

impl<'a> StatementVisitor<'a> for Assigned<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(it) => it.targets.iter().for_each(|target| self.target(target)),
            Stmt::AugAssign(it) => self.target(&it.target),
            Stmt::AnnAssign(it) => self.target(&it.target),
            Stmt::Break(_) => self.leaves |= self.inner == 0,
            Stmt::Return(_) => self.leaves = true,
            Stmt::For(it) => {
                self.target(&it.target);
                self.inner += 1;
                walk_stmt(self, statement);
                self.inner -= 1;
            }
            Stmt::While(_) => {
                self.inner += 1;
                walk_stmt(self, statement);
                self.inner -= 1;
            }
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            _ => walk_stmt(self, statement),
        }
    }
}

/// Names and attributes that a body writes.
pub(super) fn assigned(body: &[Stmt]) -> Assigned<'_> {
    let mut found = Assigned::default();
    found.visit_body(body);
    found
}
