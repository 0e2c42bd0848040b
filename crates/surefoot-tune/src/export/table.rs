//! Study tables: a row per trial, a typed column per parameter.

use crate::space::{Domain, Value};
use crate::storage::{FrozenTrial, StoredStudy, TrialState, View};

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers.
    Int,
    /// Numbers.
    Float,
    /// Booleans.
    Bool,
    /// Strings.
    Text,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Missing.
    Empty,
    /// An integer.
    Int(i64),
    /// A number, possibly NaN or infinite.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A string.
    Text(String),
}

/// A column. All cells have its type or are empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Unique name.
    pub name: String,
    /// Type of the cells.
    pub kind: Kind,
    /// One cell per row.
    pub cells: Vec<Cell>,
}

/// A study as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Columns of equal length.
    pub columns: Vec<Column>,
}

/// Columns before the parameters.
const BEFORE: [(&str, Kind); 3] =
    [("number", Kind::Int), ("state", Kind::Text), ("value", Kind::Float)];

/// Columns after the parameters.
const AFTER: [(&str, Kind); 8] = [
    ("reason", Kind::Text),
    ("message", Kind::Text),
    ("epochs", Kind::Int),
    ("planned", Kind::Int),
    ("seconds", Kind::Float),
    ("operations", Kind::Float),
    ("attempts", Kind::Int),
    ("run", Kind::Text),
];

impl Table {
    /// The table of a study. The view must contain the reports.
    pub fn of(study: &StoredStudy, view: &View) -> Table {
        let trials = view.trials();
        let fixed = |(name, kind): (&str, Kind)| Column {
            name: name.to_owned(),
            kind,
            cells: trials.iter().map(|trial| cell(name, trial, view)).collect(),
        };
        let parameters = study.space.parameters().iter().map(|parameter| {
            let kind = kind(&parameter.domain);
            let value = |trial: &FrozenTrial| {
                let value = trial.point.as_ref()?.get(&parameter.name)?;
                Some(of_kind(kind, value))
            };
            let cells = trials.iter().map(|trial| value(trial).unwrap_or(Cell::Empty));
            Column { name: column_name(&parameter.name), kind, cells: cells.collect() }
        });
        let columns = BEFORE.into_iter().map(fixed);
        let columns = columns.chain(parameters).chain(AFTER.into_iter().map(fixed));
        Table { columns: columns.collect() }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }
}

/// Prefixes a parameter whose name is taken by a fixed column.
fn column_name(parameter: &str) -> String {
    let mut taken = BEFORE.iter().chain(&AFTER).map(|(name, _)| *name);
    match taken.any(|name| name == parameter) {
        true => format!("parameter.{parameter}"),
        false => parameter.to_owned(),
    }
}

fn cell(name: &str, trial: &FrozenTrial, view: &View) -> Cell {
    let (reason, message) = match &trial.state {
        TrialState::Pruned { reason, .. } => (Some(&reason.by), Some(&reason.message)),
        TrialState::Failed { message } => (None, Some(message)),
        _ => (None, None),
    };
    let text = |text: Option<&String>| text.map_or(Cell::Empty, |text| Cell::Text(text.clone()));
    let float = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Float);
    match name {
        "number" => Cell::Int(trial.number as i64),
        "state" => Cell::Text(trial.state.name().to_owned()),
        "value" => float(view.value(trial.number)),
        "reason" => text(reason),
        "message" => text(message),
        "epochs" => Cell::Int(view.steps(trial.number) as i64),
        "planned" => trial.planned.map_or(Cell::Empty, |n| Cell::Int(n.into())),
        "seconds" => float(trial.seconds),
        "operations" => Cell::Float(view.operations_of(trial.number)),
        "attempts" => Cell::Int(trial.attempts.len() as i64),
        "run" => text(trial.run.as_ref()),
        _ => Cell::Empty,
    }
}

/// The type that represents all values of a domain.
fn kind(domain: &Domain) -> Kind {
    match domain {
        Domain::Uniform(..) | Domain::LogUniform(..) => Kind::Float,
        Domain::Int(..) | Domain::LogInt(..) => Kind::Int,
        Domain::Choice(values) => {
            let all = |is: fn(&Value) -> bool| values.iter().all(is);
            if all(|value| matches!(value, Value::Bool(_))) {
                Kind::Bool
            } else if all(|value| matches!(value, Value::Int(_))) {
                Kind::Int
            } else if all(|value| matches!(value, Value::Int(_) | Value::Float(_))) {
                Kind::Float
            } else {
                Kind::Text
            }
        }
    }
}

fn of_kind(kind: Kind, value: &Value) -> Cell {
    match (kind, value) {
        (Kind::Int, Value::Int(value)) => Cell::Int(*value),
        (Kind::Float, Value::Int(value)) => Cell::Float(*value as f64),
        (Kind::Float, Value::Float(value)) => Cell::Float(*value),
        (Kind::Bool, Value::Bool(value)) => Cell::Bool(*value),
        (Kind::Text, value) => Cell::Text(value.to_string()),
        // A value outside the domain becomes an empty cell.
        _ => Cell::Empty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_have_the_narrowest_type() {
        let of = |values: &[Value]| kind(&Domain::Choice(values.to_vec()));
        assert_eq!(of(&[Value::Bool(true), Value::Bool(false)]), Kind::Bool);
        assert_eq!(of(&[Value::Int(1), Value::Int(2)]), Kind::Int);
        assert_eq!(of(&[Value::Int(1), Value::Float(0.5)]), Kind::Float);
        assert_eq!(of(&[Value::Int(1), Value::Bool(true)]), Kind::Text);
    }

    #[test]
    fn a_parameter_named_like_a_column_is_prefixed() {
        assert_eq!(column_name("rate"), "rate");
        assert_eq!(column_name("value"), "parameter.value");
    }
}
