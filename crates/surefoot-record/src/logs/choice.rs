//! Choice of the series that are used, by their names and lengths.

use crate::logs::error::Error;
use crate::logs::log::Series;
use crate::logs::name::{Meaning, kind};
use crate::logs::role::{Map, Role};
use std::cmp::Reverse;
use std::path::Path;

/// A column or a tag.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) meaning: Option<Meaning>,
    /// Number of values.
    pub(crate) count: usize,
    /// Distance from the first value to the last, in steps or rows.
    pub(crate) span: f64,
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
    guess(all, &Role::Loss, &mut choices, |named| named.count > 0);
    // A loss that was NaN from the start may be empty.
    guess(all, &Role::Loss, &mut choices, |_| has_others(all));
    // Some programs log evaluations only.
    if !choices.iter().any(|choice| choice.series.role == Role::Loss) {
        guess(all, &Role::ValidationLoss, &mut choices, |named| named.count > 0);
        promote(&mut choices, &Role::ValidationLoss, &Role::Loss);
    }
    let Some(loss) = choices.iter().find(|choice| choice.series.role == Role::Loss) else {
        return Err(Error::NoLoss { path: path.to_owned(), what, found: found() });
    };
    if all[loss.index].count == 0 && loss.series.mapped {
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
        named.count > 0 && (by_epoch.is_none() || of == by_epoch)
    };
    for role in [Role::Metric, Role::LearningRate, Role::ValidationLoss, Role::GradientNorm] {
        guess(all, &role, &mut choices, fits);
    }
    let metric = choices.iter().find(|choice| choice.series.role == Role::Metric);
    let metric = metric.map(|choice| kind(&choice.series.name));
    let same =
        |named: &Named| fits(named) && metric.is_none_or(|metric| kind(&named.name) == metric);
    guess(all, &Role::ValidationMetric, &mut choices, same);
    // Without a loss beside it, the metric of a validation split belongs to the steps.
    if !choices.iter().any(|choice| choice.series.role == Role::ValidationLoss) {
        promote(&mut choices, &Role::ValidationMetric, &Role::Metric);
    }
    for role in [Role::Step, Role::Epoch] {
        guess(all, &role, &mut choices, |named| named.count > 0);
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

/// Gives the series of one role to another that has none.
fn promote(choices: &mut [Choice], from: &Role, to: &Role) {
    if !choices.iter().any(|choice| choice.series.role == *to) {
        for choice in choices.iter_mut().filter(|choice| choice.series.role == *from) {
            choice.series.role = to.clone();
        }
    }
}

/// Returns true if the log has values of a metric or of a validation split.
fn has_others(all: &[Named]) -> bool {
    all.iter().any(|named| {
        let role = named.meaning.as_ref().map(|meaning| &meaning.role);
        named.count > 1
            && matches!(role, Some(Role::Metric | Role::ValidationLoss | Role::ValidationMetric))
    })
}

/// Part of the longest span from which on a series covers the log.
const COVERS: f64 = 0.8;

/// Adds the series whose name matches `role` best, unless one is chosen already. Series that cover the
/// log go before others; of equal matches the one with the most values is taken.
fn guess(all: &[Named], role: &Role, choices: &mut Vec<Choice>, fits: impl Fn(&Named) -> bool) {
    if choices.iter().any(|choice| choice.series.role == *role) {
        return;
    }
    let candidates: Vec<(usize, &Named, &Meaning)> = all
        .iter()
        .enumerate()
        .filter(|(index, named)| {
            fits(named) && !choices.iter().any(|choice| choice.index == *index)
        })
        .filter_map(|(index, named)| Some((index, named, named.meaning.as_ref()?)))
        .filter(|(_, _, meaning)| meaning.role == *role)
        .collect();
    let longest = candidates.iter().map(|(_, named, _)| named.span).fold(0.0, f64::max);
    let best = candidates.iter().min_by_key(|(index, named, meaning)| {
        let covers = named.span >= COVERS * longest;
        (Reverse(covers), meaning.rank, Reverse(named.count), meaning.pace, *index)
    });
    if let Some((index, ..)) = best {
        choices.push(choice(all, *index, role, false));
    }
}

fn choice(all: &[Named], index: usize, role: &Role, mapped: bool) -> Choice {
    Choice { index, series: Series { role: role.clone(), name: all[index].name.clone(), mapped } }
}
