//! Tables of calls, and their lookup.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Effect, TABLES};

/// Effects by name; the first row that matches counts.
///
/// The first column lists names, separated by spaces. `*` stands for any text, a leading `*.` for any module,
/// a trailing `@` for any name that ends in that of a class, and `.` for the library itself.
pub(super) type Calls = &'static [(&'static str, Effect)];

/// The calls of one library.
pub(super) struct Library {
    /// First parts of its qualified names, separated by spaces.
    pub roots: &'static str,
    /// Other prefixes and the ones that they stand for.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Calls, by name below the root.
    pub calls: Calls,
    /// Tables for the rest: a name that matches the pattern is looked up by its last part.
    pub sections: &'static [(&'static str, Calls)],
    /// The effect of calls that are not listed; they are unknown if there is none.
    pub otherwise: Option<Effect>,
}

impl Library {
    /// A library whose calls compute something from their arguments unless they are listed.
    pub(super) const fn new(roots: &'static str, calls: Calls) -> Library {
        let otherwise = Some(Effect::Pure);
        Library { roots, aliases: &[], calls, sections: &[], otherwise }
    }

    /// A library whose calls all have the same effect unless they are listed.
    pub(super) const fn uniform(roots: &'static str, calls: Calls, effect: Effect) -> Library {
        Library { otherwise: Some(effect), ..Library::new(roots, calls) }
    }
}

/// A table, indexed.
struct Index {
    exact: HashMap<&'static str, (usize, Effect)>,
    patterns: Vec<(usize, &'static str, Effect)>,
}

impl Index {
    fn new(calls: Calls) -> Index {
        let mut index = Index { exact: HashMap::new(), patterns: Vec::new() };
        for (row, (names, effect)) in calls.iter().enumerate() {
            for name in names.split_whitespace() {
                if name == "." {
                    index.exact.entry("").or_insert((row, *effect));
                } else if name.contains(['*', '@']) {
                    index.patterns.push((row, name, *effect));
                } else {
                    index.exact.entry(name).or_insert((row, *effect));
                }
            }
        }
        index
    }

    fn get(&self, name: &str) -> Option<Effect> {
        let exact = self.exact.get(name);
        let before = exact.map_or(usize::MAX, |(row, _)| *row);
        let earlier = self.patterns.iter().take_while(|(row, ..)| *row < before);
        let found = earlier.filter(|(_, pattern, _)| matches(pattern, name)).map(|it| it.2).next();
        found.or(exact.map(|(_, effect)| *effect))
    }
}

/// The indexed tables of a library.
struct Tables {
    calls: Index,
    sections: Vec<(&'static str, Index)>,
    otherwise: Option<Effect>,
}

static INDEX: LazyLock<HashMap<&str, Tables>> = LazyLock::new(|| {
    let mut index = HashMap::new();
    for library in TABLES.iter().copied().flatten() {
        for root in library.roots.split_whitespace() {
            let sections = library.sections.iter();
            let tables = Tables {
                calls: Index::new(library.calls),
                sections: sections.map(|(pattern, calls)| (*pattern, Index::new(calls))).collect(),
                otherwise: library.otherwise,
            };
            index.insert(root, tables);
        }
    }
    index
});

/// The effect of a call of a qualified name; none if the library is unknown.
pub(crate) fn effect_of(name: &str) -> Option<Effect> {
    let (root, rest) = name.split_once('.').unwrap_or((name, ""));
    let tables = INDEX.get(root)?;
    let in_section = || {
        let mut sections = tables.sections.iter();
        let (_, index) = sections.find(|(pattern, _)| matches(pattern, rest))?;
        index.get(last(rest))
    };
    tables.calls.get(rest).or_else(in_section).or(tables.otherwise)
}

/// A qualified name with the prefix of its library replaced by the one used in the tables.
pub(crate) fn canonical(name: &str) -> Cow<'_, str> {
    let aliases = TABLES.iter().copied().flatten().flat_map(|library| library.aliases);
    for (from, to) in aliases {
        if let Some(rest) = name.strip_prefix(from)
            && (rest.is_empty() || rest.starts_with('.'))
        {
            return format!("{to}{rest}").into();
        }
    }
    name.into()
}

fn matches(pattern: &str, name: &str) -> bool {
    if let Some(pattern) = pattern.strip_prefix("*.") {
        return matches(pattern, last(name));
    }
    if let Some(prefix) = pattern.strip_suffix('@') {
        let is_class = last(name).starts_with(|c: char| c.is_ascii_uppercase());
        return is_class && name.starts_with(prefix);
    }
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, "")) => name.starts_with(start),
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len())
                .filter(|at| name.is_char_boundary(*at))
                .any(|at| matches(rest, &name[at..]))
        }),
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_prefixes_last_parts_and_classes() {
        assert!(matches("random.*", "random.normal") && !matches("random.*", "randomize"));
        assert!(matches("*.tqdm", "notebook.tqdm") && matches("*.tqdm", "tqdm"));
        assert!(matches("optim.@", "optim.sgd.SGD") && !matches("optim.@", "optim.step"));
        assert!(matches("*Conv*", "SeparableConv2D") && !matches("*Conv*", "Dense"));
    }

    #[test]
    fn the_first_row_that_matches_counts() {
        let index =
            Index::new(&[("a.b", Effect::Same), ("a.*", Effect::Silent), ("a.c", Effect::Load)]);
        let effects = ["a.b", "a.c", "b"].map(|name| index.get(name));
        assert_eq!(effects, [Some(Effect::Same), Some(Effect::Silent), None]);
    }

    #[test]
    fn every_root_has_one_table() {
        let roots = TABLES.iter().copied().flatten().flat_map(|it| it.roots.split_whitespace());
        assert_eq!(roots.count(), INDEX.len());
    }
}
