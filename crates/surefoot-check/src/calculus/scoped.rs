//! An array with branches that can be taken back.
//!
//! Programs branch far more often than they have variables worth copying: a branch costs what it
//! writes, not what there is.

/// The array.
pub(super) struct Scoped<T> {
    values: Vec<T>,
    /// What was there before each write, oldest first.
    journal: Vec<(usize, T)>,
}

/// The beginning of a branch.
pub(super) struct Mark(usize);

/// What a branch wrote last into each place it wrote to, by place.
pub(super) type Changes<T> = Vec<(usize, T)>;

impl<T: Copy> Scoped<T> {
    pub(super) fn new(values: Vec<T>) -> Self {
        Scoped { values, journal: Vec::new() }
    }

    pub(super) fn values(&self) -> &[T] {
        &self.values
    }

    pub(super) fn get(&self, at: usize) -> T {
        self.values[at]
    }

    pub(super) fn set(&mut self, at: usize, value: T) {
        self.journal.push((at, self.values[at]));
        self.values[at] = value;
    }

    pub(super) fn branch(&self) -> Mark {
        Mark(self.journal.len())
    }

    /// Everything is as it was at the mark.
    pub(super) fn take_back(&mut self, mark: Mark) -> Changes<T> {
        let mut changes = Vec::with_capacity(self.journal.len() - mark.0);
        for (at, before) in self.journal.drain(mark.0..).rev() {
            changes.push((at, self.values[at]));
            self.values[at] = before;
        }
        // The latest write to a place came off first, and the sort is stable.
        changes.sort_by_key(|(at, _)| *at);
        changes.dedup_by_key(|(at, _)| *at);
        changes
    }

    /// Calls `merge` with the place and both values for each place that one of two branches from
    /// here wrote to.
    pub(super) fn meet(
        &mut self,
        one: Changes<T>,
        other: Changes<T>,
        mut merge: impl FnMut(usize, T, T) -> T,
    ) {
        let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
        loop {
            let at = match (one.peek(), other.peek()) {
                (Some((a, _)), Some((b, _))) => *a.min(b),
                (Some((at, _)), None) | (None, Some((at, _))) => *at,
                (None, None) => break,
            };
            let here = self.values[at];
            let a = one.next_if(|(place, _)| *place == at);
            let b = other.next_if(|(place, _)| *place == at);
            let value = merge(at, a.map_or(here, |c| c.1), b.map_or(here, |c| c.1));
            self.set(at, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_taken_back_and_met() {
        let mut array = Scoped::new(vec![1, 2, 3]);
        let outer = array.branch();
        array.set(2, 30);

        let mark = array.branch();
        array.set(0, 10);
        array.set(0, 11);
        let one = array.take_back(mark);
        assert_eq!(one, [(0, 11)]);
        let mark = array.branch();
        array.set(1, 20);
        let other = array.take_back(mark);

        array.meet(one, other, |_, a, b| a + b);
        assert_eq!(array.values(), [12, 22, 30]);
        array.take_back(outer);
        assert_eq!(array.values(), [1, 2, 3]);
    }
}
