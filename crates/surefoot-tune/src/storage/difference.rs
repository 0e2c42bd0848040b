//! Differences between two study files, key by key.

use crate::study::DEFAULTS;
use std::collections::{BTreeMap, BTreeSet};
use toml_edit::{DocumentMut, Item, Value};

/// Maximum number of keys to list.
const MAX_KEYS: usize = 3;
/// Maximum number of characters of a value.
const MAX_CHARS: usize = 40;

/// Lists the keys that differ between two [fingerprints](crate::Study::fingerprint). A key that is
/// missing on one side does not differ from its default.
pub(super) fn of_texts(there: &str, here: &str) -> Vec<String> {
    let (Some(there), Some(here)) = (keys(there), keys(here)) else {
        return vec!["it was created from another file".to_owned()];
    };
    let all: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
    let mut clauses = Vec::new();
    for key in all {
        match (there.get(key), here.get(key)) {
            (there, here) if there == here => {}
            (there, here) => {
                let shown = |value: Option<&String>| value.map_or("not set".to_owned(), |v| cut(v));
                clauses.push(format!("`{key}` is {}, here {}", shown(there), shown(here)));
            }
        }
    }
    let left_out = clauses.len().saturating_sub(MAX_KEYS);
    clauses.truncate(MAX_KEYS);
    if left_out > 0 {
        clauses.push(format!("and {left_out} more"));
    }
    clauses
}

/// Values of a fingerprint by key, without defaults; `None` if it cannot be parsed.
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
    let shown: String = value.chars().take(MAX_CHARS).collect();
    let more = if shown.len() < value.len() { "…" } else { "" };
    format!("{shown}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_keys_are_listed_with_both_values() {
        let there = r#"{"model"=[{"units"=3},{"units"=1}],"tune"={"sampler"="gp"}}"#;
        let here = r#"{"model"=[{"units"=3},{"units"=2}],"tune"={"pruner"=["none"]}}"#;
        assert_eq!(
            of_texts(there, here),
            [
                "`model.1.units` is 1, here 2",
                "`tune.pruner` is not set, here [\"none\"]",
                "`tune.sampler` is \"gp\", here not set",
            ]
        );
    }

    #[test]
    fn default_values_are_not_differences() {
        let there = r#"{"tune"={"name"="a"}}"#;
        let here = r#"{"tune"={"name"="a","seed"=0,"protect"=3}}"#;
        assert!(of_texts(there, here).is_empty());
    }

    #[test]
    fn many_differences_are_counted_and_long_values_cut() {
        let here = format!("{{\"a\"=\"{}\",\"b\"=2,\"c\"=3,\"d\"=4,\"e\"=5}}", "x".repeat(50));
        let differences = of_texts("{}", &here);
        assert_eq!(differences[0], format!("`a` is not set, here \"{}…", "x".repeat(39)));
        assert_eq!(differences[3], "and 2 more");
    }

    #[test]
    fn texts_that_differ_after_the_cut_differ() {
        let text = |end: &str| format!("{{\"command\"=\"{}{end}\"}}", "x".repeat(50));
        let differences = of_texts(&text("1"), &text("2"));
        assert!(differences[0].starts_with("`command` is \"xxx"), "{differences:?}");
    }

    #[test]
    fn unreadable_fingerprints_differ_as_a_whole() {
        assert_eq!(of_texts("one", "two"), ["it was created from another file"]);
    }
}
