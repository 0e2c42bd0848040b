//! Maps the epochs that a command reports to the steps of its trial.

/// More "epochs" are training steps, which are reported now and then.
const MANY: u64 = 100_000;

/// Places the reports of a command.
///
/// A command may report every epoch, every fifth, or ten times an epoch. After a restart from a checkpoint
/// its first report is a later epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepCounter {
    /// Steps reported by earlier attempts.
    known: u64,
    /// Total number of steps, as of the last report or an earlier attempt.
    expected: Option<u64>,
    /// The last step.
    step: u64,
    /// True if epochs are 0-based.
    from_zero: bool,
}

impl StepCounter {
    pub(super) fn new(known: u64, expected: Option<u64>, from_zero: bool) -> StepCounter {
        StepCounter { known, expected, step: 0, from_zero }
    }

    pub(super) fn starts_at_zero(&self) -> bool {
        self.from_zero
    }

    /// Returns the step of the next report and the total number of steps, if known.
    pub(super) fn next(&mut self, epoch: Option<u64>, epochs: Option<u64>) -> (u64, Option<u64>) {
        self.from_zero |= self.step == 0 && epoch == Some(0);
        let epoch = epoch.map(|epoch| epoch.saturating_add(u64::from(self.from_zero)));
        self.step = match (self.step, epoch) {
            // First report of an attempt: steps after its checkpoint are replaced.
            (0, Some(epoch)) => self.first_step(epoch, epochs).max(1),
            // One step per epoch: a skipped epoch is a skipped step.
            (step, Some(epoch)) if epochs == self.expected && epochs.is_some_and(|n| n < MANY) => {
                epoch.max(step + 1)
            }
            (step, _) => step + 1,
        };
        let planned = match (epoch, epochs) {
            (Some(epoch), Some(epochs)) => {
                Some(share(self.step, epochs, epoch.max(1)).max(self.step))
            }
            (_, epochs) => epochs,
        };
        self.expected = planned;
        (self.step, planned)
    }

    /// The step of the first report, by the total of an earlier attempt.
    fn first_step(&self, epoch: u64, epochs: Option<u64>) -> u64 {
        match (self.expected, epochs) {
            _ if self.known == 0 => 1,
            (Some(expected), Some(epochs)) if epochs > 0 => share(epoch, expected, epochs),
            _ => epoch.min(self.known + 1),
        }
    }
}

/// `count * all / whole`, rounded up.
fn share(count: u64, all: u64, whole: u64) -> u64 {
    let share = (u128::from(count) * u128::from(all)).div_ceil(u128::from(whole));
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of reports after some of 100 epochs.
    fn after(mut counter: StepCounter, epochs: &[u64]) -> Vec<(u64, Option<u64>)> {
        let next = |epoch: &u64| counter.next(Some(*epoch), Some(100));
        epochs.iter().map(next).collect()
    }

    fn counter() -> StepCounter {
        StepCounter::new(0, None, false)
    }

    #[test]
    fn one_report_an_epoch_is_one_step_an_epoch() {
        assert_eq!(after(counter(), &[1, 2, 3]), [(1, Some(100)), (2, Some(100)), (3, Some(100))]);
    }

    #[test]
    fn epochs_may_start_at_zero_and_continue() {
        assert_eq!(after(counter(), &[0, 1]), [(1, Some(100)), (2, Some(100))]);
        let mut first = counter();
        first.next(Some(0), Some(100));
        let later = StepCounter::new(3, Some(100), first.starts_at_zero());
        assert_eq!(after(later, &[3, 4]), [(4, Some(100)), (5, Some(100))]);
    }

    #[test]
    fn rare_reports_make_fewer_steps() {
        let reports = after(counter(), &[5, 10, 15, 100]);
        assert_eq!(reports[..3], [(1, Some(20)), (2, Some(20)), (3, Some(20))]);
        assert_eq!(reports[3], (4, Some(4)), "last epoch");
    }

    #[test]
    fn frequent_reports_make_more_steps() {
        let epochs: Vec<u64> = (1..=100).flat_map(|epoch| [epoch; 10]).collect();
        let reports = after(counter(), &epochs);
        assert_eq!(reports[499], (500, Some(1000)));
        assert_eq!(reports[999], (1000, Some(1000)));
    }

    #[test]
    fn an_attempt_continues_from_a_checkpoint() {
        let by_epoch = StepCounter::new(7, Some(100), false);
        assert_eq!(after(by_epoch, &[5, 6]), [(5, Some(100)), (6, Some(100))]);
        let by_five = StepCounter::new(4, Some(20), false);
        assert_eq!(after(by_five, &[15, 20]), [(3, Some(20)), (4, Some(20))]);
    }

    #[test]
    fn skipped_epochs_are_skipped_steps() {
        let known = StepCounter::new(3, Some(100), false);
        assert_eq!(after(known, &[6, 7]), [(6, Some(100)), (7, Some(100))]);
        let by_five = StepCounter::new(2, Some(20), false);
        assert_eq!(after(by_five, &[20, 25])[..], [(4, Some(20)), (5, Some(20))]);
        assert_eq!(after(counter(), &[1, 2, 6, 7])[3], (7, Some(100)));
        assert_eq!(after(counter(), &[150]), [(1, Some(1))]);
    }

    #[test]
    fn reports_without_epochs_are_counted() {
        let mut counter = counter();
        assert_eq!(counter.next(None, Some(9)), (1, Some(9)));
        assert_eq!(counter.next(None, None), (2, None));
    }
}
