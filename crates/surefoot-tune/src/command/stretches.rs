//! Which stretch of its trial a command reports.

/// Counts the reports of a command.
///
/// A trial is judged by its stretches, one a report. A command counts epochs, and may report after every fifth, or ten
/// times in each. It may also go on from a checkpoint, and then begins with a later one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretches {
    /// Those that earlier attempts have reported.
    known: u64,
    /// How many an earlier attempt expected.
    expected: Option<u64>,
    /// The last one.
    index: u64,
    /// Whether the first epoch of the trial is 0.
    from_zero: bool,
}

impl Stretches {
    /// The stretches of a trial of which so many are known, and so many were expected.
    pub(super) fn new(known: u64, expected: Option<u64>, from_zero: bool) -> Stretches {
        Stretches { known, expected, index: 0, from_zero }
    }

    /// Whether the epochs of this trial begin with 0, as far as it is known.
    pub(super) fn begin_with_zero(&self) -> bool {
        self.from_zero
    }

    /// The number of the stretch that is reported now, and how many there will be, if that can be told.
    pub(super) fn next(&mut self, epoch: Option<u64>, epochs: Option<u64>) -> (u64, Option<u64>) {
        self.from_zero |= self.index == 0 && epoch == Some(0);
        let epoch = epoch.map(|epoch| epoch.saturating_add(u64::from(self.from_zero)));
        self.index = match (self.index, epoch) {
            // It goes on from a checkpoint. None is left out, and what was reported since is replaced.
            (0, Some(epoch)) => self.of(epoch, epochs).clamp(1, self.known + 1),
            (index, _) => index + 1,
        };
        let planned = match (epoch, epochs) {
            (Some(epoch), Some(epochs)) => {
                Some(share(self.index, epochs, epoch.max(1)).max(self.index))
            }
            (_, epochs) => epochs,
        };
        (self.index, planned)
    }

    /// The stretch that ends with an epoch, by how many an earlier attempt expected.
    fn of(&self, epoch: u64, epochs: Option<u64>) -> u64 {
        match (self.expected, epochs) {
            (Some(expected), Some(epochs)) if epochs > 0 => share(epoch, expected, epochs),
            _ => epoch,
        }
    }
}

/// `count` times `all` by `whole`, and a part of one is one.
fn share(count: u64, all: u64, whole: u64) -> u64 {
    let share = (u128::from(count) * u128::from(all)).div_ceil(u128::from(whole));
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stretches of reports after some epochs of a hundred.
    fn after(mut stretches: Stretches, epochs: &[u64]) -> Vec<(u64, Option<u64>)> {
        let next = |epoch: &u64| stretches.next(Some(*epoch), Some(100));
        epochs.iter().map(next).collect()
    }

    fn begun() -> Stretches {
        Stretches::new(0, None, false)
    }

    #[test]
    fn a_report_an_epoch_is_a_stretch_an_epoch() {
        assert_eq!(after(begun(), &[1, 2, 3]), [(1, Some(100)), (2, Some(100)), (3, Some(100))]);
    }

    #[test]
    fn epochs_may_begin_with_zero_and_be_gone_on_with() {
        assert_eq!(after(begun(), &[0, 1]), [(1, Some(100)), (2, Some(100))]);
        let mut first = begun();
        first.next(Some(0), Some(100));
        let later = Stretches::new(3, Some(100), first.begin_with_zero());
        assert_eq!(after(later, &[3, 4]), [(4, Some(100)), (5, Some(100))]);
    }

    #[test]
    fn whoever_reports_now_and_then_has_fewer_stretches() {
        let reports = after(begun(), &[5, 10, 15, 100]);
        assert_eq!(reports[..3], [(1, Some(20)), (2, Some(20)), (3, Some(20))]);
        assert_eq!(reports[3], (4, Some(4)), "it is at its end");
    }

    #[test]
    fn whoever_reports_often_has_more() {
        let epochs: Vec<u64> = (1..=100).flat_map(|epoch| [epoch; 10]).collect();
        let reports = after(begun(), &epochs);
        assert_eq!(reports[499], (500, Some(1000)));
        assert_eq!(reports[999], (1000, Some(1000)));
    }

    #[test]
    fn a_checkpoint_is_gone_on_from() {
        let by_epoch = Stretches::new(7, Some(100), false);
        assert_eq!(after(by_epoch, &[5, 6]), [(5, Some(100)), (6, Some(100))]);
        let by_five = Stretches::new(4, Some(20), false);
        assert_eq!(after(by_five, &[15, 20]), [(3, Some(20)), (4, Some(20))]);
    }

    #[test]
    fn nothing_that_is_known_is_lost_by_one_that_says_too_much() {
        let known = Stretches::new(3, Some(100), false);
        assert_eq!(after(known, &[5])[0].0, 4);
        assert_eq!(after(begun(), &[150]), [(1, Some(1))]);
    }

    #[test]
    fn one_that_counts_nothing_is_counted() {
        let mut stretches = begun();
        assert_eq!(stretches.next(None, Some(9)), (1, Some(9)));
        assert_eq!(stretches.next(None, None), (2, None));
    }
}
