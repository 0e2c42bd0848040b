//! A log that was read.

use crate::logs::error::Error;
use crate::logs::name::{Kind, kind};
use crate::logs::natural;
use crate::logs::role::{Map, Role};
use crate::logs::table::{Row, Table};
use crate::replay::{self, Replay};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use surefoot_diagnose::{
    Confidence, Diagnosis, Evaluation, Facts, LayerInfo, LayerObservation, Observation, Problem,
    Quantity, Split, Summary, TaskKind, Thresholds,
};

/// A training log as observations.
///
/// Rows with a loss are its steps, numbered from 1, whether they stand for one step, fifty or an
/// epoch: detectors work with durations relative to the training, which are the same in any unit.
/// [`Log::at`] returns the log's own number of a step.
#[derive(Clone, Debug)]
pub struct Log {
    /// Facts of the run. Epochs and steps are those in the log.
    pub facts: Facts,
    /// Quantities that a diagnosis can use.
    pub available: BTreeSet<Quantity>,
    /// Training steps.
    pub steps: Vec<Observation>,
    /// Evaluations on the validation split.
    pub evaluations: Vec<Evaluation>,
    /// Source of the log.
    pub origin: Origin,
    /// Rows and cells that were left out, in sentences.
    pub warnings: Vec<String>,
    /// The log's own number of each step.
    marks: Vec<u64>,
    /// True if the epoch of each row is known.
    knows_epochs: bool,
    /// The log's own epochs of the first row and the last, if it has them.
    epochs: Option<(f64, f64)>,
}

/// Source of a log.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file, or the directory.
    pub path: PathBuf,
    /// Name of the run, if the log has several.
    pub run: Option<String>,
    /// Name of the log's format.
    pub format: &'static str,
    /// Unit of the log's own numbers.
    pub unit: Unit,
    /// The columns or tags that were read.
    pub series: Vec<Series>,
}

/// Unit in which a log numbers its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Optimizer steps.
    Step,
    /// Epochs.
    Epoch,
    /// Its own rows, from 1.
    Row,
}

impl Unit {
    /// Name of the unit, in the singular.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Step => "step",
            Unit::Epoch => "epoch",
            Unit::Row => "row",
        }
    }
}

/// A column or tag that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Role of the series.
    pub role: Role,
    /// Name in the log.
    pub name: String,
    /// True if the user stated the role.
    pub mapped: bool,
}

impl Log {
    /// Builds the logs of the runs in a table with one row per step, several steps or epoch.
    ///
    /// `cell` returns the number in a row and column, or `None` if it is missing. Its errors become
    /// warnings in columns that are used.
    pub fn from_table(
        path: &Path,
        format: &'static str,
        columns: &[String],
        rows: usize,
        map: &Map,
        cell: impl Fn(usize, usize) -> Result<Option<f64>, Error>,
    ) -> Result<Vec<Log>, Error> {
        let tables = Table::read(path, format, columns, rows, map, cell)?;
        let logs: Vec<Log> = tables.into_iter().map(Log::from).collect();
        match logs.iter().find(|log| log.steps.is_empty()) {
            None if !logs.is_empty() => Ok(logs),
            _ => {
                Err(Error::Empty { path: path.to_owned(), what: "column", name: "loss".to_owned() })
            }
        }
    }

    /// Runs all detectors that the log has the quantities for.
    pub fn diagnose(&self, thresholds: Thresholds) -> Diagnosis {
        let mut diagnosis = Diagnosis::new(self.facts.clone(), thresholds);
        diagnosis.restrict_to(&self.available);
        self.replay(&mut diagnosis);
        diagnosis
    }

    /// Returns true if the log is too short to judge the run as a whole: fewer than five rows, or
    /// fewer than twenty steps. Only what is wrong in itself, such as a loss of NaN, is found in it.
    pub fn is_too_short(&self) -> bool {
        const ROWS: usize = 5;
        const STEPS: u64 = 20;
        let span = match (self.marks.first(), self.marks.last()) {
            (Some(first), Some(last)) => last - first + 1,
            _ => 0,
        };
        self.steps.len() < ROWS || self.origin.unit == Unit::Step && span < STEPS
    }

    /// Feeds the steps and evaluations to `diagnosis`.
    ///
    /// [`Diagnosis::finish`] is called if the log has all planned steps and is not too short. A loss
    /// of NaN that the run recovers from is a warning, and so is a level or oscillating loss in a log
    /// that begins in the middle: what was learned before is unknown.
    pub fn replay(&self, diagnosis: &mut Diagnosis) -> Replay {
        let steps = self.steps.iter().map(Ok::<_, Infallible>);
        let complete = !self.is_too_short();
        let Ok(replay) = replay::replay(steps, &self.evaluations, diagnosis, complete);
        if self.begins_in_the_middle() {
            let of_start = [Problem::SLOW_CONVERGENCE, Problem::OSCILLATING_LOSS];
            diagnosis.downgrade("The log begins in the middle of the run.", |finding| {
                of_start.contains(&finding.problem)
            });
        }
        if self.recovers_from_nan() {
            let of_nan = [Problem::NON_FINITE_LOSS, Problem::EXPLODING_GRADIENT];
            diagnosis.downgrade("The run recovers.", |finding| {
                finding.confidence == Confidence::Certain && of_nan.contains(&finding.problem)
            });
        }
        replay
    }

    /// Returns true if the first rows are missing: at least as many as the log has, or ten.
    fn begins_in_the_middle(&self) -> bool {
        const MISSING: usize = 10;
        let rows = self.steps.len();
        let needed = rows.clamp(2, MISSING) as f64;
        let starts_late = |first: f64, last: f64, least: f64| {
            let spacing = (last - first) / rows.saturating_sub(1).max(1) as f64;
            first >= (spacing * needed).max(least)
        };
        let marks = self.marks.first().zip(self.marks.last());
        marks.is_some_and(|(first, last)| starts_late(*first as f64, *last as f64, needed))
            || self.epochs.is_some_and(|(first, last)| {
                // Epochs in parts begin at 0, whole ones may begin at 1.
                starts_late(first, last, if first.fract() == 0.0 { 2.0 } else { 0.0 })
            })
    }

    /// Returns true if few losses are NaN or infinite, and the last ones are not. Programs skip such
    /// steps, or log a loss that their optimizer did not use.
    fn recovers_from_nan(&self) -> bool {
        /// Number of consecutive values that a run does not recover from.
        const LASTING: usize = 3;
        /// Share of all values that is too many, unless it is a single one.
        const SHARE: f64 = 0.1;
        let recovers = |losses: Vec<f64>| {
            let lost = losses.iter().filter(|loss| !loss.is_finite()).count();
            losses.last().is_none_or(|last| last.is_finite())
                && !losses.windows(LASTING).any(|part| part.iter().all(|loss| !loss.is_finite()))
                && (lost <= 1 || lost as f64 <= SHARE * losses.len() as f64)
        };
        recovers(self.steps.iter().map(|seen| seen.loss).collect())
            && recovers(self.evaluations.iter().map(|seen| seen.loss).collect())
    }

    /// The log's own number of a step, counted in [`Origin::unit`].
    pub fn at(&self, step: u64) -> u64 {
        let index = usize::try_from(step.saturating_sub(1)).unwrap_or(usize::MAX);
        let mark = self.marks.get(index).or(self.marks.last());
        mark.copied().unwrap_or(step)
    }

    /// Tells what was planned, where the log does not: how many epochs, and how many of the steps
    /// it counts make one.
    pub fn plan(&mut self, epochs: Option<u64>, steps_per_epoch: Option<u64>) {
        if let Some(steps) = steps_per_epoch
            && self.origin.unit != Unit::Epoch
        {
            let first = self.marks.first().copied().unwrap_or(0);
            for (seen, mark) in self.steps.iter_mut().zip(&self.marks) {
                seen.epoch = ((mark - first) / steps.max(1)).saturating_add(1);
            }
            for evaluation in &mut self.evaluations {
                let before = self.steps.get(evaluation.step.saturating_sub(1) as usize);
                evaluation.epoch = before.map_or(0, |seen| seen.epoch);
            }
            self.knows_epochs = true;
            self.count_epochs();
        }
        if let Some(epochs) = epochs.map(|epochs| epochs.max(1)) {
            if !self.knows_epochs {
                self.facts.steps_per_epoch = Some((self.steps.len() as u64 / epochs).max(1));
            }
            // A log may begin in the middle.
            let before = self.steps.first().map_or(0, |seen| seen.epoch - 1);
            self.facts.epochs = Some(epochs.saturating_sub(before).max(1));
        }
    }

    fn count_epochs(&mut self) {
        let epochs = match self.steps.as_slice() {
            [first, .., last] => last.epoch.saturating_sub(first.epoch) + 1,
            _ => 1,
        };
        self.facts.epochs = Some(epochs);
        // Rounded down, so that the log has all planned steps.
        self.facts.steps_per_epoch = Some((self.steps.len() as u64 / epochs).max(1));
    }
}

impl From<Table> for Log {
    fn from(table: Table) -> Log {
        let place = |role: Role| table.series.iter().position(|series| series.role == role);
        let [loss, metric, rate, val_loss, val_metric, norm] = [
            Role::Loss,
            Role::Metric,
            Role::LearningRate,
            Role::ValidationLoss,
            Role::ValidationMetric,
            Role::GradientNorm,
        ]
        .map(place);
        let names = [metric, val_metric].into_iter().flatten();
        let metric_name = names.map(|i| table.series[i].name.as_str()).next();
        let metric_kind = metric_name.map_or(Kind::Other, kind);
        let scale = scale(&table, [metric, val_metric], metric_kind);
        let layers = Layers::of(&table);
        let epochs = epochs(&table.rows);

        let mut steps: Vec<Observation> = Vec::new();
        let mut evaluations = Vec::new();
        let mut kept = Vec::new();
        let mut learning_rate = None;
        let mut without_metric = 0;
        // A few values do not tell what the metric was in between.
        let count = |place: usize| {
            let cells = table.rows.iter().map(|row| row.cells[place]);
            cells.flatten().count()
        };
        let rare = |place: usize| {
            let values = count(place);
            values < RARE && 2 * values < loss.map_or(0, count)
        };
        let rare = metric.is_some_and(rare);
        for (row, epoch) in table.rows.iter().zip(&epochs) {
            let get = |place: Option<usize>| place.and_then(|place| row.cells[place]);
            learning_rate = get(rate).or(learning_rate);
            if let Some(loss) = get(loss) {
                let seen = Observation::new(steps.len() as u64 + 1, loss).with_epoch(*epoch);
                steps.push(seen.with_learning_rate(learning_rate));
                kept.push(row);
            }
            // A metric that is logged less often than the loss applies to all rows since it was
            // last logged.
            if let Some(metric) = get(metric) {
                let since = if rare { steps.len().saturating_sub(1) } else { without_metric };
                for seen in &mut steps[since..] {
                    seen.metric = Some(metric * scale);
                }
                without_metric = steps.len();
            }
            if let Some(seen) = steps.last_mut() {
                if seen.layers.is_empty() {
                    seen.layers = layers.observe(row);
                }
                seen.gradient_norm = seen.gradient_norm.or(get(norm));
            }
            if let Some(loss) = get(val_loss) {
                evaluations.push(Evaluation {
                    epoch: if steps.is_empty() { 0 } else { *epoch },
                    step: steps.len() as u64,
                    split: Split::Validation,
                    loss,
                    metric: get(val_metric).map(|metric| metric * scale),
                });
            }
        }
        let last_metric = without_metric.checked_sub(1).and_then(|i| steps[i].metric);
        for seen in steps[without_metric..].iter_mut().filter(|_| !rare) {
            seen.metric = last_metric;
        }

        let mut available = BTreeSet::from([Quantity::Loss]);
        available.extend(last_metric.map(|_| Quantity::Metric));
        let has_gradient =
            |seen: &Observation| !seen.layers.is_empty() || seen.gradient_norm.is_some();
        if steps.iter().any(has_gradient) {
            available.insert(Quantity::Gradients);
        }
        available.extend(evaluations.first().map(|_| Quantity::Validation));
        let (unit, marks) = marks(&kept);
        let regression = metric_kind == Kind::R2;
        let mut log = Log {
            facts: Facts {
                layers: layers.infos(),
                task: regression.then_some(TaskKind::Regression),
                metric: match metric_kind {
                    Kind::Accuracy => Some("accuracy".to_owned()),
                    Kind::R2 => Some("r2".to_owned()),
                    Kind::Other => metric_name.map(str::to_owned),
                },
                chance: regression.then_some(0.0),
                ..Facts::default()
            },
            available,
            steps,
            evaluations,
            knows_epochs: kept.iter().any(|row| row.epoch.is_some()),
            epochs: epochs_of(&kept),
            origin: Origin {
                path: table.path,
                run: table.run,
                format: table.format,
                unit,
                series: table.series,
            },
            warnings: table.warnings,
            marks,
        };
        log.count_epochs();
        log
    }
}

/// Number of values below which a metric that is logged much less often than the loss is not a curve.
const RARE: usize = 5;

/// Factor that turns a metric into a fraction: 0.01 for an accuracy in percent.
fn scale(table: &Table, places: [Option<usize>; 2], kind: Kind) -> f64 {
    let values = table.rows.iter().flat_map(|row| {
        let places = places.iter().flatten();
        places.filter_map(|&place| row.cells[place])
    });
    let largest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    match kind {
        Kind::Accuracy if largest > 1.5 => 0.01,
        _ => 1.0,
    }
}

/// Epoch of each row, from 1. A row without one belongs to the epoch of the row before.
fn epochs(rows: &[Row]) -> Vec<u64> {
    let given = || rows.iter().filter_map(|row| row.epoch);
    let parts = given().any(|epoch| epoch.fract() != 0.0);
    let from_zero = given().any(|epoch| epoch < 1.0) && !parts;
    let mut last = 1;
    let number = |epoch: f64| (epoch.ceil() + f64::from(u8::from(from_zero))).max(1.0) as u64;
    rows.iter()
        .map(|row| {
            last = row.epoch.map_or(last, number);
            last
        })
        .collect()
}

/// The log's own epochs of the first row and the last.
fn epochs_of(rows: &[&Row]) -> Option<(f64, f64)> {
    let mut epochs = rows.iter().filter_map(|row| row.epoch);
    let first = epochs.next()?;
    Some((first, epochs.next_back().unwrap_or(first)))
}

/// Unit of the log and its own number of each row.
fn marks(rows: &[&Row]) -> (Unit, Vec<u64>) {
    let numbers = |of: fn(&Row) -> Option<f64>| -> Option<Vec<u64>> {
        let whole = |number: &f64| *number >= 0.0 && number.fract() == 0.0;
        let numbers = rows.iter().map(|row| of(row).filter(whole));
        let numbers: Vec<u64> = numbers.map(|n| n.map(|n| n as u64)).collect::<Option<_>>()?;
        numbers.is_sorted_by(|a, b| a < b).then_some(numbers)
    };
    if let Some(steps) = numbers(|row| row.step) {
        (Unit::Step, steps)
    } else if let Some(epochs) = numbers(|row| row.epoch) {
        (Unit::Epoch, epochs)
    } else {
        (Unit::Row, (1..=rows.len() as u64).collect())
    }
}

/// The layers whose gradients are logged, in the order of the log. An alphabetical order becomes a
/// natural one, with layer 2 before layer 10.
struct Layers {
    names: Vec<String>,
    /// The series of each.
    places: Vec<Vec<usize>>,
}

impl Layers {
    fn of(table: &Table) -> Layers {
        let mut layers = Layers { names: Vec::new(), places: Vec::new() };
        for (place, series) in table.series.iter().enumerate() {
            let Role::Gradient(name) = &series.role else {
                continue;
            };
            match layers.names.iter().position(|known| known == name) {
                Some(layer) => layers.places[layer].push(place),
                None => {
                    layers.names.push(name.clone());
                    layers.places.push(vec![place]);
                }
            }
        }
        if layers.names.is_sorted() {
            let mut sorted: Vec<(String, Vec<usize>)> =
                layers.names.drain(..).zip(layers.places.drain(..)).collect();
            sorted.sort_by_key(|(name, _)| natural::key(name));
            (layers.names, layers.places) = sorted.into_iter().unzip();
        }
        layers
    }

    fn infos(&self) -> Vec<LayerInfo> {
        let info = |name: &String| LayerInfo {
            name: name.clone(),
            // Some number: it has a gradient, so it learns.
            parameters: 1,
            ..LayerInfo::default()
        };
        self.names.iter().map(info).collect()
    }

    fn observe(&self, row: &Row) -> Vec<LayerObservation> {
        let norm = |places: &Vec<usize>| {
            let norms = places.iter().filter_map(|&place| row.cells[place]);
            norms.reduce(f64::hypot)
        };
        let norms: Vec<Option<f64>> = self.places.iter().map(norm).collect();
        if norms.iter().all(Option::is_none) {
            return Vec::new();
        }
        let layer = |norm: Option<f64>| LayerObservation {
            gradient: norm.map(of_norm),
            ..LayerObservation::default()
        };
        norms.into_iter().map(layer).collect()
    }
}

/// Statistics of a tensor of which only the norm is logged.
fn of_norm(norm: f64) -> Summary {
    if !norm.is_finite() {
        return Summary {
            nan: norm.is_nan().into(),
            inf: norm.is_infinite().into(),
            ..Summary::default()
        };
    }
    Summary {
        count: 1,
        zeros: (norm == 0.0).into(),
        mean: norm,
        min: norm,
        max: norm,
        l1: norm,
        l2: norm,
        abs_mean: norm,
        linf: norm,
        ..Summary::default()
    }
}
