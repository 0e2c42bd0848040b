//! Prints records and choices as TOML, without keys at their defaults.

use super::{Choice, Fields, Record, Rule, Term};

/// Collects the keys of a record and their values as TOML.
#[derive(Default)]
pub(crate) struct Writer {
    entries: Vec<Line>,
}

struct Line {
    key: &'static str,
    /// `None` for a key without a value.
    text: Option<String>,
    required: bool,
}

impl Writer {
    fn of<R: Record + Clone>(record: &R) -> Self {
        let mut writer = Self::default();
        record.clone().fields(&mut writer);
        writer
    }
}

#[cfg(test)]
impl Writer {
    /// Every key of a record.
    pub(crate) fn keys<R: Record + Clone>(record: &R) -> Vec<&'static str> {
        Self::of(record).entries.iter().map(|line| line.key).collect()
    }
}

impl<'a> Fields<'a> for Writer {
    fn required<T: Term>(&mut self, key: &'static str, value: &'a mut T, _: Rule<T>) {
        self.entries.push(Line { key, text: Some(value.write()), required: true });
    }

    fn optional<T: Term>(&mut self, key: &'static str, value: &'a mut T, _: Rule<T>) {
        self.entries.push(Line { key, text: Some(value.write()), required: false });
    }

    fn maybe<T: Term>(&mut self, key: &'static str, value: &'a mut Option<T>, _: Rule<T>) {
        self.entries.push(Line { key, text: value.as_ref().map(Term::write), required: false });
    }
}

/// The keys of `record` that are required or differ from `start`.
pub(crate) fn changed<R: Record + Clone>(record: &R, start: &R) -> Vec<(&'static str, String)> {
    Writer::of(record)
        .entries
        .into_iter()
        .zip(Writer::of(start).entries)
        .filter(|(line, default)| line.required || line.text != default.text)
        .filter_map(|(line, _)| Some((line.key, line.text?)))
        .collect()
}

/// The keys of a choice, its name first.
pub(crate) fn tagged<C: Choice>(value: &C) -> Vec<(&'static str, String)> {
    let name = value.variant();
    let mut lines = vec![(C::TAG, quoted(name))];
    if let Some(variant) = C::VARIANTS.iter().find(|variant| variant.name == name) {
        lines.extend(changed(value, &(variant.start)()));
    }
    lines
}

/// A choice as a value: its name, or a table on one line.
pub(super) fn choice<C: Choice>(value: &C) -> String {
    let lines = tagged(value);
    if lines.len() == 1 && C::BARE {
        return quoted(value.variant());
    }
    inline(&lines)
}

/// A record whose keys all have defaults, as a table on one line.
pub(crate) fn write_record<R: Record + Clone + Default>(record: &R) -> String {
    inline(&changed(record, &R::default()))
}

/// A table on one line.
pub(crate) fn inline(lines: &[(&str, String)]) -> String {
    let lines: Vec<_> = lines.iter().map(|(key, text)| format!("{key} = {text}")).collect();
    match lines.is_empty() {
        true => "{}".to_owned(),
        false => format!("{{ {} }}", lines.join(", ")),
    }
}

/// A string as TOML.
pub(crate) fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}
