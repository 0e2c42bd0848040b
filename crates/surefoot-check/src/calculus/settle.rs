//! Values that are the same whichever way the program took.
//!
//! Where branches meet and where a loop begins its next round, a node stands for what either way left in
//! a variable. If all of them left the same constant, nothing was decided and nothing is carried round:
//! gradients that are cleared at the end of every round are none at the beginning of each, whether or not
//! the round was left early.

use super::flow::{Flow, Kind, Node};

/// What is known of a node while it is looked for what all ways agree on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Nothing has reached it so far.
    Nothing,
    /// All that has reached it so far is this constant.
    Constant(Kind),
    /// It may be anything.
    Anything,
}

impl Known {
    fn meet(self, other: Known) -> Known {
        match (self, other) {
            (Known::Nothing, known) | (known, Known::Nothing) => known,
            (one, other) if one == other => one,
            _ => Known::Anything,
        }
    }
}

/// Puts constants in the place of choices between equals. Each pass gets to the end of one more loop, so
/// there are no more than loops are deep, and a few.
pub(super) fn settle(flow: &mut Flow) {
    let mut known = vec![Known::Nothing; flow.nodes.len()];
    let mut is_changing = true;
    while is_changing {
        is_changing = false;
        for at in 0..flow.nodes.len() {
            let now = look(flow, &known, at);
            is_changing |= now != known[at];
            known[at] = now;
        }
    }
    for (at, known) in known.into_iter().enumerate() {
        if let (Known::Constant(constant), Some(_)) = (known, choices(flow, at)) {
            flow.replace(Node(at as u32), constant);
        }
    }
}

fn look(flow: &Flow, known: &[Known], at: usize) -> Known {
    if let Some(choices) = choices(flow, at) {
        let choices = choices.iter().map(|node| known[node.index()]);
        return choices.fold(Known::Nothing, Known::meet);
    }
    let kind = flow.nodes[at].kind;
    match kind {
        Kind::Unset | Kind::Constant(_) => Known::Constant(kind),
        Kind::Apply(_) if flow.edges(Node(at as u32)).is_empty() => Known::Constant(kind),
        _ => Known::Anything,
    }
}

/// The values that a node stands for, if it stands for one of several.
fn choices(flow: &Flow, at: usize) -> Option<&[Node]> {
    let edges = flow.edges(Node(at as u32));
    match flow.nodes[at].kind {
        Kind::Either | Kind::Exit(_) => Some(&edges[1..]),
        Kind::Head(_) => Some(edges),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::calculus::{Label, infer, parse};

    fn saved(text: &str) -> Vec<String> {
        let program = parse(text).unwrap();
        let typing = infer(&program);
        let members = &typing.save(Label(0)).unwrap().members;
        members.iter().map(|member| program.name(member.variable).to_owned()).collect()
    }

    #[test]
    fn what_every_way_leaves_alike_is_not_carried() {
        let cleared = |end: &str| {
            format!(
                "g := none()\nfor i < n {{\n ckpt L\n if left(x) {{\n s := stop()\n }} else {{\n g := grad(g, w)\n w := step(w, g)\n {end}\n }}\n}}\nout w"
            )
        };
        assert_eq!(saved(&cleared("g := none()")), ["w"]);
        assert_eq!(saved(&cleared("g := half()")), ["g", "w"]);
    }
}
