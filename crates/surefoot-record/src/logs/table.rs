//! A log as rows of numbers, and which of its series are used.

use crate::logs::error::Error;
use crate::logs::log::Series;
use crate::logs::name::{Meaning, kind, meaning};
use crate::logs::role::{Map, Role};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// A log, with the series that are used.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) path: PathBuf,
    pub(crate) format: &'static str,
    /// All series but step and epoch.
    pub(crate) series: Vec<Series>,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// Reads the columns that are used from a table of cells.
    pub(crate) fn read(
        path: &Path,
        format: &'static str,
        columns: &[String],
        rows: usize,
        map: &Map,
        cell: impl Fn(usize, usize) -> Result<Option<f64>, Error>,
    ) -> Result<Table, Error> {
        let named = columns.iter().enumerate().map(|(column, name)| Named {
            name: name.clone(),
            // Rows have their own positions, whatever a column is called.
            meaning: meaning(name, None).map(|meaning| Meaning { by_epoch: false, ..meaning }),
            count: (0..rows).filter(|&row| !matches!(cell(row, column), Ok(None))).count(),
        });
        let named: Vec<Named> = named.collect();
        let (positions, values): (Vec<Choice>, Vec<Choice>) = choose(path, &named, map, "column")?
            .into_iter()
            .partition(|choice| matches!(choice.series.role, Role::Step | Role::Epoch));
        let mut read = Vec::with_capacity(rows);
        for index in 0..rows {
            let mut row = Row::new(values.len());
            for choice in &positions {
                let number = cell(index, choice.index)?;
                match choice.series.role {
                    Role::Step => row.step = number,
                    _ => row.epoch = number,
                }
            }
            for (place, choice) in row.cells.iter_mut().zip(&values) {
                *place = cell(index, choice.index)?;
            }
            read.push(row);
        }
        Ok(Table {
            path: path.to_owned(),
            format,
            series: values.into_iter().map(|choice| choice.series).collect(),
            rows: in_order(read),
        })
    }
}

/// Merges rows of the same step and sorts them.
///
/// Lightning writes several rows for a step, and a resumed run repeats steps; the later row wins.
/// Rows without a step keep their order.
fn in_order(mut rows: Vec<Row>) -> Vec<Row> {
    let stepped = rows.iter().any(|row| row.step.is_some());
    let (mut step, mut epoch) = (None, None);
    for row in &mut rows {
        row.step = row.step.or(step);
        row.epoch = row.epoch.or(epoch);
        (step, epoch) = (row.step, row.epoch);
    }
    let key = |row: &Row| [row.epoch.unwrap_or(0.0), row.step.unwrap_or(0.0)];
    if stepped {
        rows.sort_by(|a, b| {
            let [a, b] = [key(a), key(b)];
            a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]))
        });
    }
    let mut merged: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        match merged.last_mut() {
            Some(last)
                if row.step.or(row.epoch).is_some()
                    && key(last) == key(&row)
                    && (stepped || last.complements(&row)) =>
            {
                last.update(&row);
            }
            _ => merged.push(row),
        }
    }
    merged
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

/// A column or a tag.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) meaning: Option<Meaning>,
    /// Number of values.
    pub(crate) count: usize,
}

/// A series that is used: its place among all and what it is.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) index: usize,
    pub(crate) series: Series,
}

/// Chooses a series for each role: from `map`, or by name. The loss is required.
pub(crate) fn choose(
    path: &Path,
    all: &[Named],
    map: &Map,
    what: &'static str,
) -> Result<Vec<Choice>, Error> {
    let found = || all.iter().map(|named| named.name.clone()).collect();
    let mut choices = Vec::new();
    for (role, name) in map {
        let index = all.iter().position(|named| named.name == *name);
        let index = index.ok_or_else(|| Error::NoSuchName {
            path: path.to_owned(),
            what,
            name: name.clone(),
            found: found(),
        })?;
        choices.push(choice(all, index, role, true));
    }
    guess(all, &Role::Loss, &mut choices, |_| true);
    let Some(loss) = choices.iter().find(|choice| choice.series.role == Role::Loss) else {
        return Err(Error::NoLoss { path: path.to_owned(), what, found: found() });
    };
    if all[loss.index].count == 0 {
        return Err(Error::Empty {
            path: path.to_owned(),
            what,
            name: all[loss.index].name.clone(),
        });
    }
    // Series that count epochs cannot be combined with series that count steps.
    let by_epoch = all[loss.index].meaning.as_ref().map(|meaning| meaning.by_epoch);
    let fits = |named: &Named| {
        let of = named.meaning.as_ref().map(|meaning| meaning.by_epoch);
        by_epoch.is_none() || of == by_epoch
    };
    for role in [Role::Metric, Role::LearningRate, Role::ValidationLoss] {
        guess(all, &role, &mut choices, fits);
    }
    let metric = choices.iter().find(|choice| choice.series.role == Role::Metric);
    let metric = metric.map(|choice| kind(&choice.series.name));
    let same =
        |named: &Named| fits(named) && metric.is_none_or(|metric| kind(&named.name) == metric);
    guess(all, &Role::ValidationMetric, &mut choices, same);
    for role in [Role::Step, Role::Epoch] {
        guess(all, &role, &mut choices, |_| true);
    }
    for (index, named) in all.iter().enumerate() {
        if let Some(Meaning { role: role @ Role::Gradient(_), .. }) = &named.meaning
            && !choices.iter().any(|choice| choice.index == index)
            && named.count > 0
        {
            choices.push(choice(all, index, role, false));
        }
    }
    choices.sort_by_key(|choice| choice.index);
    Ok(choices)
}

/// Adds the series whose name matches `role` best, unless one is chosen already. Of equal matches
/// the one with the most values is taken.
fn guess(all: &[Named], role: &Role, choices: &mut Vec<Choice>, fits: impl Fn(&Named) -> bool) {
    if choices.iter().any(|choice| choice.series.role == *role) {
        return;
    }
    let best = all
        .iter()
        .enumerate()
        .filter(|(index, named)| {
            named.count > 0 && fits(named) && !choices.iter().any(|choice| choice.index == *index)
        })
        .filter_map(|(index, named)| Some((index, named, named.meaning.as_ref()?)))
        .filter(|(_, _, meaning)| meaning.role == *role)
        .min_by_key(|(index, named, meaning)| {
            (meaning.rank, Reverse(named.count), meaning.pace, *index)
        });
    if let Some((index, ..)) = best {
        choices.push(choice(all, index, role, false));
    }
}

fn choice(all: &[Named], index: usize, role: &Role, mapped: bool) -> Choice {
    Choice { index, series: Series { role: role.clone(), name: all[index].name.clone(), mapped } }
}
