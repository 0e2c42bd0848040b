//! A quantity of each layer over the steps, downsampled while reading.

use surefoot_diagnose::{LayerInfo, LayerObservation, Observation, Summary};

/// Maximum number of columns.
const COLUMNS: u64 = 200;

/// A quantity of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerQuantity {
    Gradients,
    Weights,
    Outputs,
    UpdateRatios,
    DeadUnits,
}

impl LayerQuantity {
    pub(crate) const ALL: [LayerQuantity; 5] = [
        LayerQuantity::Gradients,
        LayerQuantity::Weights,
        LayerQuantity::Outputs,
        LayerQuantity::UpdateRatios,
        LayerQuantity::DeadUnits,
    ];

    /// Name in addresses.
    pub(crate) fn id(self) -> &'static str {
        match self {
            LayerQuantity::Gradients => "gradients",
            LayerQuantity::Weights => "weights",
            LayerQuantity::Outputs => "outputs",
            LayerQuantity::UpdateRatios => "update_ratios",
            LayerQuantity::DeadUnits => "dead_units",
        }
    }

    /// Name for people.
    pub(crate) fn label(self) -> &'static str {
        match self {
            LayerQuantity::Gradients => "gradient norm (L2)",
            LayerQuantity::Weights => "weight norm (L2)",
            LayerQuantity::Outputs => "mean absolute output",
            LayerQuantity::UpdateRatios => "update ratio (L2 of the update / L2 of the weights)",
            LayerQuantity::DeadUnits => "share of dead units",
        }
    }

    /// Returns true if values are compared by their logarithm.
    pub(crate) fn is_log(self) -> bool {
        self != LayerQuantity::DeadUnits
    }

    /// The value of a layer; NaN if the tensor has values that are NaN or infinite.
    fn of(self, layer: &LayerObservation) -> Option<f64> {
        let clean = |summary: &Summary, value: f64| match summary.nan + summary.inf {
            0 => value,
            _ => f64::NAN,
        };
        match self {
            LayerQuantity::Gradients => layer.gradient.as_ref().map(|it| clean(it, it.l2)),
            LayerQuantity::Weights => layer.weight.as_ref().map(|it| clean(it, it.l2)),
            LayerQuantity::Outputs => layer.output.as_ref().map(|it| clean(it, it.abs_mean)),
            LayerQuantity::UpdateRatios => layer.update_ratio,
            LayerQuantity::DeadUnits => layer.dead_units,
        }
    }
}

/// A quantity of layers: one row per layer, columns of steps.
#[derive(Clone, Debug)]
pub(crate) struct LayerMap {
    pub(crate) quantity: LayerQuantity,
    /// The step before the first column.
    start: u64,
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

/// Values of one layer in the steps of a column.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Column {
    /// Sum of the finite values, or of log10 of those above zero.
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
    /// There are values that are NaN or infinite.
    Broken,
    /// Exactly zero, on a logarithmic scale.
    Zero,
    /// Mean value, or mean log10.
    Size(f64),
}

impl LayerMap {
    /// Starts without steps, for layers that are observed every `every` steps.
    pub(crate) fn new(quantity: LayerQuantity, layers: &[LayerInfo], every: u64) -> LayerMap {
        let row = |info: &LayerInfo| Row {
            layer: info.name.clone(),
            kind: info.kind.to_string(),
            columns: Vec::new(),
        };
        LayerMap { quantity, start: 0, width: every.max(1), rows: layers.iter().map(row).collect() }
    }

    /// Leaves out the steps up to `start`.
    pub(crate) fn after(mut self, start: u64) -> LayerMap {
        self.start = start;
        self
    }

    /// Adds a step; steps must be in order.
    pub(crate) fn push(&mut self, observation: &Observation) {
        let step = observation.step.saturating_sub(1).checked_sub(self.start);
        let Some(step) = step.filter(|_| !observation.layers.is_empty()) else {
            return;
        };
        while step / self.width >= COLUMNS {
            self.coarsen();
        }
        let at = (step / self.width) as usize;
        for (row, layer) in self.rows.iter_mut().zip(&observation.layers) {
            if let Some(value) = self.quantity.of(layer) {
                if row.columns.len() <= at {
                    row.columns.resize(at + 1, Column::default());
                }
                row.columns[at].push(value, self.quantity.is_log());
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

    /// The step before the first column.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Memory of the columns in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let columns = self.rows.iter().map(|row| row.columns.capacity());
        columns.sum::<usize>() * size_of::<Column>()
    }

    /// Number of steps per column.
    pub(crate) fn width(&self) -> u64 {
        self.width
    }

    /// The observed layers, input first.
    pub(crate) fn rows(&self) -> Vec<&Row> {
        let rows = self.rows.iter();
        rows.filter(|row| !row.columns.is_empty()).collect()
    }

    /// Number of columns.
    pub(crate) fn columns(&self) -> usize {
        let lengths = self.rows.iter().map(|row| row.columns.len());
        lengths.max().unwrap_or(0)
    }

    /// Range of the cells, if there are any.
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
    fn push(&mut self, value: f64, is_log: bool) {
        if !value.is_finite() {
            self.broken = true;
        } else if value > 0.0 || !is_log {
            self.sum += if is_log { value.log10() } else { value };
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

    fn gradients(steps: u64, every: u64, norm: impl Fn(u64, usize) -> Option<f64>) -> LayerMap {
        let mut gradients = LayerMap::new(LayerQuantity::Gradients, &layers(3), every);
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

    #[test]
    fn dead_units_are_shares_and_zero_is_a_value() {
        let mut map = LayerMap::new(LayerQuantity::DeadUnits, &layers(1), 1).after(2);
        for step in 1..=4 {
            let mut seen = observation(step, 1.0, Some(1), |_| None);
            seen.layers[0].dead_units = Some(if step == 3 { 0.0 } else { 0.75 });
            map.push(&seen);
        }
        let cells: Vec<Cell> = map.rows()[0].cells(2).collect();
        assert_eq!(cells, [Cell::Size(0.0), Cell::Size(0.75)]);
    }
}
