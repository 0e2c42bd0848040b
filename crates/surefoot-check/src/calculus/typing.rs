//! Type inference, and what the checkpoints of a program must save.

use std::collections::BTreeMap;

use super::flow::{Flow, FlowCheckpoint, Kind, Loop, Node};
use super::intern::TypeId;
use super::live::{Live, live, relevant};
use super::outline::outline;
use super::solve::{Solution, origin, worker_cause};
use super::syntax::{Label, Program, Site, Variable};
use super::types::{Recomputed, SaveReason, SaveSet, SavedVariable, Type, WorkerDependence};

/// Types of a program, returned by [`infer`].
pub struct Typing {
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the interpreter of the tests"))]
    pub(super) flow: Flow,
    pub(super) solution: Solution,
    outputs: Vec<Output>,
    states: Vec<TypeId>,
    saves: BTreeMap<Label, SaveSet>,
    worker_dependences: Vec<WorkerDependence>,
    reaching: Vec<bool>,
}

/// Output of a program and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Statement.
    pub site: Site,
    /// Joined type of the values and of the conditions that control the output.
    pub kind: Type,
}

/// Infers the types of a program, in one forward pass and one backward pass for each level of nested
/// loops.
pub fn infer(program: &Program) -> Typing {
    let mut statements = 0;
    let items = outline(&program.body, &mut statements);
    let flow = Flow::of(program, &items, statements);
    let mut solution = Solution::of(&flow);
    let relevant = relevant(&flow);
    let live = live(&flow, &relevant, program.variables.len(), &items);

    let outputs = flow
        .outputs
        .iter()
        .map(|node| Output {
            site: flow.nodes[node.index()].site,
            kind: solution.get(*node).clone(),
        })
        .collect();

    let mut states = vec![solution.id(Node(0)); program.variables.len()];
    for (at, definition) in flow.nodes.iter().enumerate() {
        if let Some(variable) = definition.variable {
            let state = &mut states[variable.0 as usize];
            let also = solution.id(Node(at as u32));
            *state = solution.types.join(*state, also);
        }
    }

    let mut saves: BTreeMap<Label, SaveSet> = BTreeMap::new();
    for (checkpoint, live) in flow.checkpoints.iter().zip(&live) {
        let save = save_set(&flow, &solution, &relevant, checkpoint, live);
        saves.entry(checkpoint.label).or_default().merge(save);
    }

    let worker_dependences = worker_dependences(&flow, &relevant);
    let mut reaching = vec![false; program.variables.len()];
    for (definition, relevant) in flow.nodes.iter().zip(&relevant) {
        if let Some(variable) = definition.variable {
            reaching[variable.0 as usize] |= relevant;
        }
    }
    Typing { flow, solution, outputs, states, saves, worker_dependences, reaching }
}

impl Typing {
    /// Returns what a checkpoint must save: for a label in several places the union, for one that is
    /// never reached `None`.
    pub fn save(&self, label: Label) -> Option<&SaveSet> {
        self.saves.get(&label)
    }

    /// Returns the outputs in the order of the text.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Returns the joined type of all values that a variable ever holds.
    pub fn state(&self, variable: Variable) -> &Type {
        self.solution.types.get(self.states[variable.0 as usize])
    }

    /// True if any value of the variable reaches an output.
    pub fn reaches_output(&self, variable: Variable) -> bool {
        self.reaching[variable.0 as usize]
    }

    /// Returns the dependences on workers that reach an output. A program without any computes the same
    /// outputs on any number of workers.
    pub fn worker_dependences(&self) -> &[WorkerDependence] {
        &self.worker_dependences
    }
}

impl SaveSet {
    /// Adds the set of another checkpoint with the same label. Of two entries for one variable, the
    /// first is kept.
    fn merge(&mut self, other: SaveSet) {
        self.members.extend(other.members);
        self.members.sort_by_key(|member| member.variable);
        self.members.dedup_by_key(|member| member.variable);
        self.recomputed.extend(other.recomputed);
        self.recomputed.sort_by_key(|known| known.variable);
        self.recomputed.dedup_by_key(|known| known.variable);
        for (into, from) in [(&mut self.counters, other.counters), (&mut self.bounds, other.bounds)]
        {
            for counter in from {
                if !into.contains(&counter) {
                    into.push(counter);
                }
            }
        }
        self.fresh.extend(other.fresh);
        self.fresh.sort_unstable();
        self.fresh.dedup();
    }
}

fn save_set(
    flow: &Flow,
    solution: &Solution,
    relevant: &[bool],
    checkpoint: &FlowCheckpoint,
    live: &Live,
) -> SaveSet {
    let mut save = SaveSet {
        counters: checkpoint.loops.iter().map(|around| around.counter).collect(),
        fresh: live.fresh.iter().filter_map(|node| origin(flow, *node)).collect(),
        ..SaveSet::default()
    };
    for around in &checkpoint.loops {
        let open = !solution.get(around.bound).quality.is_recomputable();
        if open && relevant[around.bound.index()] {
            save.bounds.push(around.counter);
        }
    }
    for (at, (node, used_at)) in checkpoint.state.iter().zip(&live.variables).enumerate() {
        let Some(used_at) = *used_at else { continue };
        let variable = Variable(at as u32);
        let quality = solution.get(*node).quality;
        if !quality.is_recomputable() {
            save.members.push(SavedVariable {
                variable,
                quality,
                reason: reason(flow, solution, *node, variable),
                used_at,
            });
        } else if changes_around(flow, checkpoint, *node) {
            save.recomputed.push(Recomputed { variable, used_at });
        }
    }
    save
}

/// True if a node belongs to the loops around a checkpoint and is not one of their counters.
fn changes_around(flow: &Flow, checkpoint: &FlowCheckpoint, node: Node) -> bool {
    let is_counter = matches!(flow.nodes[node.index()].kind, Kind::Counter(_));
    let inside = |outermost: &Loop| node >= outermost.first;
    !is_counter && checkpoint.loops.first().is_some_and(inside)
}

/// Returns why a node with quality history or external cannot be recomputed.
fn reason(flow: &Flow, solution: &Solution, node: Node, variable: Variable) -> SaveReason {
    let definition = |node: Node| &flow.nodes[node.index()];
    if let Some(origin) = solution.get(node).external().next() {
        return SaveReason::External { origin: *origin };
    }
    let root = solution.root(node).unwrap_or(node);
    let cycle = solution.cycle(root);
    let own = |kind: fn(Kind) -> bool| {
        cycle.iter().copied().find(|node| {
            let definition = definition(*node);
            definition.variable == Some(variable) && kind(definition.kind)
        })
    };
    let shared = cycle
        .iter()
        .find(|node| matches!(definition(**node).kind, Kind::SharedHead | Kind::SharedExit));
    if let Some(shared) = shared {
        let shared = definition(*shared);
        return SaveReason::Shared {
            generator: shared.variable.unwrap_or(variable),
            site: shared.site,
        };
    }
    let head = own(|kind| matches!(kind, Kind::Head(_)));
    let around = definition(head.unwrap_or(root)).site;
    match head {
        None => SaveReason::Derived { from: definition(root).variable.unwrap_or(variable), around },
        Some(_) => match own(|kind| kind == Kind::Next) {
            Some(draw) => SaveReason::Moved { around, drawn_at: definition(draw).site },
            None => SaveReason::Carried { around },
        },
    }
}

/// Collects the dependences on workers that reach an output.
fn worker_dependences(flow: &Flow, relevant: &[bool]) -> Vec<WorkerDependence> {
    let causes = (0..flow.nodes.len() as u32)
        .map(Node)
        .filter(|node| relevant[node.index()])
        .filter_map(|node| worker_cause(flow, node));
    let mut found: Vec<WorkerDependence> = causes.collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::super::{OriginKind, Quality, WorkerCause};
    use super::*;

    fn typed(text: &str) -> (Program, Typing) {
        let program = parse(text).unwrap();
        let typing = infer(&program);
        (program, typing)
    }

    fn named(program: &Program, name: &str) -> Variable {
        let at = program.variables.iter().position(|known| known == name);
        Variable(at.unwrap() as u32)
    }

    fn saved(text: &str) -> Vec<String> {
        let (program, typing) = typed(text);
        let save = typing.save(Label(0)).unwrap();
        let members = save.members.iter();
        members.map(|m| program.name(m.variable).to_owned()).collect()
    }

    fn quality(text: &str, name: &str) -> Quality {
        let (program, typing) = typed(text);
        let node = typing.flow.checkpoints[0].state[named(&program, name).0 as usize];
        typing.solution.get(node).quality
    }

    #[test]
    fn a_loop_carried_variable_and_the_counter_are_saved() {
        let text = "w := init()\nfor i < n {\n w := step(w)\n ckpt L\n}\nout w";
        let (program, typing) = typed(text);
        let save = typing.save(Label(0)).unwrap();
        assert_eq!(saved(text), ["w"]);
        assert_eq!(save.members[0].reason, SaveReason::Carried { around: Site(2) });
        assert_eq!(save.members[0].used_at, Site(3));
        assert_eq!(save.counters, [named(&program, "i")]);
        assert_eq!(save.fresh, []);
    }

    #[test]
    fn a_function_of_the_counter_is_recomputed() {
        let text = "for i < n {\n ckpt L\n out lr\n lr := schedule(i)\n}";
        assert_eq!(saved(text), [""; 0]);
        assert_eq!(quality(text, "lr"), Quality::Key);
        let (program, typing) = typed(text);
        let recomputed = &typing.save(Label(0)).unwrap().recomputed;
        assert_eq!(recomputed[0].variable, named(&program, "lr"));

        let decayed = "lr := 1()\nfor i < n {\n out lr\n ckpt L\n lr := decay(lr)\n}";
        assert_eq!(saved(decayed), ["lr"]);
    }

    #[test]
    fn chains_are_recomputed_and_swaps_are_saved() {
        let chain = "for i < n {\n ckpt L\n out c\n c := f(b)\n b := f(a)\n a := f(i)\n}";
        assert_eq!(saved(chain), [""; 0]);
        let exchange = "a := 1()\nb := 2()\nfor i < n {\n out b\n ckpt L\n c := f(a)\n a := f(b)\n b := f(c)\n}";
        assert_eq!(saved(exchange), ["a", "b"]);
    }

    #[test]
    fn counts_are_recomputed_in_nested_loops() {
        let text = "s := 0()\nfor i < n {\n for j < m {\n ckpt L\n s := succ(s)\n }\n}\nout s";
        assert_eq!(saved(text), [""; 0]);
        let other = "s := 0()\nfor i < n {\n for j < s {\n ckpt L\n s := succ(s)\n }\n}\nout s";
        assert_eq!(saved(other), ["s"]);
        let sometimes = "s := 0()\nfor i < n {\n ckpt L\n if c(i) {\n s := succ(s)\n }\n}\nout s";
        assert_eq!(saved(sometimes), ["s"]);
    }

    #[test]
    fn a_generator_is_saved_only_if_the_loop_draws_from_it() {
        let text = "g := seed 42\nw := draw g\nfor i < n {\n ckpt L\n out w\n}";
        assert_eq!(saved(text), [""; 0]);
        assert_eq!(quality(text, "g"), Quality::Key);
        let drawn = "g := seed 42\nfor i < n {\n ckpt L\n w := draw g\n out w\n}";
        let (_, typing) = typed(drawn);
        assert_eq!(saved(drawn), ["g"]);
        let member = &typing.save(Label(0)).unwrap().members[0];
        assert_eq!(member.reason, SaveReason::Moved { around: Site(2), drawn_at: Site(4) });
        let keyed = "for i < n {\n ckpt L\n w := rnd(42, i)\n out w\n}";
        assert_eq!(saved(keyed), [""; 0]);
    }

    #[test]
    fn only_variables_that_reach_an_output_are_saved() {
        let text = "for i < n {\n w := step(w)\n log := mean(log, w)\n ckpt L\n}\nout w";
        assert_eq!(saved(text), ["w"]);
        let decides = "for i < n {\n w := step(w)\n ckpt L\n if good(w) {\n out i\n }\n}";
        assert_eq!(saved(decides), ["w"]);
    }

    #[test]
    fn a_variable_that_is_overwritten_first_is_not_saved() {
        let text =
            "for i < n {\n w := step(w)\n loss := f(w)\n ckpt L\n out loss\n loss := g(w)\n}";
        assert_eq!(saved(text), ["w", "loss"]);
        let overwritten =
            "for i < n {\n w := step(w)\n loss := f(w)\n ckpt L\n loss := g(w)\n out loss\n}";
        assert_eq!(saved(overwritten), ["w"]);
    }

    #[test]
    fn external_values_stay_external_through_seeds_and_draws() {
        let text = "t := env clock\ng := seed t\nfor i < n {\n x := draw g\n ckpt L\n out x\n}";
        let (program, typing) = typed(text);
        assert_eq!(saved(text), ["g", "x"]);
        let member = typing.save(Label(0)).unwrap().member(named(&program, "g")).unwrap();
        assert_eq!(member.quality, Quality::External);
        let SaveReason::External { origin } = member.reason else { panic!("{:?}", member.reason) };
        assert_eq!((origin.kind, origin.site), (OriginKind::Environment, Site(1)));
        let kinds: Vec<_> = typing.outputs()[0].kind.sources.iter().map(|o| o.kind).collect();
        assert_eq!(kinds, [OriginKind::Seed, OriginKind::Environment]);
    }

    #[test]
    fn a_condition_is_a_source_of_what_it_controls() {
        let text = "t := env clock\nx := 1()\nif late(t) {\n x := 2()\n}\nckpt L\nout x";
        assert_eq!(quality(text, "x"), Quality::External);
        assert_eq!(saved(text), ["x"]);
    }

    #[test]
    fn external_values_after_the_checkpoint_are_fresh() {
        let text = "x := env a\nfor i < n {\n ckpt L\n y := nd sum(x)\n out y\n}\nz := env b\nz := f()\nout z";
        let (_, typing) = typed(text);
        let fresh = &typing.save(Label(0)).unwrap().fresh;
        let found: Vec<_> = fresh.iter().map(|o| (o.kind, o.site)).collect();
        assert_eq!(found, [(OriginKind::Nondeterministic, Site(4))]);
    }

    #[test]
    fn a_bound_that_cannot_be_recomputed_is_saved() {
        let text = "n := env files\nfor i < n {\n n := f(i)\n ckpt L\n out i\n}";
        let (program, typing) = typed(text);
        assert_eq!(saved(text), [""; 0]);
        assert_eq!(typing.save(Label(0)).unwrap().bounds, [named(&program, "i")]);
    }

    fn causes(text: &str) -> Vec<WorkerCause> {
        let (_, typing) = typed(text);
        let found = typing.worker_dependences();
        found.iter().map(|found| found.cause).collect()
    }

    #[test]
    fn keyed_draws_and_a_tree_are_independent_of_workers() {
        let text = "k := fold 7 1\ns := map j < n {\n g := seed k j\n x := draw g\n x\n} reduce tree\nout s";
        assert_eq!(causes(text), []);
    }

    #[test]
    fn ranks_rings_arrivals_and_shared_generators_depend_on_workers() {
        let body = |inner: &str, order: &str| {
            format!("g := seed 1\ns := map j < n {{\n {inner}\n x\n}} reduce {order}\nout s")
        };
        let clean = "x := rnd(7, j)";
        assert_eq!(causes(&body(clean, "tree")), []);
        assert_eq!(causes(&body(clean, "ring")), [WorkerCause::Ring]);
        assert_eq!(causes(&body(clean, "unordered")), [WorkerCause::Unordered]);
        assert_eq!(causes(&body("x := rnd(7, rank)", "tree")), [WorkerCause::Rank]);
        assert_eq!(causes(&body("x := f(j, workers)", "tree")), [WorkerCause::Workers]);
        let shared = causes(&body("x := draw g", "tree"));
        assert_eq!(shared, [WorkerCause::Shared(Variable(0))]);
        assert_eq!(causes(&body("x := f(j)\n out j", "tree")), [WorkerCause::Output]);
    }

    #[test]
    fn a_dependence_that_reaches_no_output_is_ignored() {
        assert_eq!(causes("log := f(rank)\nout 1"), []);
        assert_eq!(causes("if first(rank) {\n out 1\n}"), [WorkerCause::Rank]);
    }

    #[test]
    fn an_unreachable_checkpoint_has_no_save_set() {
        let (_, typing) = typed("s := map j < n {\n ckpt L\n j\n} reduce tree\nout s");
        assert_eq!(typing.save(Label(0)), None);
    }

    #[test]
    fn long_and_deep_programs_are_inferred() {
        let mut text = String::from("w := init()\n");
        for depth in 0..6 {
            text += &format!("for i{depth} < n {{\n");
        }
        for line in 0..20_000 {
            text += &format!("x{} := f(w, x{})\n", line % 500, (line + 7) % 500);
            if line % 50 == 0 {
                text += &format!("if c(w) {{\n w := g(w, x{})\n}}\n", line % 500);
            }
        }
        text += "ckpt L\n}}}}}}\nout w";
        assert_eq!(saved(&text).first().map(String::as_str), Some("w"));
    }
}
