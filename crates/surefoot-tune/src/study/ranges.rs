//! Collects the ranges of a study.

use super::read::Reader;
use super::template::{Action, Spot};
use crate::space::{Condition, Domain, Parameter, Value};
use surefoot_plan::{PlanError, nearest};
use toml_edit::{Item, TableLike, Value as Toml};

/// Keys that make a table a range.
pub(super) const RANGES: [&str; 5] = ["uniform", "log_uniform", "int", "log_int", "choice"];

/// Collects everything that depends on the point.
pub(super) struct Walk<'a> {
    pub(super) reader: &'a Reader<'a>,
    /// Parameters with their paths.
    pub(super) parameters: Vec<(Parameter, String)>,
    pub(super) spots: Vec<Spot>,
    /// Conditions of the enclosing tables.
    pub(super) within: Vec<Condition>,
    /// Uses of parameters by name.
    pub(super) uses: Vec<(String, String)>,
}

impl Walk<'_> {
    /// Reads `[parameters]`.
    pub(super) fn own(&mut self, item: &Item) -> Result<(), PlanError> {
        let section = self.reader.section("parameters", Some(item))?;
        for (key, item) in section.into_iter().flat_map(|table| table.iter()) {
            let path = format!("parameters.{key}");
            let table = item.as_table_like();
            match table.filter(|table| is_range(*table)) {
                Some(range) => {
                    let parameter = self.range(&path, key, range)?;
                    self.parameters.push((parameter, path));
                }
                None => {
                    if let Some(table) = table {
                        self.spelled(&path, table)?;
                    }
                    let message = format!("`{key}` must be a range");
                    let help = format!(
                        "write `{key} = {{ uniform = [0.0, 1.0] }}`; also: log_uniform, int, log_int, choice"
                    );
                    return Err(self.reader.document.error_at(&path, message, Some(help)));
                }
            }
        }
        Ok(())
    }

    pub(super) fn table(
        &mut self,
        table: &dyn TableLike,
        path: &mut Vec<String>,
    ) -> Result<(), PlanError> {
        for (key, item) in table.iter() {
            path.push(key.to_owned());
            self.item(item, path)?;
            path.pop();
        }
        Ok(())
    }

    fn item(&mut self, item: &Item, path: &mut Vec<String>) -> Result<(), PlanError> {
        if let Some(table) = item.as_table_like() {
            return self.place(table, path);
        }
        match item {
            Item::ArrayOfTables(tables) => {
                for (index, table) in tables.iter().enumerate() {
                    path.push(index.to_string());
                    self.place(table, path)?;
                    path.pop();
                }
                Ok(())
            }
            Item::Value(value) => self.value(value, path),
            _ => Ok(()),
        }
    }

    fn value(&mut self, value: &Toml, path: &mut Vec<String>) -> Result<(), PlanError> {
        match value {
            Toml::InlineTable(table) => self.place(table, path),
            Toml::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    path.push(index.to_string());
                    self.value(value, path)?;
                    path.pop();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Handles a table: a range, a use of a parameter, a conditional part, or a plain part.
    fn place(&mut self, table: &dyn TableLike, path: &mut Vec<String>) -> Result<(), PlanError> {
        let place = path.join(".");
        if is_range(table) {
            let parameter = self.range(&place, &place, table)?;
            self.spots
                .push(Spot { path: path.clone(), action: Action::Value(parameter.name.clone()) });
            self.parameters.push((parameter, place));
            return Ok(());
        }
        if let Some(name) = table.get("use").and_then(Item::as_str) {
            self.reader.only(&place, Some(table), &["use"])?;
            self.uses.push((format!("{place}.use"), name.to_owned()));
            self.spots.push(Spot { path: path.clone(), action: Action::Value(name.to_owned()) });
            return Ok(());
        }
        self.spelled(&place, table)?;
        let outside = self.within.len();
        // Added before its parts, because spots are applied in reverse.
        if let Some(item) = table.get("if") {
            let conditions = self.reader.conditions(&place, item)?;
            self.within.extend(conditions.iter().cloned());
            self.spots.push(Spot { path: path.clone(), action: Action::Keep(conditions) });
        }
        for (key, item) in table.iter().filter(|(key, _)| *key != "if") {
            path.push(key.to_owned());
            self.item(item, path)?;
            path.pop();
        }
        self.within.truncate(outside);
        Ok(())
    }

    /// Rejects a misspelled range: a table with a single list.
    fn spelled(&self, path: &str, table: &dyn TableLike) -> Result<(), PlanError> {
        let mut own = table.iter().filter(|(key, _)| !["name", "if"].contains(key));
        match (own.next(), own.next()) {
            (Some((key, item)), None) if item.is_array() && nearest(key, RANGES).is_some() => {
                Err(self.reader.unknown(&format!("{path}.{key}"), "range", key, &RANGES))
            }
            _ => Ok(()),
        }
    }

    /// The parameter of a range, named `name` by default.
    fn range(&self, path: &str, name: &str, table: &dyn TableLike) -> Result<Parameter, PlanError> {
        let reader = self.reader;
        let mut kinds = RANGES.iter().filter(|kind| table.contains_key(kind));
        let kind = *kinds.next().unwrap_or(&RANGES[0]);
        if let Some(other) = kinds.next() {
            let message = format!("it is either `{kind}` or `{other}`");
            return Err(reader.fault(path, message));
        }
        reader.only(path, Some(table), &[kind, "name", "if"])?;
        let own_name = reader.text(path, Some(table), "name")?;
        let place = format!("{path}.{kind}");
        let values = table.get(kind).and_then(Item::as_array);
        let wrong = || {
            let expected = match kind {
                "choice" => "a list of values".to_owned(),
                "int" | "log_int" => "two integers, such as [1, 8]".to_owned(),
                _ => "two numbers, such as [0.1, 1.0]".to_owned(),
            };
            reader.fault(&place, format!("`{kind}` must be {expected}"))
        };
        let values = values.ok_or_else(wrong)?;
        let domain = match kind {
            "choice" => {
                let values = values.iter().map(scalar).collect::<Option<Vec<Value>>>();
                let values = values.ok_or_else(|| {
                    reader.fault(&place, "choices are numbers, words, true or false")
                })?;
                // Environment variables cannot contain NUL.
                let has_nul = |v: &Value| matches!(v, Value::Text(text) if text.contains('\0'));
                if values.iter().any(has_nul) {
                    let name = own_name.as_deref().unwrap_or(name);
                    let message = format!("`{name}`: a string must not contain a NUL character");
                    return Err(reader.fault(&place, message));
                }
                Domain::Choice(values)
            }
            "int" | "log_int" => {
                let bounds: Option<Vec<i64>> = values.iter().map(Toml::as_integer).collect();
                match (bounds.as_deref(), kind) {
                    (Some(&[low, high]), "int") => Domain::Int(low, high),
                    (Some(&[low, high]), _) => Domain::LogInt(low, high),
                    _ => return Err(wrong()),
                }
            }
            _ => {
                let number = |v: &Toml| v.as_float().or(v.as_integer().map(|i| i as f64));
                let bounds: Option<Vec<f64>> = values.iter().map(number).collect();
                match (bounds.as_deref(), kind) {
                    (Some(&[low, high]), "uniform") => Domain::Uniform(low, high),
                    (Some(&[low, high]), _) => Domain::LogUniform(low, high),
                    _ => return Err(wrong()),
                }
            }
        };
        // A named parameter may be used outside the enclosing table.
        let mut conditions = match own_name {
            None => self.within.clone(),
            Some(_) => Vec::new(),
        };
        if let Some(item) = table.get("if") {
            conditions.extend(reader.conditions(path, item)?);
        }
        Ok(Parameter { name: own_name.unwrap_or_else(|| name.to_owned()), domain, conditions })
    }
}

fn is_range(table: &dyn TableLike) -> bool {
    RANGES.iter().any(|kind| table.contains_key(kind))
}

/// A scalar value.
pub(super) fn scalar(value: &Toml) -> Option<Value> {
    match value {
        Toml::String(text) => Some(Value::Text(text.value().clone())),
        Toml::Integer(number) => Some(Value::Int(*number.value())),
        Toml::Float(number) if number.value().is_finite() => Some(Value::Float(*number.value())),
        Toml::Boolean(value) => Some(Value::Bool(*value.value())),
        _ => None,
    }
}
