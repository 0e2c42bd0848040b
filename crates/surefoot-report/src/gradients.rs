//! Gradient norm of each layer over the steps, downsampled while reading.

use surefoot_diagnose::{LayerInfo, Observation, Summary};

/// Maximum number of columns.
const COLUMNS: u64 = 200;

/// Gradient norms: one row per layer, columns of steps.
#[derive(Clone, Debug)]
pub(crate) struct Gradients {
    /// Number of steps per column.
    width: u64,
    rows: Vec<Row>,
}

/// One layer.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) layer: String,
    pub(crate) kind: String,
    pub(crate) columns: Vec<Column>,
}

/// Gradient of one layer in the steps of a column.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Column {
    /// Sum of log10 of the finite norms above zero.
    sum: f64,
    count: u64,
    zero: bool,
    broken: bool,
}

/// Value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell {
    /// Not observed.
    Unseen,
    /// The gradient has values that are NaN or infinite.
    Broken,
    /// The gradient is exactly zero.
    Zero,
    /// Mean log10 of the norm.
    Size(f64),
}

impl Gradients {
    /// Starts without steps, for layers that are observed every `every` steps.
    pub(crate) fn new(layers: &[LayerInfo], every: u64) -> Gradients {
        let row = |info: &LayerInfo| Row {
            layer: info.name.clone(),
            kind: info.kind.to_string(),
            columns: Vec::new(),
        };
        Gradients { width: every.max(1), rows: layers.iter().map(row).collect() }
    }

    /// Adds a step; steps must be in order.
    pub(crate) fn push(&mut self, observation: &Observation) {
        if observation.layers.is_empty() {
            return;
        }
        let step = observation.step.saturating_sub(1);
        while step / self.width >= COLUMNS {
            self.coarsen();
        }
        let at = (step / self.width) as usize;
        for (row, layer) in self.rows.iter_mut().zip(&observation.layers) {
            if let Some(gradient) = &layer.gradient {
                if row.columns.len() <= at {
                    row.columns.resize(at + 1, Column::default());
                }
                row.columns[at].push(gradient);
            }
        }
    }

    fn coarsen(&mut self) {
        self.width *= 2;
        for row in &mut self.rows {
            let merged = row.columns.chunks(2).map(|pair| {
                let next = pair.get(1).copied().unwrap_or_default();
                pair[0].merged(next)
            });
            row.columns = merged.collect();
        }
    }

    /// Number of steps per column.
    pub(crate) fn width(&self) -> u64 {
        self.width
    }

    /// The layers with observed gradients, input first.
    pub(crate) fn rows(&self) -> Vec<&Row> {
        let rows = self.rows.iter();
        rows.filter(|row| !row.columns.is_empty()).collect()
    }

    /// Number of columns.
    pub(crate) fn columns(&self) -> usize {
        let lengths = self.rows.iter().map(|row| row.columns.len());
        lengths.max().unwrap_or(0)
    }

    /// Range of log10 norms, if there are any.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let cells = self.rows.iter().flat_map(|row| &row.columns);
        let sizes = cells.filter_map(|column| match column.cell() {
            Cell::Size(size) => Some(size),
            _ => None,
        });
        sizes.fold(None, |range, size| match range {
            None => Some((size, size)),
            Some((low, high)) => Some((low.min(size), high.max(size))),
        })
    }
}

impl Row {
    /// The first `count` cells; missing ones are unobserved.
    pub(crate) fn cells(&self, count: usize) -> impl Iterator<Item = Cell> {
        let cells = self.columns.iter().map(Column::cell);
        cells.chain(std::iter::repeat(Cell::Unseen)).take(count)
    }
}

impl Column {
    fn push(&mut self, gradient: &Summary) {
        let norm = gradient.l2;
        if gradient.nan + gradient.inf > 0 || !norm.is_finite() {
            self.broken = true;
        } else if norm > 0.0 {
            self.sum += norm.log10();
            self.count += 1;
        } else {
            self.zero = true;
        }
    }

    fn merged(self, next: Column) -> Column {
        Column {
            sum: self.sum + next.sum,
            count: self.count + next.count,
            zero: self.zero || next.zero,
            broken: self.broken || next.broken,
        }
    }

    fn cell(&self) -> Cell {
        match *self {
            Column { broken: true, .. } => Cell::Broken,
            Column { sum, count, .. } if count > 0 => Cell::Size(sum / count as f64),
            Column { zero: true, .. } => Cell::Zero,
            _ => Cell::Unseen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{layers, observation};

    fn gradients(steps: u64, every: u64, norm: impl Fn(u64, usize) -> Option<f64>) -> Gradients {
        let mut gradients = Gradients::new(&layers(3), every);
        for step in 1..=steps {
            let seen = (step - 1).is_multiple_of(every);
            gradients.push(&observation(step, 1.0, seen.then_some(3), |i| norm(step, i)));
        }
        gradients
    }

    #[test]
    fn a_short_run_has_a_column_for_each_observed_step() {
        let seen = gradients(100, 10, |_, _| Some(0.01));
        assert_eq!((seen.columns(), seen.width()), (10, 10));
        let row = seen.rows()[0];
        assert!(row.cells(10).all(|cell| cell == Cell::Size(-2.0)));
        assert_eq!(row.cells(11).last(), Some(Cell::Unseen));
    }

    #[test]
    fn a_long_run_has_at_most_two_hundred_columns() {
        let seen = gradients(100_000, 1, |_, i| Some(10_f64.powi(-(i as i32))));
        assert!((100..=200).contains(&seen.columns()), "{}", seen.columns());
        assert_eq!(seen.range(), Some((-2.0, 0.0)));
    }

    #[test]
    fn zero_nan_and_unobserved_are_distinct() {
        let seen = gradients(4, 1, |step, i| match (step, i) {
            (_, 2) => None,
            (2, _) => Some(0.0),
            (3, _) => Some(f64::NAN),
            _ => Some(1.0),
        });
        assert_eq!(seen.rows().len(), 2, "a layer without gradients is omitted");
        let cells: Vec<Cell> = seen.rows()[0].cells(4).collect();
        assert_eq!(cells, [Cell::Size(0.0), Cell::Zero, Cell::Broken, Cell::Size(0.0)]);
    }

    #[test]
    fn nan_survives_downsampling() {
        let seen = gradients(5000, 1, |step, _| Some(if step == 777 { f64::NAN } else { 1.0 }));
        let columns = seen.columns();
        let broken = seen.rows()[0].cells(columns).filter(|cell| *cell == Cell::Broken);
        assert_eq!(broken.count(), 1);
    }
}
