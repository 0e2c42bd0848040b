//! A study as a table: a row a trial, a column a parameter, each with its type.

use crate::space::{Domain, Value};
use crate::store::{End, State, Study, Trial, View};

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Int,
    /// Numbers.
    Float,
    /// Yes or no.
    Bool,
    /// Words.
    Text,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// A whole number.
    Int(i64),
    /// A number, which may be NaN or infinite.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// A word.
    Text(String),
}

/// A column of a table. All its cells are of its kind or empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What it is called; no other column of the table has this name.
    pub name: String,
    /// What its cells are.
    pub kind: Kind,
    /// A cell a row.
    pub cells: Vec<Cell>,
}

/// A study as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns; all have the same number of cells.
    pub columns: Vec<Column>,
}

/// The columns before those of the parameters.
const BEFORE: [(&str, Kind); 3] =
    [("number", Kind::Int), ("state", Kind::Text), ("value", Kind::Float)];

/// The columns after them.
const AFTER: [(&str, Kind); 8] = [
    ("reason", Kind::Text),
    ("sentence", Kind::Text),
    ("epochs", Kind::Int),
    ("planned", Kind::Int),
    ("seconds", Kind::Float),
    ("operations", Kind::Float),
    ("attempts", Kind::Int),
    ("run", Kind::Text),
];

impl Table {
    /// The table of a study. The view has to have the reports.
    pub fn of(study: &Study, view: &View) -> Table {
        let trials = view.trials();
        let fixed = |(name, kind): (&str, Kind)| Column {
            name: name.to_owned(),
            kind,
            cells: trials.iter().map(|trial| cell(name, trial, view)).collect(),
        };
        let parameters = study.space.parameters().iter().map(|parameter| {
            let kind = kind(&parameter.domain);
            let value = |trial: &Trial| {
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

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }
}

/// A parameter's column has its name, unless that is taken.
fn column_name(parameter: &str) -> String {
    let mut taken = BEFORE.iter().chain(&AFTER).map(|(name, _)| *name);
    match taken.any(|name| name == parameter) {
        true => format!("parameter.{parameter}"),
        false => parameter.to_owned(),
    }
}

fn cell(name: &str, trial: &Trial, view: &View) -> Cell {
    let (reason, sentence) = match &trial.state {
        State::Over(End::Stopped { reason, .. }) => (Some(&reason.by), Some(&reason.sentence)),
        State::Over(End::Failed { message }) => (None, Some(message)),
        _ => (None, None),
    };
    let text = |text: Option<&String>| text.map_or(Cell::Empty, |text| Cell::Text(text.clone()));
    let float = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Float);
    match name {
        "number" => Cell::Int(trial.number as i64),
        "state" => Cell::Text(trial.state.word().to_owned()),
        "value" => float(trial.value()),
        "reason" => text(reason),
        "sentence" => text(sentence),
        "epochs" => Cell::Int(view.reports(trial.number).len() as i64),
        "planned" => trial.planned.map_or(Cell::Empty, |n| Cell::Int(n.into())),
        "seconds" => float(trial.seconds),
        "operations" => Cell::Float(view.operations_of(trial.number)),
        "attempts" => Cell::Int(trial.attempts.len() as i64),
        "run" => text(trial.run.as_ref()),
        _ => Cell::Empty,
    }
}

/// The kind of column that holds all values of a domain as they are.
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
        // Not a value of this domain: an empty cell rather than a wrong one.
        _ => Cell::Empty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_have_the_narrowest_kind_that_holds_them() {
        let of = |values: &[Value]| kind(&Domain::Choice(values.to_vec()));
        assert_eq!(of(&[Value::Bool(true), Value::Bool(false)]), Kind::Bool);
        assert_eq!(of(&[Value::Int(1), Value::Int(2)]), Kind::Int);
        assert_eq!(of(&[Value::Int(1), Value::Float(0.5)]), Kind::Float);
        assert_eq!(of(&[Value::Int(1), Value::Bool(true)]), Kind::Text);
    }

    #[test]
    fn a_parameter_called_like_another_column_keeps_apart() {
        assert_eq!(column_name("rate"), "rate");
        assert_eq!(column_name("value"), "parameter.value");
    }
}
