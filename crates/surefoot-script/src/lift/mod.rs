//! From Python to the calculus.
//!
//! A script is executed in the abstract: each function is entered where it is called, each loop body
//! once, both sides of every branch. Names are bound to what is known of their values
//! ([`value`], [`scope`]), things with a state are objects ([`object`]), and whatever computes, draws,
//! seeds or reads becomes a statement of the program. What the program cannot say is kept beside it
//! ([`facts`]).
//!
//! Loads of checkpoints do nothing in the program: it is the run that is never interrupted.

mod assignment;
mod attribute;
mod branching;
mod builtin;
mod call;
mod class;
mod compile;
mod comprehension;
mod display;
mod entering;
mod expression;
pub(crate) mod facts;
mod fit;
mod framework;
mod generator;
mod importing;
mod interest;
mod item;
mod jax;
mod keras;
mod library_call;
mod lightning;
mod loader;
mod loops;
mod module;
mod object;
mod object_call;
mod optimizer;
mod pipeline;
mod saving;
mod scope;
mod scoped_block;
mod statement;
mod stranger;
mod switch;
mod tensorflow;
mod uncalled;
mod value;
mod weights;
mod writing;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use ruff_text_size::TextRange;

use crate::calculus::{Operand, Program, Site, Statement, Symbol, Variable};
use crate::library::{Environment, Global, Layer};
use crate::project::Project;
use crate::{FileId, Place};

use facts::{Draw, Lifted, LoopId, Purpose, Read, Style, Thing, Unsteady};
use framework::Frameworks;
use object::{Kind, Object};
use scope::{Change, Frame};
pub(crate) use value::ObjectId;
use value::{Class, Code, FrameId, Function, Shape, Value};

/// Statements after which functions are no longer entered, so that no script takes forever.
const MOST_STATEMENTS: usize = 20_000;
/// How deep calls are entered.
const DEEPEST: usize = 24;

/// How a file is lifted.
pub(crate) enum Entry<'s> {
    /// As a script that is run.
    Script,
    /// As code that others call: the functions and classes that were not entered so far.
    Library(&'s BTreeSet<usize>),
}

/// Lifts a file. Also tells which functions were entered.
pub(crate) fn lift(project: &Project, file: FileId, entry: Entry<'_>) -> (Lifted, BTreeSet<usize>) {
    let mut lift = Lift::new(project, file);
    lift.facts.is_library = matches!(entry, Entry::Library(_));
    lift.run_module(file, matches!(entry, Entry::Script));
    if let Entry::Library(entered) = entry {
        lift.enter_rest(file, entered);
    }
    lift.finish()
}

/// A script being lifted.
pub(crate) struct Lift<'a> {
    project: &'a Project,
    program: Program,
    functions: HashMap<String, Symbol>,
    blocks: Vec<Vec<Statement>>,
    emitted: usize,
    start: Site,
    frames: Vec<Frame<'a>>,
    current: FrameId,
    module_frames: BTreeMap<FileId, FrameId>,
    slot_variables: HashMap<(bool, u32, &'a str), Variable>,
    /// The variables of the parts of tuples.
    part_variables: HashMap<(Variable, usize), Variable>,
    objects: Vec<Object<'a>>,
    /// Objects that are sets.
    sets: BTreeSet<ObjectId>,
    /// The variables of their states.
    cells: HashSet<Variable>,
    /// Parameters of functions, and the variables that were passed for them.
    same_value: HashMap<Variable, Variable>,
    /// Variables that keep the state of a model aside.
    kept_states: HashSet<Variable>,
    models: Vec<ObjectId>,
    globals: BTreeMap<Global, ObjectId>,
    /// Models that are called through a copy, innermost last.
    copies: Vec<(ObjectId, ObjectId)>,
    journal: Vec<Change<'a>>,
    /// How many frames and objects there were where each open branch began.
    marks: Vec<(usize, usize)>,
    loops: Vec<LoopId>,
    /// What tells, inside each loop, that it was left early.
    stops: Vec<Option<Variable>>,
    calls: Vec<Call<'a>>,
    /// The statement being executed, outside of constructors of models.
    statement: Option<Site>,
    no_grad: usize,
    /// Whether the head of a loop is being bound, which names nothing.
    in_head: bool,
    tries: usize,
    trained: Vec<Variable>,
    entered: BTreeSet<usize>,
    known_unknowns: BTreeSet<String>,
    /// Whether there is more of the script than is followed.
    is_cut: bool,
    strangers: Vec<stranger::Stranger>,
    /// How many calls were open where each scope without gradients began.
    quiet_from: Vec<usize>,
    generators: HashMap<usize, bool>,
    /// The generators of the processes of each loader.
    workers: BTreeMap<ObjectId, BTreeMap<Global, ObjectId>>,
    /// The generators of the processes that load data now, if they do.
    worker_globals: Option<BTreeMap<Global, ObjectId>>,
    worker_has_init: bool,
    /// Whether a sample of a data set is being made.
    sampling: usize,
    /// The first object that those processes make themselves.
    worker_first: u32,
    clock: u32,
    frameworks: Frameworks<'a>,
    facts: Lifted,
}

/// A call that was entered.
struct Call<'a> {
    code: Code<'a>,
    file: FileId,
    class: Option<Rc<Class<'a>>>,
    receiver: Option<ObjectId>,
    /// How many loops there were around the call.
    loops: usize,
    frame: FrameId,
    /// Where it was called.
    site: Site,
    /// Whether it is decorated to compute no gradients.
    is_quiet: bool,
    /// How many draws there were before it.
    draws: usize,
}

impl Call<'_> {
    /// Whether a function evaluates the model, by its name.
    fn evaluates(&self) -> bool {
        const NAMES: [&str; 5] = ["eval", "valid", "test", "infer", "visual"];
        let name = self.code.name().trim_start_matches('_');
        NAMES.iter().any(|it| name.starts_with(it))
            || name.contains("_eval")
            || name.contains("_valid")
    }
}

impl<'a> Lift<'a> {
    fn new(project: &'a Project, file: FileId) -> Lift<'a> {
        let mut lift = Lift {
            project,
            program: Program::default(),
            functions: HashMap::new(),
            blocks: vec![Vec::new()],
            emitted: 0,
            start: Site(0),
            frames: Vec::new(),
            current: FrameId(0),
            module_frames: BTreeMap::new(),
            slot_variables: HashMap::new(),
            part_variables: HashMap::new(),
            objects: Vec::new(),
            sets: BTreeSet::new(),
            cells: HashSet::new(),
            same_value: HashMap::new(),
            kept_states: HashSet::new(),
            models: Vec::new(),
            globals: BTreeMap::new(),
            copies: Vec::new(),
            journal: Vec::new(),
            marks: Vec::new(),
            loops: Vec::new(),
            stops: Vec::new(),
            calls: Vec::new(),
            statement: None,
            no_grad: 0,
            in_head: false,
            tries: 0,
            trained: Vec::new(),
            entered: BTreeSet::new(),
            known_unknowns: BTreeSet::new(),
            is_cut: false,
            strangers: Vec::new(),
            quiet_from: Vec::new(),
            generators: HashMap::new(),
            workers: BTreeMap::new(),
            worker_globals: None,
            worker_has_init: false,
            sampling: 0,
            worker_first: 0,
            clock: 0,
            frameworks: Frameworks::default(),
            facts: Lifted::default(),
        };
        lift.facts.sites.push(Place { file, range: 0..0 });
        lift
    }

    /// Executes a module, once.
    fn run_module(&mut self, file: FileId, is_main: bool) -> FrameId {
        if let Some(frame) = self.module_frames.get(&file) {
            return *frame;
        }
        let frame = self.new_frame(None, None, file);
        self.frames[frame.0 as usize].module = Some(frame);
        self.module_frames.insert(file, frame);
        let before = std::mem::replace(&mut self.current, frame);
        let statement = self.statement;
        let calls = std::mem::take(&mut self.calls);
        let name = if is_main { "__main__" } else { "module" };
        self.declare("__name__", Value::of(Shape::Text(name)));
        let project = self.project;
        let script = project.script(file);
        self.frameworks.uses_jax |= script.source.text.contains("jax");
        self.frameworks.dumps_json |= script.source.text.contains("json.dump(");
        self.frameworks.saves_arrays |= script.source.text.contains("savez");
        if !self.facts.uses_cuda {
            let text = &script.source.text;
            self.facts.uses_cuda = ["cuda", "\"GPU", "'GPU", "gpu:"]
                .iter()
                .any(|word| text.contains(word));
        }
        if !self.facts.asks_for_determinism {
            let text = &script.source.text;
            self.facts.asks_for_determinism = [
                "use_deterministic_algorithms(True",
                "enable_op_determinism(",
                "TF_DETERMINISTIC_OPS",
            ]
            .iter()
            .any(|word| text.contains(word));
        }
        self.run_block(&script.module.body);
        self.statement = statement;
        self.calls = calls;
        self.current = before;
        frame
    }

    /// Enters what nobody called, with arguments that are not known.
    fn enter_rest(&mut self, file: FileId, entered: &BTreeSet<usize>) {
        let frame = self.run_module(file, false);
        self.current = frame;
        let project = self.project;
        for statement in &project.script(file).module.body {
            match statement {
                ruff_python_ast::Stmt::FunctionDef(code) => {
                    let address = std::ptr::from_ref(code) as usize;
                    let is_known = entered.contains(&address) || self.entered.contains(&address);
                    if is_known || !interest::trains(&code.body) {
                        continue;
                    }
                    if let Some(Value {
                        shape: Shape::Function(function),
                        ..
                    }) = self.look_up(code.name.as_str())
                    {
                        self.enter_unasked(&function);
                    }
                }
                ruff_python_ast::Stmt::ClassDef(code) => {
                    let Some(Value {
                        shape: Shape::Class(class),
                        ..
                    }) = self.look_up(code.name.as_str())
                    else {
                        continue;
                    };
                    if !interest::trains(&code.body) {
                        continue;
                    }
                    let site = self.site(code.name.range);
                    self.enter_class(&class, entered, site);
                }
                _ => {}
            }
        }
    }

    /// Puts out what was trained, and tells who is who.
    fn finish(mut self) -> (Lifted, BTreeSet<usize>) {
        let trained: Vec<Operand> = self
            .trained
            .iter()
            .copied()
            .map(Operand::Variable)
            .collect();
        self.facts.trains = !trained.is_empty();
        if !trained.is_empty() {
            self.emit(Statement::Output {
                operands: trained,
                site: self.start,
            });
        }
        let mut body = self.blocks.pop().unwrap_or_default();
        // Generators that are always there begin with entropy.
        let globals: Vec<ObjectId> = self.globals.values().copied().collect();
        for id in globals.into_iter().rev() {
            let target = self.object(id).cell;
            let name = format!("entropy of {}", self.program.name(target));
            let what = self.function(&name);
            body.insert(
                0,
                Statement::Read {
                    target,
                    what,
                    site: self.start,
                },
            );
        }
        self.program.body = body;
        self.facts.style = self.style();
        for index in 0..self.objects.len() {
            let id = ObjectId(u32::try_from(index).unwrap_or(u32::MAX));
            if self.objects[index].same.is_some() {
                continue;
            }
            let Some(role) = self.role(id) else { continue };
            let object = self.object(id);
            let gradients = match object.kind {
                Kind::Module { gradients, .. } => Some(gradients),
                _ => None,
            };
            let name = object
                .name
                .clone()
                .unwrap_or_else(|| self.program.name(object.cell).to_owned());
            let thing = Thing {
                object: id,
                cell: object.cell,
                gradients,
                name,
                role,
                site: object.site,
                is_part: object.owner.is_some(),
            };
            self.facts.things.push(thing);
        }
        // What turned out to be the same has one variable.
        for index in 0..self.objects.len() {
            let from = self.objects[index].cell;
            if self.objects[index].same.is_some() {
                let id = ObjectId(u32::try_from(index).unwrap_or(u32::MAX));
                let to = self.object(id).cell;
                for restore in self
                    .facts
                    .restores
                    .iter_mut()
                    .filter(|it| it.variable == from)
                {
                    restore.variable = to;
                }
                for rewrite in self
                    .facts
                    .rewrites
                    .iter_mut()
                    .filter(|it| it.variable == from)
                {
                    rewrite.variable = to;
                }
            }
        }
        self.facts.program = self.program;
        (self.facts, self.entered)
    }

    /// What checkpoints of the script are made with.
    fn style(&self) -> Style {
        if self.models.iter().any(|id| self.is_keras(*id)) {
            return Style::TensorFlow;
        }
        if self.frameworks.uses_jax && self.models.is_empty() {
            return Style::Values;
        }
        Style::Torch
    }

    /// Where something of the current file is.
    fn site(&mut self, range: TextRange) -> Site {
        let file = match self.calls.last() {
            Some(call) => call.file,
            None => self.frame(self.current).file,
        };
        let site = Site(u32::try_from(self.facts.sites.len()).unwrap_or(u32::MAX));
        self.facts.sites.push(Place {
            file,
            range: range.to_std_range(),
        });
        site
    }

    fn emit(&mut self, statement: Statement) {
        self.emitted += 1;
        if let Some(block) = self.blocks.last_mut() {
            block.push(statement);
        }
    }

    /// Whether enough was emitted for one script.
    fn is_exhausted(&self) -> bool {
        self.emitted > MOST_STATEMENTS
    }

    /// The symbol of a function, a constant or a thing that is read.
    fn function(&mut self, name: &str) -> Symbol {
        if let Some(symbol) = self.functions.get(name) {
            return *symbol;
        }
        let symbol = self.program.symbol(name);
        self.functions.insert(name.to_owned(), symbol);
        symbol
    }

    /// `target := name(operands)`.
    fn compute(&mut self, target: Variable, name: &str, operands: Vec<Operand>, site: Site) {
        let function = self.function(name);
        self.emit(Statement::Compute {
            target,
            function,
            operands,
            site,
        });
    }

    /// A draw from a generator; the value depends on `operands` too.
    fn draw(
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
        self.emit(Statement::Draw {
            target,
            generator: cell,
            operands,
            site,
        });
        Value::plain(vec![Operand::Variable(target)])
    }

    /// A value that another execution would find different.
    fn read_environment(&mut self, what: Environment, call: &str, site: Site) -> Variable {
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
        self.emit(Statement::Read {
            target,
            what: symbol,
            site,
        });
        target
    }

    /// Notes where the order of something is made use of.
    fn note_taken(&mut self, value: &Value<'a>, range: TextRange) {
        match &value.shape {
            Shape::Unordered(_, order) => {
                let site = self.site(range);
                if let Some(read) = self
                    .facts
                    .reads
                    .iter_mut()
                    .find(|read| read.variable == *order)
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
    fn unsteady(
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
        self.emit(Statement::Nondeterministic {
            target,
            function,
            operands,
            site,
        });
        vec![Operand::Variable(target)]
    }

    /// What a layer does to its input.
    fn apply_layer(
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

    fn is_made(&self, id: ObjectId) -> bool {
        matches!(
            self.object(id).kind,
            Kind::Generator(object::Source::Made(_))
        )
    }

    /// The frames of the calls that are open, and of modules.
    fn open_frames(&self) -> Vec<FrameId> {
        let mut frames: Vec<FrameId> = self.module_frames.values().copied().collect();
        frames.extend(self.calls.iter().map(|call| call.frame));
        let mut at = Some(self.current);
        while let Some(frame) = at {
            frames.push(frame);
            at = self.frame(frame).parent;
        }
        frames.sort_unstable();
        frames.dedup();
        frames
    }

    /// Whether what happens now is an evaluation of the model.
    fn is_evaluation(&self) -> bool {
        if self.frameworks.evaluating > 0 {
            return true;
        }
        let mut models = self
            .models
            .iter()
            .filter(|id| self.object(**id).owner.is_none());
        if self.no_grad > 0
            && !self.models.is_empty()
            && models.all(|id| !self.trains(*id) || !self.has_parameters(*id))
        {
            return true;
        }
        self.calls.iter().any(Call::evaluates)
    }

    /// The function that is executed applies a model without training it: what it drew may be for no more
    /// than that.
    fn note_probe(&mut self) {
        let Some(call) = self.calls.last().filter(|call| call.loops > 0) else {
            return;
        };
        for draw in &mut self.facts.draws[call.draws..] {
            draw.is_probe = true;
        }
    }

    /// Where an evaluation leads to what happens now: a call in it, if there is one.
    fn evaluation_site(&self, site: Site) -> Site {
        let evaluation = self
            .calls
            .iter()
            .rposition(|call| call.evaluates() || call.is_quiet);
        let inside = evaluation
            .map(|at| at + 1)
            .or_else(|| self.quiet_from.first().copied());
        let next = inside.and_then(|at| self.calls.get(at));
        next.map_or(site, |call| call.site)
    }

    /// Notes that a variable is trained.
    fn note_trained(&mut self, variable: Variable) {
        if !self.trained.contains(&variable) {
            self.trained.push(variable);
        }
    }

    /// Notes a step of training in all loops around it.
    fn note_step(&mut self) {
        for id in &self.loops {
            self.facts.loops[id.0 as usize].trains = true;
        }
    }

    /// A value that everything in `values` went into.
    fn combine<'v>(&mut self, values: impl IntoIterator<Item = &'v Value<'a>>) -> Value<'a>
    where
        'a: 'v,
    {
        let mut whole = Value::constant();
        for value in values {
            let value = self.data(value);
            whole.depend_on(&value);
        }
        whole
    }

    /// A value as data: what an object's state or an order adds is among the operands.
    fn data(&self, value: &Value<'a>) -> Value<'a> {
        let mut data = Value::plain(value.operands.clone());
        data.models = value.models;
        match &value.shape {
            Shape::Object(id) => {
                if !matches!(
                    self.object(*id).kind,
                    Kind::Plain
                        | Kind::Transform { .. }
                        | Kind::Loader(_)
                        | Kind::Sampler { .. }
                        | Kind::Framework(_)
                ) {
                    data.operands.push(Operand::Variable(self.cell(*id)));
                }
                data.models = data.models.and(self.models_of(*id));
                if let Kind::Container(container) = &self.object(*id).kind {
                    for element in container.elements.iter().take(8) {
                        if let Shape::Object(part) = element.shape {
                            data.models = data.models.and(self.models_of(part));
                        }
                        data.models = data.models.and(element.models);
                    }
                }
            }
            Shape::State(ids) | Shape::Parameters(ids) => {
                for id in ids.iter() {
                    data.operands.push(Operand::Variable(self.cell(*id)));
                    data.models = data.models.and(self.models_of(*id));
                }
            }
            Shape::Unordered(_, order) => data.operands.push(Operand::Variable(*order)),
            Shape::Tuple(parts) | Shape::Zip(parts) => {
                for part in parts.iter() {
                    let part = self.data(part);
                    data.depend_on(&part);
                }
            }
            Shape::Partial(partial) => {
                let of = self.data(&partial.0);
                data.depend_on(&of);
            }
            _ => {}
        }
        data
    }

    fn bound_method(&self, function: &Rc<Function<'a>>, receiver: ObjectId) -> Rc<Function<'a>> {
        Rc::new(Function {
            receiver: Some(receiver),
            ..(**function).clone()
        })
    }
}
