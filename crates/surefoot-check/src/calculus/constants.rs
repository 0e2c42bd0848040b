//! Constant propagation through branches and loops.
//!
//! A node that merges branches or iterations is a constant if all its inputs are the same constant.
//! Gradients that are cleared at the end of every iteration, for example, are empty at the start of
//! each, even if an iteration can end early, and need not be saved.

use super::flow::{Flow, Kind, Node};

/// Lattice of constant propagation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lattice {
    /// No input visited yet.
    Unvisited,
    /// All inputs so far are this constant.
    Constant(Kind),
    /// Inputs differ.
    Varying,
}

impl Lattice {
    fn meet(self, other: Lattice) -> Lattice {
        match (self, other) {
            (Lattice::Unvisited, known) | (known, Lattice::Unvisited) => known,
            (one, other) if one == other => one,
            _ => Lattice::Varying,
        }
    }
}

/// Replaces merges of equal constants by the constant. The number of passes is bounded by the nesting
/// depth of loops plus a constant.
pub(super) fn propagate_constants(flow: &mut Flow) {
    let mut known = vec![Lattice::Unvisited; flow.nodes.len()];
    let mut is_changing = true;
    while is_changing {
        is_changing = false;
        for at in 0..flow.nodes.len() {
            let now = evaluate(flow, &known, at);
            is_changing |= now != known[at];
            known[at] = now;
        }
    }
    for (at, known) in known.into_iter().enumerate() {
        if let (Lattice::Constant(constant), Some(_)) = (known, merged(flow, at)) {
            flow.replace(Node(at as u32), constant);
        }
    }
}

fn evaluate(flow: &Flow, known: &[Lattice], at: usize) -> Lattice {
    if let Some(inputs) = merged(flow, at) {
        let inputs = inputs.iter().map(|node| known[node.index()]);
        return inputs.fold(Lattice::Unvisited, Lattice::meet);
    }
    let kind = flow.nodes[at].kind;
    match kind {
        Kind::Unset | Kind::Constant(_) => Lattice::Constant(kind),
        Kind::Apply(_) if flow.edges(Node(at as u32)).is_empty() => Lattice::Constant(kind),
        _ => Lattice::Varying,
    }
}

/// Returns the inputs of a node that merges several values.
fn merged(flow: &Flow, at: usize) -> Option<&[Node]> {
    let edges = flow.edges(Node(at as u32));
    match flow.nodes[at].kind {
        Kind::Either | Kind::Exit(_) => Some(&edges[1..]),
        Kind::Head(_) => Some(edges),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::tests::parse;
    use crate::calculus::{Label, infer};

    fn saved(text: &str) -> Vec<String> {
        let program = parse(text).unwrap();
        let typing = infer(&program);
        let members = &typing.save(Label(0)).unwrap().members;
        members.iter().map(|member| program.name(member.variable).to_owned()).collect()
    }

    #[test]
    fn a_constant_on_every_path_is_not_saved() {
        let cleared = |end: &str| {
            format!(
                "g := none()\nfor i < n {{\n ckpt L\n if left(x) {{\n s := stop()\n }} else {{\n g := grad(g, w)\n w := step(w, g)\n {end}\n }}\n}}\nout w"
            )
        };
        assert_eq!(saved(&cleared("g := none()")), ["w"]);
        assert_eq!(saved(&cleared("g := half()")), ["g", "w"]);
    }
}
