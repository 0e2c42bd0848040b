//! Which trials are shown where there is no room for all.

use std::collections::BTreeSet;

use super::outcome::Outcome;
use super::{StudyPage, StudyTrial};
use crate::words::grouped;

/// How many trials have a line of their own in a chart.
const MOST: usize = 400;

/// How many of them are the best ones.
const BEST: usize = 100;

/// The trials that have a line of their own.
#[derive(Debug)]
pub(super) struct Selection {
    numbers: BTreeSet<u64>,
    all: usize,
}

impl Selection {
    /// The best trials, and of each outcome as many others, spread evenly over the study.
    pub(super) fn of(page: &StudyPage<'_>, ranking: &[(StudyTrial<'_>, f64)]) -> Selection {
        let all = page.trials.len();
        if all <= MOST {
            let numbers = page.trials.iter().map(StudyTrial::number).collect();
            return Selection { numbers, all };
        }
        let best = ranking.iter().take(BEST).map(|(trial, _)| trial.number());
        let mut numbers: BTreeSet<u64> = best.collect();
        let mut groups: Vec<Vec<u64>> = Outcome::ALL
            .into_iter()
            .map(|outcome| {
                let trials = page.trials.iter().filter(|t| t.outcome() == outcome);
                let others = trials.map(StudyTrial::number);
                others.filter(|number| !numbers.contains(number)).collect()
            })
            .collect();
        // The smallest group first: what it does not need is left to the others.
        groups.sort_by_key(Vec::len);
        let mut room = MOST - numbers.len();
        for (index, group) in groups.iter().enumerate() {
            let share = (room / (groups.len() - index)).min(group.len());
            numbers.extend(evenly(group, share));
            room -= share;
        }
        Selection { numbers, all }
    }

    /// Whether a trial is among them.
    pub(super) fn has(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    /// A sentence about what is left out, if something is.
    pub(super) fn note(&self) -> Option<String> {
        (self.numbers.len() < self.all).then(|| {
            format!(
                "{} of {} trials are shown: the best {BEST}, and of each outcome some that are spread \
                 over the study.",
                grouped(self.numbers.len() as u64),
                grouped(self.all as u64)
            )
        })
    }
}

/// So many of some things, spread evenly.
pub(super) fn evenly<T: Copy>(things: &[T], count: usize) -> impl Iterator<Item = T> {
    (0..count.min(things.len())).map(move |i| things[i * things.len() / count])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::fixture::Made;

    #[test]
    fn a_small_study_is_shown_whole() {
        let made = Made::study(30);
        let page = made.page();
        let selection = Selection::of(&page, &page.ranking());
        assert!((0..30).all(|number| selection.has(number)));
        assert_eq!(selection.note(), None);
    }

    #[test]
    fn of_a_large_study_the_best_and_some_of_each_outcome_are_shown() {
        let made = Made::study(5000);
        let page = made.page();
        let ranking = page.ranking();
        let selection = Selection::of(&page, &ranking);
        assert_eq!(selection.numbers.len(), MOST);
        assert!(ranking[..BEST].iter().all(|(t, _)| selection.has(t.number())));
        for outcome in Outcome::ALL {
            let trials = || page.trials.iter().filter(|t| t.outcome() == outcome);
            let shown = trials().filter(|t| selection.has(t.number())).count();
            assert!(shown >= trials().count().min(50), "{outcome:?}: {shown}");
        }
        assert!(selection.note().is_some_and(|note| note.starts_with("400 of 5,000")));
    }
}
