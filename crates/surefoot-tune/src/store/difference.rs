//! What two studies say differently, key by key.

use crate::study::DEFAULTS;
use std::collections::{BTreeMap, BTreeSet};
use toml_edit::{DocumentMut, Item, Value};

/// How many keys are told.
const MOST: usize = 3;
/// How much is told of a value, in characters.
const LETTERS: usize = 40;

/// A clause for each key that one study has otherwise than the other, by their
/// [fingerprints](crate::Study::fingerprint). There is none where one only says what the other leaves to be understood.
pub(super) fn of_texts(there: &str, here: &str) -> Vec<String> {
    let (Some(there), Some(here)) = (keys(there), keys(here)) else {
        return vec!["it was made from another file".to_owned()];
    };
    let all: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
    let mut clauses = Vec::new();
    for key in all {
        match (there.get(key), here.get(key)) {
            (there, here) if there == here => {}
            (there, here) => {
                let told = |value: Option<&String>| value.map_or("not set".to_owned(), |v| cut(v));
                clauses.push(format!("`{key}` is {} in it, {} here", told(there), told(here)));
            }
        }
    }
    let left_out = clauses.len().saturating_sub(MOST);
    clauses.truncate(MOST);
    if left_out > 0 {
        clauses.push(format!("and {left_out} more"));
    }
    clauses
}

/// The values of a fingerprint by their keys, without those that go without saying; `None` if it cannot be read.
fn keys(fingerprint: &str) -> Option<BTreeMap<String, String>> {
    let mut keys = BTreeMap::new();
    let document = format!("study={fingerprint}").parse::<DocumentMut>().ok()?;
    if let Item::Value(value) = document.get("study")? {
        gather(value, "", &mut keys);
    }
    for (key, value) in DEFAULTS {
        let key = format!("tune.{key}");
        if keys.get(&key).is_some_and(|said| said.replace(' ', "") == value) {
            keys.remove(&key);
        }
    }
    Some(keys)
}

fn gather(value: &Value, key: &str, keys: &mut BTreeMap<String, String>) {
    let within = |part: &str| match key {
        "" => part.to_owned(),
        key => format!("{key}.{part}"),
    };
    match value {
        Value::InlineTable(table) => {
            for (part, value) in table {
                gather(value, &within(part), keys);
            }
        }
        Value::Array(values) if values.iter().any(Value::is_inline_table) => {
            for (index, value) in values.iter().enumerate() {
                gather(value, &within(&index.to_string()), keys);
            }
        }
        value => {
            keys.insert(key.to_owned(), value.to_string().trim().to_owned());
        }
    }
}

fn cut(value: &str) -> String {
    let shown: String = value.chars().take(LETTERS).collect();
    let more = if shown.len() < value.len() { "…" } else { "" };
    format!("{shown}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_are_told_with_both_values() {
        let there = r#"{"model"=[{"units"=3},{"units"=1}],"tune"={"sampler"="gp"}}"#;
        let here = r#"{"model"=[{"units"=3},{"units"=2}],"tune"={"pruner"=["none"]}}"#;
        assert_eq!(
            of_texts(there, here),
            [
                "`model.1.units` is 1 in it, 2 here",
                "`tune.pruner` is not set in it, [\"none\"] here",
                "`tune.sampler` is \"gp\" in it, not set here",
            ]
        );
    }

    #[test]
    fn what_goes_without_saying_may_be_said() {
        let there = r#"{"tune"={"name"="a"}}"#;
        let here = r#"{"tune"={"name"="a","seed"=0,"pruner"=["diagnosis", "prospect"]}}"#;
        assert!(of_texts(there, here).is_empty());
    }

    #[test]
    fn many_differences_are_counted_and_long_ones_cut() {
        let here = format!("{{\"a\"=\"{}\",\"b\"=2,\"c\"=3,\"d\"=4,\"e\"=5}}", "x".repeat(50));
        let told = of_texts("{}", &here);
        assert_eq!(told[0], format!("`a` is not set in it, \"{}… here", "x".repeat(39)));
        assert_eq!(told[3], "and 2 more");
    }

    #[test]
    fn texts_that_part_late_differ() {
        let text = |end: &str| format!("{{\"command\"=\"{}{end}\"}}", "x".repeat(50));
        let told = of_texts(&text("1"), &text("2"));
        assert!(told[0].starts_with("`command` is \"xxx"), "{told:?}");
    }

    #[test]
    fn what_cannot_be_read_differs_as_a_whole() {
        assert_eq!(of_texts("one", "two"), ["it was made from another file"]);
    }
}
