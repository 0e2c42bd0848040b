//! What is wrong with a table of settings, in words.

use serde_json::Value;

/// The key of a table that cannot be read, with what is wrong with it; `None` if it is no single one.
/// `read` says whether a table can be read.
pub(crate) fn wrong_key<'t>(
    table: &'t Value,
    message: &str,
    read: impl Fn(Value) -> bool,
) -> Option<(&'t str, String)> {
    let settings = table.as_object()?.iter();
    let mut wrong = settings.filter(|(key, value)| {
        let alone = serde_json::json!({"name": table["name"], key.as_str(): value});
        *key != "name" && !read(alone)
    });
    let (key, value) = wrong.next()?;
    // It is named already where it is not known.
    let message = match message.contains(&format!("`{key}`")) {
        true => return None,
        false => is_not(value, message),
    };
    Some((key, format!("`{key}` is {message}")))
}

/// A value and what it is not, for one that was read where something else belongs: `-3, not a whole
/// number, 0 or more`.
pub(crate) fn is_not(value: &Value, message: &str) -> String {
    let wanted = [
        ("expected a nonzero", "a whole number of at least 1"),
        ("expected u", "a whole number, 0 or more"),
        ("expected f64", "a number"),
        ("expected a boolean", "true or false"),
        ("no share from 0 to 1", "a share from 0 to 1"),
    ];
    let found = wanted.iter().find(|(part, _)| message.contains(part));
    match found {
        Some((_, wanted)) => format!("{value}, not {wanted}"),
        None => format!("{value}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_key_that_is_wrong_is_named_with_what_would_be_right() {
        let table = json!({"name": "tpe", "candidates": 3, "startup": -3});
        let read = |table: Value| table.get("startup").is_none();
        let found = wrong_key(&table, "invalid value: integer `-3`, expected usize", read);
        let said = "`startup` is -3, not a whole number, 0 or more".to_owned();
        assert_eq!(found, Some(("startup", said)));
        assert_eq!(wrong_key(&json!("tpe"), "unknown", |_| false), None);
    }
}
