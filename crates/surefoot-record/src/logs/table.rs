//! A log as rows of numbers, and which of its series are used.

use crate::logs::error::Error;
use crate::logs::log::{Format, Series};
use crate::logs::name::{Meaning, kind};
use crate::logs::role::{Map, Role};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// A log, with the series that are used.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    /// All but those that say where a row is.
    pub(crate) series: Vec<Series>,
    pub(crate) rows: Vec<Row>,
}

/// What was logged at one time.
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

    /// Takes what is there in `later`.
    pub(crate) fn update(&mut self, later: &Row) {
        self.epoch = later.epoch.or(self.epoch);
        for (cell, new) in self.cells.iter_mut().zip(&later.cells) {
            *cell = new.or(*cell);
        }
    }

    /// Whether nothing that is here is in `other`, too.
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
    /// How many numbers it has.
    pub(crate) count: usize,
}

/// A series that is used: its place among all and what it is.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) index: usize,
    pub(crate) series: Series,
}

/// Chooses a series for each role: as `map` says, or by its name. There is always one for the loss.
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
    // What is counted in epochs cannot stand beside what is counted in steps.
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

/// Adds the series whose name says most clearly that it is `role`, unless there is one already. Of
/// those that say it equally the one with the most numbers is taken.
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
