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
mod binding;
mod branch;
mod branching;
mod builtin;
mod call;
mod class;
mod compile;
mod comprehension;
mod container_method;
mod data_method;
mod data_source;
mod display;
mod emit;
mod entering;
mod evaluation;
mod expression;
pub(crate) mod facts;
mod finishing;
mod fit;
mod framework;
mod generator;
mod generator_method;
mod importing;
mod interest;
mod item;
mod jax;
mod keras;
mod library_call;
mod lightning;
mod loader;
mod loops;
mod model_method;
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
mod unsteady;
mod value;
mod weights;
mod writing;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use crate::calculus::{Operand, Program, Site, Statement, Symbol, Variable};
use crate::library::Global;
use crate::project::Project;
use crate::{FileId, Place};

use facts::{Lifted, LoopId};
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
    /// The settings that the script draws itself.
    drawn_settings: BTreeMap<&'a str, Variable>,
    /// The gradients that something was added to.
    computed_gradients: HashSet<Variable>,
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
    pub(super) fn evaluates(&self) -> bool {
        const NAMES: [&str; 5] = ["eval", "valid", "test", "infer", "visual"];
        let name = self.code.name().trim_start_matches('_');
        NAMES.iter().any(|it| name.starts_with(it))
            || name.contains("_eval")
            || name.contains("_valid")
    }
}

impl<'a> Lift<'a> {
    pub(super) fn new(project: &'a Project, file: FileId) -> Lift<'a> {
        let mut lift = Lift {
            project,
            program: Program::default(),
            functions: HashMap::new(),
            blocks: vec![Vec::new()],
            emitted: 0,
            start: facts::START,
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
            drawn_settings: BTreeMap::new(),
            computed_gradients: HashSet::new(),
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
    pub(super) fn run_module(&mut self, file: FileId, is_main: bool) -> FrameId {
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
            self.facts.uses_cuda =
                ["cuda", "\"GPU", "'GPU", "gpu:"].iter().any(|word| text.contains(word));
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
    pub(super) fn enter_rest(&mut self, file: FileId, entered: &BTreeSet<usize>) {
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
                    if let Some(Value { shape: Shape::Function(function), .. }) =
                        self.look_up(code.name.as_str())
                    {
                        self.enter_unasked(&function);
                    }
                }
                ruff_python_ast::Stmt::ClassDef(code) => {
                    let Some(Value { shape: Shape::Class(class), .. }) =
                        self.look_up(code.name.as_str())
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

    /// Whether enough was emitted for one script.
    pub(super) fn is_exhausted(&self) -> bool {
        self.emitted > MOST_STATEMENTS
    }

    pub(super) fn is_made(&self, id: ObjectId) -> bool {
        matches!(self.object(id).kind, Kind::Generator(object::Source::Made(_)))
    }

    /// The frames of the calls that are open, and of modules.
    pub(super) fn open_frames(&self) -> Vec<FrameId> {
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

    /// A value that everything in `values` went into.
    pub(super) fn combine<'v>(
        &mut self,
        values: impl IntoIterator<Item = &'v Value<'a>>,
    ) -> Value<'a>
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
    pub(super) fn data(&self, value: &Value<'a>) -> Value<'a> {
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

    pub(super) fn bound_method(
        &self,
        function: &Rc<Function<'a>>,
        receiver: ObjectId,
    ) -> Rc<Function<'a>> {
        Rc::new(Function { receiver: Some(receiver), ..(**function).clone() })
    }
}
