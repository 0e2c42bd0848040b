//! Runs of a log as rows of numbers, and which of its series are used.

use crate::logs::choice::{Choice, Named, choose};
use crate::logs::error::Error;
use crate::logs::log::Series;
use crate::logs::name::{Meaning, meaning};
use crate::logs::role::{Map, Role};
use std::path::{Path, PathBuf};

/// A run in a log, with the series that are used.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) path: PathBuf,
    pub(crate) format: &'static str,
    /// Name of the run, if the log has several.
    pub(crate) run: Option<String>,
    /// All series but step and epoch.
    pub(crate) series: Vec<Series>,
    pub(crate) rows: Vec<Row>,
    /// Sentences about rows and columns that were left out.
    pub(crate) warnings: Vec<String>,
}

impl Table {
    /// Reads the columns that are used from a table of cells, for each run in it.
    pub(crate) fn read(
        path: &Path,
        format: &'static str,
        columns: &[String],
        rows: usize,
        map: &Map,
        cell: impl Fn(usize, usize) -> Result<Option<f64>, Error>,
    ) -> Result<Vec<Table>, Error> {
        let mut tables = Vec::new();
        for (run, used) in runs(columns) {
            let names: Vec<String> = used.iter().map(|&column| columns[column].clone()).collect();
            let cell = |row: usize, column: usize| cell(row, used[column]);
            let table = Table::of_run(path, format, &names, rows, map, cell)?;
            tables.extend(Table { run, ..table }.divided());
        }
        Ok(tables)
    }

    fn of_run(
        path: &Path,
        format: &'static str,
        columns: &[String],
        rows: usize,
        map: &Map,
        cell: impl Fn(usize, usize) -> Result<Option<f64>, Error>,
    ) -> Result<Table, Error> {
        // Rows have their own positions, whatever a column is called.
        let meaning =
            |name: &str| meaning(name, None).map(|meaning| Meaning { by_epoch: false, ..meaning });
        let step = |name: &String| meaning(name).is_some_and(|found| found.role == Role::Step);
        let steps = columns.iter().position(step);
        let position = |row: usize| {
            let step = steps.and_then(|column| cell(row, column).ok().flatten());
            step.unwrap_or(row as f64)
        };
        let named = columns.iter().enumerate().map(|(column, name)| {
            let filled = (0..rows).filter(|&row| !matches!(cell(row, column), Ok(None)));
            let (mut count, mut low, mut high) = (0, f64::INFINITY, f64::NEG_INFINITY);
            for row in filled {
                count += 1;
                (low, high) = (low.min(position(row)), high.max(position(row)));
            }
            let span = if count > 0 { high - low } else { 0.0 };
            Named { name: name.clone(), meaning: meaning(name), count, span }
        });
        let named: Vec<Named> = named.collect();
        let (positions, values): (Vec<Choice>, Vec<Choice>) = choose(path, &named, map, "column")?
            .into_iter()
            .partition(|choice| matches!(choice.series.role, Role::Step | Role::Epoch));
        let mut warnings = Vec::new();
        let mut number = |row: usize, column: usize| match cell(row, column) {
            Ok(number) => number,
            Err(error) => {
                warnings.push(format!("{error}; the cell is ignored"));
                None
            }
        };
        let mut read = Vec::with_capacity(rows);
        for index in 0..rows {
            let mut row = Row::new(values.len());
            for choice in &positions {
                let number = number(index, choice.index);
                match choice.series.role {
                    Role::Step => row.step = number,
                    _ => row.epoch = number,
                }
            }
            for (place, choice) in row.cells.iter_mut().zip(&values) {
                *place = number(index, choice.index);
            }
            read.push(row);
        }
        let series: Vec<Series> = values.into_iter().map(|choice| choice.series).collect();
        for (loss, companions) in [
            (Role::Loss, &[Role::Metric, Role::ValidationLoss, Role::ValidationMetric][..]),
            (Role::ValidationLoss, &[Role::ValidationMetric]),
        ] {
            mark_empty(&mut read, &series, &loss, companions);
        }
        warnings.extend(unused(&read, &series, &named));
        warnings.extend(ambiguous(&series, &named));
        Ok(Table { path: path.to_owned(), format, run: None, series, rows: read, warnings })
    }

    /// Divides a table at the rows where the epochs or steps start over, and sorts the parts.
    fn divided(mut self) -> Vec<Table> {
        let mut starts = vec![0];
        let mut first = 0;
        for row in 1..self.rows.len() {
            if self.restarts(first, row) {
                first = row;
                starts.push(row);
            }
        }
        // Without epochs, steps that start over may be those of the next epoch.
        let loss = self.series.iter().position(|series| series.role == Role::Loss);
        let value = |row: &Row| loss.and_then(|loss| row.cells[loss]);
        let by_epoch = self.rows.iter().any(|row| row.epoch.is_some());
        let continues = |&start: &usize| {
            let before = self.rows[..start].iter().rev().find_map(value);
            let (first, new) =
                (self.rows.iter().find_map(value), self.rows[start..].iter().find_map(value));
            match (first, before, new) {
                (Some(first), Some(before), Some(new)) => {
                    (new - before).abs() < (new - first).abs()
                }
                _ => false,
            }
        };
        if !by_epoch && starts.len() > 1 && starts[1..].iter().all(continues) {
            self.rows.iter_mut().for_each(|row| row.step = None);
            starts.truncate(1);
        }
        let several = starts.len() > 1;
        let mut tables = Vec::new();
        let mut rows = self.rows;
        for (number, &start) in starts.iter().enumerate().rev() {
            let (part, repeated) = in_order(rows.split_off(start));
            let mut warnings = if number == 0 { self.warnings.clone() } else { Vec::new() };
            if repeated > 0 {
                warnings.push(format!(
                    "{repeated} rows repeat an earlier step; the later values are used"
                ));
            }
            let run = match (&self.run, several) {
                (run, false) => run.clone(),
                (Some(run), true) => Some(format!("{run}, run {}", number + 1)),
                (None, true) => Some(format!("run {}", number + 1)),
            };
            tables.push(Table {
                path: self.path.clone(),
                format: self.format,
                run,
                series: self.series.clone(),
                rows: part,
                warnings,
            });
        }
        tables.reverse();
        // A part without a loss, such as a header that was written twice, is not a run.
        let has_loss = |table: &Table| table.rows.iter().any(|row| value(row).is_some());
        if tables.iter().any(has_loss) {
            tables.retain(has_loss);
        }
        tables
    }

    /// Returns true if a new run starts at `row`; `first` is the first row of the run before.
    fn restarts(&self, first: usize, row: usize) -> bool {
        const LEAST: usize = 3;
        let start = |of: fn(&Row) -> Option<f64>| {
            let first = self.rows[first..row].iter().find_map(of);
            let before = self.rows[..row].iter().rev().find_map(of);
            Some((first?, before?, of(&self.rows[row])?))
        };
        let back = |(first, before, now): (f64, f64, f64)| now < before && now <= first;
        let step = start(|row| row.step);
        let epoch = start(|row| row.epoch);
        row - first >= LEAST
            && match (epoch, step) {
                (Some(epoch), Some(step)) => back(epoch) && step.2 <= step.1,
                (Some(epoch), None) => back(epoch),
                (None, Some(step)) => back(step),
                (None, None) => false,
            }
    }
}

/// Columns of each run. Weights & Biases writes `NAME - SERIES` for the series of several runs.
fn runs(columns: &[String]) -> Vec<(Option<String>, Vec<usize>)> {
    let prefix = |name: &str| {
        let (run, _) = name.rsplit_once(" - ")?;
        meaning(name, None).map(|_| run.trim().to_owned())
    };
    let mut names: Vec<String> = Vec::new();
    for run in columns.iter().filter_map(|name| prefix(name)) {
        if !names.contains(&run) {
            names.push(run);
        }
    }
    if names.len() < 2 {
        return vec![(None, (0..columns.len()).collect())];
    }
    let of_run = |run: &String| {
        let own = |column: &usize| prefix(&columns[*column]).is_none_or(|other| other == *run);
        (0..columns.len()).filter(own).collect()
    };
    names.iter().map(|run| (Some(run.clone()), of_run(run))).collect()
}

/// Fills the empty cells of a loss with NaN where its companions are filled: pandas writes NaN as an
/// empty cell.
///
/// A companion is logged together with the loss if the two are filled in the same rows up to some row.
/// If the loss is empty from there on, or from the start and for good, it was NaN.
fn mark_empty(rows: &mut [Row], series: &[Series], loss: &Role, companions: &[Role]) {
    let place = |role: &Role| series.iter().position(|series| series.role == *role);
    let Some(loss) = place(loss) else {
        return;
    };
    let never = rows.iter().all(|row| row.cells[loss].is_none());
    for companion in companions.iter().filter_map(place) {
        let both: Vec<usize> =
            (0..rows.len()).filter(|&row| rows[row].cells[companion].is_some()).collect();
        let filled = both.iter().take_while(|&&row| rows[row].cells[loss].is_some()).count();
        let empty = &both[filled..];
        let stays = empty.iter().all(|&row| rows[row].cells[loss].is_none());
        // The last row may be incomplete.
        let last_only = empty == [rows.len() - 1];
        if stays && !last_only && !empty.is_empty() && (filled > 0 || never) {
            for &row in empty {
                rows[row].cells[loss] = Some(f64::NAN);
            }
            return;
        }
    }
}

/// Tells how many rows are not used, and which other loss they have.
fn unused(rows: &[Row], series: &[Series], named: &[Named]) -> Option<String> {
    let counts = |row: &&Row| {
        let mut cells = row.cells.iter().zip(series);
        !cells.any(|(cell, series)| {
            let norm = matches!(series.role, Role::Gradient(_) | Role::GradientNorm);
            cell.is_some() && !norm
        })
    };
    let ignored = rows.iter().filter(counts).count();
    let loss = &series.iter().find(|series| series.role == Role::Loss)?.name;
    let role = |other: &&Named| {
        let role = other.meaning.as_ref().map(|meaning| &meaning.role);
        role == Some(&Role::Loss) && other.count > 0 && other.name != *loss
    };
    let others = named.iter().filter(role).map(|other| format!("`{}`", other.name));
    let others: Vec<String> = others.take(3).collect();
    (ignored > 0).then(|| {
        let hint = match others.is_empty() {
            true => String::new(),
            false => format!("; other losses in the log: {}", others.join(", ")),
        };
        format!("{ignored} of {} rows have no value in `{loss}` and are ignored{hint}", rows.len())
    })
}

/// Note about the series that is used as the loss, if its name does not make that clear.
fn ambiguous(series: &[Series], named: &[Named]) -> Option<String> {
    let loss = series.iter().find(|series| series.role == Role::Loss && !series.mapped)?;
    let meaning = |name: &str| {
        let found = named.iter().find(|named| named.name == name);
        found.and_then(|named| named.meaning.as_ref())
    };
    let chosen = meaning(&loss.name)?;
    if chosen.role != Role::Loss {
        return Some(format!("there is no training loss; `{}` is taken as the loss", loss.name));
    }
    let equal = |other: &&Named| {
        let meant = other.meaning.as_ref();
        other.count > 0
            && other.name != loss.name
            && meant.is_some_and(|meant| meant.role == Role::Loss && meant.is_partial())
    };
    let others = named.iter().filter(equal).map(|other| format!("`{}`", other.name));
    let others: Vec<String> = others.take(3).collect();
    (chosen.is_partial() && !others.is_empty()).then(|| {
        format!(
            "`{}` is taken as the loss; other losses in the log: {}",
            loss.name,
            others.join(", ")
        )
    })
}

/// Merges rows of the same step and sorts them. Returns the number of rows that replaced others.
///
/// Lightning writes several rows for a step, and a resumed run repeats steps; the later row wins.
/// Rows without a step keep their order, and never replace another.
fn in_order(rows: Vec<Row>) -> (Vec<Row>, usize) {
    let stepped = rows.iter().any(|row| row.step.is_some());
    let (mut step, mut epoch) = (None, None);
    let positioned = |mut row: Row| {
        let has_step = row.step.is_some();
        row.step = row.step.or(step);
        row.epoch = row.epoch.or(epoch);
        (step, epoch) = (row.step, row.epoch);
        (row, has_step)
    };
    let mut rows: Vec<(Row, bool)> = rows.into_iter().map(positioned).collect();
    let key = |row: &Row| [row.epoch.unwrap_or(0.0), row.step.unwrap_or(0.0)];
    if stepped {
        rows.sort_by(|(a, _), (b, _)| {
            let [a, b] = [key(a), key(b)];
            a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]))
        });
    }
    let mut merged: Vec<Row> = Vec::with_capacity(rows.len());
    let mut repeated = 0;
    for (row, has_step) in rows {
        match merged.last_mut() {
            Some(last)
                if row.step.or(row.epoch).is_some()
                    && key(last) == key(&row)
                    && (has_step || last.complements(&row)) =>
            {
                repeated += usize::from(!last.complements(&row));
                last.update(&row);
            }
            _ => merged.push(row),
        }
    }
    (merged, repeated)
}

/// Values logged at one step or epoch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) step: Option<f64>,
    pub(crate) epoch: Option<f64>,
    /// One for each series.
    pub(crate) cells: Vec<Option<f64>>,
}

impl Row {
    pub(crate) fn new(width: usize) -> Row {
        Row { cells: vec![None; width], ..Row::default() }
    }

    /// Adds the values of a later row of the same step.
    pub(crate) fn update(&mut self, later: &Row) {
        self.epoch = later.epoch.or(self.epoch);
        for (cell, new) in self.cells.iter_mut().zip(&later.cells) {
            *cell = new.or(*cell);
        }
    }

    /// Returns true if no cell is filled in both rows.
    pub(crate) fn complements(&self, other: &Row) -> bool {
        let both = |(a, b): (&Option<f64>, &Option<f64>)| a.is_some() && b.is_some();
        !self.cells.iter().zip(&other.cells).any(both)
    }
}
