//! Observations of a run, downsampled in one pass.

use std::path::{Component, Path};

use surefoot_diagnose::Observation;
use surefoot_record::{Attempt, Header, Record, Result};

use crate::history::History;
use crate::layer_map::{LayerMap, LayerQuantity};
use crate::series::Series;

/// Downsampled observations of one run.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) loss: Series,
    pub(crate) metric: Series,
    pub(crate) learning_rate: Series,
    /// Quantities of layers; gradients first.
    pub(crate) maps: Vec<LayerMap>,
    /// Last recorded step.
    pub(crate) last_step: u64,
    /// Number of steps in the plan, if known.
    pub(crate) planned: Option<u64>,
    /// Events of the run.
    pub(crate) history: History,
}

impl Reading {
    /// A reading without steps. `series` is the empty form of all series.
    pub(crate) fn new(header: &Header, series: Series, quantities: &[LayerQuantity]) -> Reading {
        let map = |quantity: &LayerQuantity| {
            LayerMap::new(*quantity, &header.facts.layers, header.observe_every)
        };
        Reading {
            loss: series.clone(),
            metric: series.clone(),
            learning_rate: series,
            maps: quantities.iter().map(map).collect(),
            last_step: 0,
            planned: header.facts.total_steps(),
            history: History::default(),
        }
    }

    fn of(run: &Record) -> Result<Reading> {
        let quantities = [LayerQuantity::Gradients];
        let mut reading = Reading::new(run.header(), Series::default(), &quantities);
        reading.history = History::of(&run.events()?);
        for observation in run.observations()? {
            reading.push(&observation?);
        }
        Ok(reading)
    }

    /// Adds a step; steps must be in order.
    pub(crate) fn push(&mut self, observation: &Observation) {
        let step = observation.step;
        self.last_step = step;
        self.loss.push(step, observation.loss);
        if let Some(metric) = observation.metric {
            self.metric.push(step, metric);
        }
        if let Some(rate) = observation.learning_rate {
            self.learning_rate.push(step, rate);
        }
        for map in &mut self.maps {
            map.push(observation);
        }
    }

    /// The map of gradients, if any were observed.
    pub(crate) fn gradients(&self) -> Option<&LayerMap> {
        self.maps.first().filter(|map| map.columns() > 0)
    }
}

/// The plan as given and, if it differs, the delivered attempt.
#[derive(Debug)]
pub(crate) struct Readings {
    pub(crate) given: Reading,
    pub(crate) delivered: Option<Delivered>,
}

/// The delivered attempt.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) number: u32,
    /// `None` if its record cannot be read.
    pub(crate) reading: Option<Reading>,
}

impl Readings {
    /// Reads both at the same time.
    pub(crate) fn of(run: &Record, delivered: Option<&Attempt>) -> Result<Readings> {
        let dir = run.dir();
        std::thread::scope(|scope| {
            let delivered = delivered.map(|attempt| {
                let reading = scope.spawn(move || read_attempt(dir, &attempt.run));
                (attempt.number, reading)
            });
            Ok(Readings {
                given: Reading::of(run)?,
                delivered: delivered.map(|(number, reading)| Delivered {
                    number,
                    // A page without the attempt is better than no page.
                    reading: reading.join().ok().flatten(),
                }),
            })
        })
    }

    /// Reads the delivered attempt, if possible.
    pub(crate) fn repaired(&self) -> Option<(u32, &Reading)> {
        let delivered = self.delivered.as_ref()?;
        Some((delivered.number, delivered.reading.as_ref()?))
    }
}

pub(crate) fn read_attempt(dir: &Path, run: &str) -> Option<Reading> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(run).components().all(inside) {
        return None;
    }
    Reading::of(&Record::open(&dir.join(run)).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_record::{Header, Recorder};

    #[test]
    fn attempts_outside_the_run_are_not_read() {
        let runs = tempfile::tempdir().unwrap();
        let other = Recorder::create(runs.path(), "other", "", Header::default()).unwrap();
        assert!(read_attempt(runs.path(), "other-001").is_some());
        assert!(read_attempt(other.dir(), "../other-001").is_none());
        assert!(read_attempt(runs.path(), &other.dir().display().to_string()).is_none());
    }
}
