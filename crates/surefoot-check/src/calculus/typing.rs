//! The types of a program, and what its checkpoints must save.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::flow::{Flow, Kind, Loop, Node, Stop};
use super::intern::{TypeId, Types};
use super::live::{Live, live, relevant};
use super::outline::outline;
use super::solve::{Solution, origin, worker_cause};
use super::syntax::{Label, Program, Site, Variable};
use super::types::{Member, Reason, Recomputed, Save, Type, WorkerDependence};

/// The types of a program.
pub struct Typing {
    pub(super) flow: Flow,
    pub(super) solution: Solution,
    outputs: Vec<Output>,
    states: Vec<TypeId>,
    checkpoints: BTreeMap<Label, Checkpoint>,
    worker_dependences: Vec<WorkerDependence>,
    reaching: Vec<bool>,
}

/// An output and what it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The statement.
    pub site: Site,
    /// The types of all that is put out, and of what decides whether it is, joined.
    pub kind: Type,
}

struct Checkpoint {
    save: Save,
    /// The type of each variable.
    types: Vec<TypeId>,
}

/// The types of a program. It costs one pass forwards, one backwards for each level of nested loops,
/// and no search.
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

    let mut checkpoints: BTreeMap<Label, Checkpoint> = BTreeMap::new();
    for (stop, live) in flow.stops.iter().zip(&live) {
        let here = Checkpoint {
            save: save(&flow, &solution, &relevant, stop, live),
            types: stop.state.iter().map(|node| solution.id(*node)).collect(),
        };
        match checkpoints.entry(stop.label) {
            Entry::Vacant(free) => {
                free.insert(here);
            }
            Entry::Occupied(mut known) => known.get_mut().join(here, &mut solution.types),
        }
    }

    let worker_dependences = worker_dependences(&flow, &relevant);
    let mut reaching = vec![false; program.variables.len()];
    for (definition, relevant) in flow.nodes.iter().zip(&relevant) {
        if let Some(variable) = definition.variable {
            reaching[variable.0 as usize] |= relevant;
        }
    }
    Typing { flow, solution, outputs, states, checkpoints, worker_dependences, reaching }
}

impl Typing {
    /// What a checkpoint must hold. A label that stands in several places has what any of them
    /// needs; one that is never reached has nothing.
    pub fn save(&self, label: Label) -> Option<&Save> {
        self.checkpoints.get(&label).map(|known| &known.save)
    }

    /// The outputs, in the order in which they are written down.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The type of a variable at a checkpoint.
    pub fn at(&self, label: Label, variable: Variable) -> Option<&Type> {
        let known = self.checkpoints.get(&label)?;
        let id = known.types.get(variable.0 as usize)?;
        Some(self.solution.types.get(*id))
    }

    /// All that ever flows into a variable.
    pub fn state(&self, variable: Variable) -> &Type {
        self.solution.types.get(self.states[variable.0 as usize])
    }

    /// Whether anything that is ever in a variable reaches an output.
    pub fn reaches_output(&self, variable: Variable) -> bool {
        self.reaching[variable.0 as usize]
    }

    /// Why outputs, and so what is saved, differ with the workers. If there is nothing, the program
    /// gives the same for any number of them.
    pub fn worker_dependences(&self) -> Vec<WorkerDependence> {
        self.worker_dependences.clone()
    }
}

impl Checkpoint {
    fn join(&mut self, other: Checkpoint, types: &mut Types) {
        for (one, other) in self.types.iter_mut().zip(&other.types) {
            *one = types.join(*one, *other);
        }
        let Save { members, counters, bounds, recomputed, fresh } = other.save;
        let save = &mut self.save;
        for member in members {
            if save.member(member.variable).is_none() {
                save.members.push(member);
            }
        }
        save.members.sort_by_key(|member| member.variable);
        for found in recomputed {
            if save.recomputed.iter().all(|known| known.variable != found.variable) {
                save.recomputed.push(found);
            }
        }
        save.recomputed.sort_by_key(|known| known.variable);
        for (into, from) in [(&mut save.counters, counters), (&mut save.bounds, bounds)] {
            for counter in from {
                if !into.contains(&counter) {
                    into.push(counter);
                }
            }
        }
        save.fresh.extend(fresh);
        save.fresh.sort_unstable();
        save.fresh.dedup();
    }
}

fn save(flow: &Flow, solution: &Solution, relevant: &[bool], stop: &Stop, live: &Live) -> Save {
    let mut save = Save {
        counters: stop.loops.iter().map(|around| around.counter).collect(),
        ..Save::default()
    };
    for around in &stop.loops {
        let open = !solution.get(around.bound).quality.is_recomputable();
        if open && relevant[around.bound.index()] {
            save.bounds.push(around.counter);
        }
    }
    for (at, (node, used_at)) in stop.state.iter().zip(&live.variables).enumerate() {
        let Some(used_at) = *used_at else { continue };
        let variable = Variable(at as u32);
        let quality = solution.get(*node).quality;
        if !quality.is_recomputable() {
            save.members.push(Member {
                variable,
                quality,
                reason: reason(flow, solution, *node, variable),
                used_at,
            });
        } else if changes_around(flow, stop, *node) {
            save.recomputed.push(Recomputed { variable, used_at });
        }
    }
    save.fresh = live.fresh.iter().filter_map(|node| origin(flow, *node)).collect();
    save.fresh.sort_unstable();
    save.fresh.dedup();
    save
}

/// Whether a node was made in the loops around a checkpoint, other than as one of their counters.
fn changes_around(flow: &Flow, stop: &Stop, node: Node) -> bool {
    let is_counter = matches!(flow.nodes[node.index()].kind, Kind::Counter(_));
    let inside = |outermost: &Loop| node >= outermost.first;
    !is_counter && stop.loops.first().is_some_and(inside)
}

/// Why a node that is history or external cannot be recomputed.
fn reason(flow: &Flow, solution: &Solution, node: Node, variable: Variable) -> Reason {
    let definition = |node: Node| &flow.nodes[node.index()];
    if let Some(origin) = solution.get(node).external().next() {
        return Reason::External { origin: *origin };
    }
    let begins = solution.root(node).unwrap_or(node);
    let circle = solution.circle(begins);
    let own = |kind: fn(Kind) -> bool| {
        circle.iter().copied().find(|node| {
            let definition = definition(*node);
            definition.variable == Some(variable) && kind(definition.kind)
        })
    };
    let shared = circle
        .iter()
        .find(|node| matches!(definition(**node).kind, Kind::SharedHead | Kind::SharedExit));
    if let Some(shared) = shared {
        let shared = definition(*shared);
        return Reason::Shared {
            generator: shared.variable.unwrap_or(variable),
            site: shared.site,
        };
    }
    let head = own(|kind| matches!(kind, Kind::Head(_)));
    let around = definition(head.unwrap_or(begins)).site;
    match head {
        None => Reason::Derived { from: definition(begins).variable.unwrap_or(variable), around },
        Some(_) => match own(|kind| kind == Kind::Next) {
            Some(draw) => Reason::Moved { around, drawn_at: definition(draw).site },
            None => Reason::Carried { around },
        },
    }
}

/// All causes that reach an output. What is saved reaches one too, or it would not be saved.
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
    use super::super::{OriginKind, Quality, WorkerCause, parse};
    use super::*;

    /// A program, its types, and the names of what its checkpoint `L` must hold.
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
        typing.at(Label(0), named(&program, name)).unwrap().quality
    }

    #[test]
    fn what_a_loop_carries_round_is_saved_and_the_counter_with_it() {
        let text = "w := init()\nfor i < n {\n w := step(w)\n ckpt L\n}\nout w";
        let (program, typing) = typed(text);
        let save = typing.save(Label(0)).unwrap();
        assert_eq!(saved(text), ["w"]);
        assert_eq!(save.members[0].reason, Reason::Carried { around: Site(2) });
        assert_eq!(save.members[0].used_at, Site(3));
        assert_eq!(save.counters, [named(&program, "i")]);
        assert_eq!(save.fresh, []);
    }

    #[test]
    fn a_value_that_follows_from_the_counter_is_recomputed() {
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
    fn chains_of_recomputable_values_stay_so_and_exchanges_do_not() {
        let chain = "for i < n {\n ckpt L\n out c\n c := f(b)\n b := f(a)\n a := f(i)\n}";
        assert_eq!(saved(chain), [""; 0]);
        let exchange = "a := 1()\nb := 2()\nfor i < n {\n out b\n ckpt L\n c := f(a)\n a := f(b)\n b := f(c)\n}";
        assert_eq!(saved(exchange), ["a", "b"]);
    }

    #[test]
    fn counting_is_recomputable_also_in_nested_loops() {
        let text = "s := 0()\nfor i < n {\n for j < m {\n ckpt L\n s := succ(s)\n }\n}\nout s";
        assert_eq!(saved(text), [""; 0]);
        let other = "s := 0()\nfor i < n {\n for j < s {\n ckpt L\n s := succ(s)\n }\n}\nout s";
        assert_eq!(saved(other), ["s"]);
        let sometimes = "s := 0()\nfor i < n {\n ckpt L\n if c(i) {\n s := succ(s)\n }\n}\nout s";
        assert_eq!(saved(sometimes), ["s"]);
    }

    #[test]
    fn draws_before_the_loop_are_recomputed_and_draws_in_it_are_history() {
        let text = "g := seed 42\nw := draw g\nfor i < n {\n ckpt L\n out w\n}";
        assert_eq!(saved(text), [""; 0]);
        assert_eq!(quality(text, "g"), Quality::Key);
        let drawn = "g := seed 42\nfor i < n {\n ckpt L\n w := draw g\n out w\n}";
        let (program, typing) = typed(drawn);
        assert_eq!(saved(drawn), ["g"]);
        let member = &typing.save(Label(0)).unwrap().members[0];
        assert_eq!(member.reason, Reason::Moved { around: Site(2), drawn_at: Site(4) });
        assert_eq!(
            member.reason.sentence("g", &program, |site| format!("line {}", site.0)),
            "g is moved on by the draw at line 4 in the loop at line 2."
        );
        let keyed = "for i < n {\n ckpt L\n w := rnd(42, i)\n out w\n}";
        assert_eq!(saved(keyed), [""; 0]);
    }

    #[test]
    fn only_what_reaches_an_output_is_saved() {
        let text = "for i < n {\n w := step(w)\n log := mean(log, w)\n ckpt L\n}\nout w";
        assert_eq!(saved(text), ["w"]);
        let decides = "for i < n {\n w := step(w)\n ckpt L\n if good(w) {\n out i\n }\n}";
        assert_eq!(saved(decides), ["w"]);
    }

    #[test]
    fn what_is_overwritten_first_is_not_saved() {
        let text =
            "for i < n {\n w := step(w)\n loss := f(w)\n ckpt L\n out loss\n loss := g(w)\n}";
        assert_eq!(saved(text), ["w", "loss"]);
        let overwritten =
            "for i < n {\n w := step(w)\n loss := f(w)\n ckpt L\n loss := g(w)\n out loss\n}";
        assert_eq!(saved(overwritten), ["w"]);
    }

    #[test]
    fn what_is_read_from_outside_is_external_wherever_it_flows() {
        let text = "t := env clock\ng := seed t\nfor i < n {\n x := draw g\n ckpt L\n out x\n}";
        let (program, typing) = typed(text);
        assert_eq!(saved(text), ["g", "x"]);
        let member = typing.save(Label(0)).unwrap().member(named(&program, "g")).unwrap();
        assert_eq!(member.quality, Quality::External);
        let Reason::External { origin } = member.reason else { panic!("{:?}", member.reason) };
        assert_eq!((origin.kind, origin.site), (OriginKind::Environment, Site(1)));
        let kinds: Vec<_> = typing.outputs()[0].kind.sources.iter().map(|o| o.kind).collect();
        assert_eq!(kinds, [OriginKind::Seed, OriginKind::Environment]);
    }

    #[test]
    fn a_condition_is_a_source_of_what_is_written_under_it() {
        let text = "t := env clock\nx := 1()\nif late(t) {\n x := 2()\n}\nckpt L\nout x";
        assert_eq!(quality(text, "x"), Quality::External);
        assert_eq!(saved(text), ["x"]);
    }

    #[test]
    fn what_is_still_to_come_from_outside_is_told() {
        let text = "x := env a\nfor i < n {\n ckpt L\n y := nd sum(x)\n out y\n}\nz := env b\nz := f()\nout z";
        let (_, typing) = typed(text);
        let fresh = &typing.save(Label(0)).unwrap().fresh;
        let found: Vec<_> = fresh.iter().map(|o| (o.kind, o.site)).collect();
        assert_eq!(found, [(OriginKind::Nondeterministic, Site(4))]);
    }

    #[test]
    fn a_bound_that_cannot_be_recomputed_is_saved_beside_the_counter() {
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
    fn a_map_with_keys_and_a_tree_is_accepted() {
        let text = "k := fold 7 1\ns := map j < n {\n g := seed k j\n x := draw g\n x\n} reduce tree\nout s";
        assert_eq!(causes(text), []);
    }

    #[test]
    fn ranks_rings_arrivals_and_shared_generators_are_not() {
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
    fn a_dependence_on_workers_that_reaches_no_output_is_none() {
        assert_eq!(causes("log := f(rank)\nout 1"), []);
        assert_eq!(causes("if first(rank) {\n out 1\n}"), [WorkerCause::Rank]);
    }

    #[test]
    fn a_label_that_is_never_reached_has_no_set() {
        let (_, typing) = typed("s := map j < n {\n ckpt L\n j\n} reduce tree\nout s");
        assert_eq!(typing.save(Label(0)), None);
    }

    #[test]
    fn programs_may_be_long_and_deep() {
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
