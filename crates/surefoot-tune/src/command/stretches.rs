//! Which stretch of its trial a command reports.

/// Counts the reports of a command.
///
/// A trial is judged by its stretches, one a report. A command counts epochs, and may report after every fifth. It may
/// also go on from a checkpoint, and then begins with a later one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretches {
    /// Those that earlier attempts have reported.
    known: u64,
    /// How many an earlier attempt expected.
    expected: Option<u64>,
    /// The last one.
    index: u64,
    /// The epoch of the last report.
    epoch: Option<u64>,
    /// The epochs from one report to the next.
    stride: u64,
    /// Whether the first epoch was 0.
    from_zero: bool,
}

impl Stretches {
    pub(super) fn new(known: u64, expected: Option<u64>) -> Stretches {
        Stretches {
            known,
            expected,
            index: 0,
            epoch: None,
            stride: 1,
            from_zero: false,
        }
    }

    /// The number of the stretch that is reported now, and how many there will be, if that can be told.
    pub(super) fn next(&mut self, epoch: Option<u64>, epochs: Option<u64>) -> (u64, Option<u64>) {
        self.from_zero |= self.epoch.is_none() && epoch == Some(0);
        let epoch = epoch.map(|epoch| epoch.saturating_add(u64::from(self.from_zero)));
        self.stride = match (self.epoch, epoch) {
            (Some(before), Some(now)) => now.saturating_sub(before).max(1),
            (Some(_), None) => self.stride,
            // Whoever reports after every fifth epoch reports the fifth first.
            (None, Some(first)) if self.known == 0 => first.max(1),
            (None, _) => match (epochs, self.expected) {
                (Some(epochs), Some(expected)) => (epochs / expected.max(1)).max(1),
                _ => 1,
            },
        };
        self.index = match (self.index, epoch) {
            // It goes on from a checkpoint. None is left out, and what was reported since is replaced.
            (0, Some(epoch)) => epoch.div_ceil(self.stride).clamp(1, self.known + 1),
            (index, _) => index + 1,
        };
        self.epoch = epoch.or(self.epoch);
        let planned = match (epoch, epochs) {
            (Some(epoch), Some(epochs)) => {
                Some(self.index + epochs.saturating_sub(epoch) / self.stride)
            }
            (None, epochs) => epochs,
            (_, None) => None,
        };
        (self.index, planned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stretches of reports after some epochs of a hundred.
    fn after(known: u64, expected: Option<u64>, epochs: &[u64]) -> Vec<(u64, Option<u64>)> {
        let mut stretches = Stretches::new(known, expected);
        let next = |epoch: &u64| stretches.next(Some(*epoch), Some(100));
        epochs.iter().map(next).collect()
    }

    #[test]
    fn a_report_an_epoch_is_a_stretch_an_epoch() {
        assert_eq!(
            after(0, None, &[1, 2, 3]),
            [(1, Some(100)), (2, Some(100)), (3, Some(100))]
        );
    }

    #[test]
    fn epochs_may_begin_with_zero() {
        assert_eq!(after(0, None, &[0, 1]), [(1, Some(100)), (2, Some(100))]);
        let reports = after(0, None, &[0, 5, 95]);
        assert_eq!(reports[1], (2, Some(20)));
    }

    #[test]
    fn whoever_reports_now_and_then_has_fewer_stretches() {
        let reports = after(0, None, &[5, 10, 15, 100]);
        assert_eq!(reports[..3], [(1, Some(20)), (2, Some(20)), (3, Some(20))]);
        assert_eq!(reports[3], (4, Some(4)), "it is at its end");
    }

    #[test]
    fn a_checkpoint_is_gone_on_from() {
        assert_eq!(
            after(7, Some(100), &[5, 6])[..],
            [(5, Some(100)), (6, Some(100))]
        );
        assert_eq!(
            after(4, Some(20), &[15, 20])[..],
            [(3, Some(20)), (4, Some(20))]
        );
    }

    #[test]
    fn nothing_that_is_known_is_lost_by_one_that_says_too_much() {
        assert_eq!(
            after(3, Some(100), &[5, 6])[..],
            [(4, Some(99)), (5, Some(99))]
        );
        assert_eq!(after(3, Some(100), &[0])[0].0, 1);
    }

    #[test]
    fn one_that_counts_nothing_is_counted() {
        let mut stretches = Stretches::new(0, None);
        assert_eq!(stretches.next(None, Some(9)), (1, Some(9)));
        assert_eq!(stretches.next(None, None), (2, None));
    }
}
