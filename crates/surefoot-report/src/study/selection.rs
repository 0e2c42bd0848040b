//! Selection of trials for charts with one line per trial.

use std::collections::BTreeSet;

use super::status::Status;
use super::{StudyPage, StudyTrial};
use crate::format::grouped;

/// Maximum number of lines.
const MOST: usize = 400;

/// Number of best trials among them.
const BEST: usize = 100;

/// The trials with a line.
#[derive(Debug)]
pub(super) struct Selection {
    numbers: BTreeSet<u64>,
    all: usize,
}

impl Selection {
    /// Selects the best trials, and evenly spread others of each status.
    pub(super) fn of(page: &StudyPage<'_>, ranking: &[(StudyTrial<'_>, f64)]) -> Selection {
        let all = page.trials.len();
        if all <= MOST {
            let numbers = page.trials.iter().map(StudyTrial::number).collect();
            return Selection { numbers, all };
        }
        let best = ranking.iter().take(BEST).map(|(trial, _)| trial.number());
        let mut numbers: BTreeSet<u64> = best.collect();
        let mut groups: Vec<Vec<u64>> = Status::ALL
            .into_iter()
            .map(|status| {
                let trials = page.trials.iter().filter(|t| t.status() == status);
                let others = trials.map(StudyTrial::number);
                others.filter(|number| !numbers.contains(number)).collect()
            })
            .collect();
        // The smallest group first, so that its unused share goes to the others.
        groups.sort_by_key(Vec::len);
        let mut room = MOST - numbers.len();
        for (index, group) in groups.iter().enumerate() {
            let share = (room / (groups.len() - index)).min(group.len());
            numbers.extend(evenly(group, share));
            room -= share;
        }
        Selection { numbers, all }
    }

    /// Returns true if a trial is selected.
    pub(super) fn has(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    /// Sentence about the selection, if it omits trials.
    pub(super) fn note(&self) -> Option<String> {
        (self.numbers.len() < self.all).then(|| {
            format!(
                "{} of {} trials are shown: the best {BEST}, and some of each status, spread over the \
                 study.",
                grouped(self.numbers.len() as u64),
                grouped(self.all as u64)
            )
        })
    }
}

/// Evenly spread items of a list.
pub(super) fn evenly<T: Copy>(things: &[T], count: usize) -> impl Iterator<Item = T> {
    (0..count.min(things.len())).map(move |i| things[i * things.len() / count])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::fixture::Made;

    #[test]
    fn a_small_study_is_shown_completely() {
        let made = Made::study(30);
        let page = made.page();
        let selection = Selection::of(&page, &page.ranking());
        assert!((0..30).all(|number| selection.has(number)));
        assert_eq!(selection.note(), None);
    }

    #[test]
    fn a_large_study_shows_the_best_and_some_of_each_status() {
        let made = Made::study(5000);
        let page = made.page();
        let ranking = page.ranking();
        let selection = Selection::of(&page, &ranking);
        assert_eq!(selection.numbers.len(), MOST);
        assert!(ranking[..BEST].iter().all(|(t, _)| selection.has(t.number())));
        for status in Status::ALL {
            let trials = || page.trials.iter().filter(|t| t.status() == status);
            let shown = trials().filter(|t| selection.has(t.number())).count();
            assert!(shown >= trials().count().min(50), "{status:?}: {shown}");
        }
        assert!(selection.note().is_some_and(|note| note.starts_with("400 of 5,000")));
    }
}
