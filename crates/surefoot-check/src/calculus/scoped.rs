//! Array with rollback, for walking the branches of a program.
//!
//! A branch costs as much as it writes, not as much as the array holds.

/// Array whose writes can be rolled back to a mark.
pub(super) struct Scoped<T> {
    values: Vec<T>,
    /// Overwritten values, oldest first.
    undo: Vec<(usize, T)>,
}

/// Start of a branch.
pub(super) struct Mark(usize);

/// Last value that a branch wrote to each index, sorted by index.
pub(super) type Changes<T> = Vec<(usize, T)>;

impl<T: Copy> Scoped<T> {
    pub(super) fn new(values: Vec<T>) -> Self {
        Scoped { values, undo: Vec::new() }
    }

    pub(super) fn values(&self) -> &[T] {
        &self.values
    }

    pub(super) fn get(&self, at: usize) -> T {
        self.values[at]
    }

    pub(super) fn set(&mut self, at: usize, value: T) {
        self.undo.push((at, self.values[at]));
        self.values[at] = value;
    }

    pub(super) fn branch(&self) -> Mark {
        Mark(self.undo.len())
    }

    /// Restores the array as it was at the mark, and returns what was undone.
    pub(super) fn roll_back(&mut self, mark: Mark) -> Changes<T> {
        let mut changes = Vec::with_capacity(self.undo.len() - mark.0);
        for (at, before) in self.undo.drain(mark.0..).rev() {
            changes.push((at, self.values[at]));
            self.values[at] = before;
        }
        // The latest write to an index comes first, and the sort is stable.
        changes.sort_by_key(|(at, _)| *at);
        changes.dedup_by_key(|(at, _)| *at);
        changes
    }

    /// Merges two branches that start here: calls `merge` with the index and both values for each index
    /// that one of them wrote.
    pub(super) fn merge(
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
    fn branches_are_rolled_back_and_merged() {
        let mut array = Scoped::new(vec![1, 2, 3]);
        let outer = array.branch();
        array.set(2, 30);

        let mark = array.branch();
        array.set(0, 10);
        array.set(0, 11);
        let one = array.roll_back(mark);
        assert_eq!(one, [(0, 11)]);
        let mark = array.branch();
        array.set(1, 20);
        let other = array.roll_back(mark);

        array.merge(one, other, |_, a, b| a + b);
        assert_eq!(array.values(), [12, 22, 30]);
        array.roll_back(outer);
        assert_eq!(array.values(), [1, 2, 3]);
    }
}
