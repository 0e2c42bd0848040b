//! Configurations that can be started.

use super::super::Search;
use super::process::Target;
use crate::sampler::draws::Draws;
use crate::sampler::frame::{Axis, Frame, Row};
use crate::sampler::gp::embedding::Embedding;
use crate::sampler::sobol;
use crate::space::{Point, Space};
use surefoot_random::{Key, Purpose};

/// Configurations that compete to be started.
const SIZE: usize = 256;

/// Configurations that are replaced whenever a trial is observed for the first time. All of the pool is
/// replaced while about ten trials start.
const RENEWED: usize = 24;

/// Separates the draws of the pool from those of trials and decisions.
const SITE: u64 = 0x9001;

/// Attempts to draw a point that no trial has. A small space may have none left.
const ATTEMPTS: u64 = 32;

/// Coordinate system of a search.
pub(super) struct Coordinates {
    space: Space,
}

impl Coordinates {
    pub(super) fn new(space: &Space) -> Coordinates {
        Coordinates { space: space.clone() }
    }

    /// Number of coordinates of a configuration.
    pub(super) fn dimensions(&self) -> usize {
        Embedding::new(&Frame::new(&self.space)).dimensions()
    }

    /// Coordinates of a configuration.
    pub(super) fn of(&self, point: &Point) -> Vec<f64> {
        let frame = Frame::new(&self.space);
        Embedding::new(&frame).of(&frame.row(point))
    }
}

/// A configuration that can be started.
pub(super) struct Candidate {
    /// Its point; `None` if the sampler of the study suggests it.
    pub(super) point: Option<Point>,
    pub(super) target: Target,
    /// Logarithm of the expected effort of an epoch.
    pub(super) effort: f64,
    is_started: bool,
}

/// The configurations that can be started: a list, or draws from a space.
pub(super) struct Pool {
    coordinates: Coordinates,
    seed: u64,
    is_listed: bool,
    /// True if the sampler of the study suggests points: the pool only estimates what they are worth.
    is_suggested: bool,
    candidates: Vec<Candidate>,
    drawn: u64,
}

impl Pool {
    pub(super) fn new(search: &Search<'_>) -> Pool {
        let coordinates = Coordinates::new(search.space);
        let candidate = |point: &Point| Candidate {
            target: Target::new(usize::MAX, coordinates.of(point)),
            point: Some(point.clone()),
            effort: 0.0,
            is_started: false,
        };
        let candidates = search.candidates.unwrap_or_default().iter().map(candidate).collect();
        let is_suggested = search.is_suggested || coordinates.dimensions() == 0;
        Pool {
            coordinates,
            seed: search.seed,
            is_listed: search.candidates.is_some(),
            is_suggested,
            candidates,
            drawn: 0,
        }
    }

    pub(super) fn coordinates(&self) -> &Coordinates {
        &self.coordinates
    }

    /// True if the sampler of the study suggests points.
    pub(super) fn is_suggested(&self) -> bool {
        self.is_suggested
    }

    /// Candidates that no trial has started.
    pub(super) fn open(&mut self) -> impl Iterator<Item = &mut Candidate> {
        self.candidates.iter_mut().filter(|candidate| !candidate.is_started)
    }

    /// Excludes the configuration of a trial.
    pub(super) fn exclude(&mut self, at: &[f64]) {
        let mut same = self.candidates.iter_mut().filter(|candidate| candidate.target.at == at);
        match self.is_listed {
            // Each entry of a list can be started once.
            true => {
                if let Some(first) = same.find(|candidate| !candidate.is_started) {
                    first.is_started = true;
                }
            }
            false => same.for_each(|candidate| candidate.is_started = true),
        }
    }

    /// A configuration that was not started, regardless of the model: `Some(None)` if the sampler suggests it.
    pub(super) fn random(
        &self,
        key: Key,
        number: u64,
        started: &[&[f64]],
    ) -> Option<Option<Point>> {
        if self.is_suggested {
            return Some(None);
        }
        if self.is_listed {
            let open: Vec<&Candidate> =
                self.candidates.iter().filter(|candidate| !candidate.is_started).collect();
            let chosen = (!open.is_empty()).then(|| key.below(1, open.len() as u64) as usize)?;
            return Some(open[chosen].point.clone());
        }
        let points = (0..ATTEMPTS).map(|attempt| {
            // Later attempts skip ahead in the sequence, past the points of the next trials.
            sobol::point(&self.coordinates.space, self.seed, number + attempt * 4096)
        });
        let mut new = points.filter(|point| {
            let at = self.coordinates.of(point);
            !started.iter().any(|started| **started == at)
        });
        new.next().map(Some)
    }

    /// Replaces some candidates: half by random ones, half by neighbors of the best trials.
    pub(super) fn renew(
        &mut self,
        best: &[&Point],
        started: &[&[f64]],
        effort: impl Fn(&Target) -> f64,
    ) {
        if self.is_listed {
            return;
        }
        let Pool { coordinates, candidates, is_suggested, .. } = self;
        let frame = Frame::new(&coordinates.space);
        let embedding = Embedding::new(&frame);
        for _ in 0..RENEWED {
            let key = Key::new(self.seed, Purpose::Sample).epoch(self.drawn).site(SITE);
            let mut draws = Draws::new(key);
            let row =
                match (self.drawn as usize).is_multiple_of(2) || best.is_empty() || *is_suggested {
                    true => frame.random(&mut draws),
                    false => {
                        let chosen = draws.below(best.len());
                        near(&frame, &frame.row(best[chosen]), &mut draws)
                    }
                };
            // By way of the point, as for trials: whole numbers and logarithms are rounded there, and the
            // configuration of a trial is excluded by its coordinates.
            let point = frame.point(&row);
            let at = embedding.of(&frame.row(&point));
            let is_started = started.iter().any(|started| **started == at);
            let target = Target::new(usize::MAX, at);
            let candidate = Candidate {
                effort: effort(&target),
                point: (!*is_suggested).then_some(point),
                target,
                is_started,
            };
            let slot = self.drawn as usize % SIZE;
            match candidates.get_mut(slot) {
                Some(old) => *old = candidate,
                None => candidates.push(candidate),
            }
            self.drawn += 1;
        }
    }

    /// Forgets the solutions for all observations after the first `length`.
    pub(super) fn truncate(&mut self, length: usize) {
        self.candidates.iter_mut().for_each(|candidate| candidate.target.truncate(length));
    }

    /// Forgets what depends on the process.
    pub(super) fn reset(&mut self, effort: impl Fn(&Target) -> f64) {
        for candidate in &mut self.candidates {
            candidate.target.truncate(0);
            if self.is_listed {
                candidate.effort = effort(&candidate.target);
            }
        }
    }
}

/// A neighbor: numbers perturbed, one choice in ten replaced.
fn near(frame: &Frame<'_>, row: &Row, draws: &mut Draws) -> Row {
    let spread = 0.25 * draws.uniform();
    let moved = row.iter().zip(frame.axes()).map(|(&at, axis)| match *axis {
        _ if at.is_nan() => at,
        Axis::Choice(n) if draws.uniform() < 0.1 => draws.below(n) as f64,
        Axis::Choice(_) => at,
        Axis::Real | Axis::Whole => draws.truncated(at, spread),
    });
    let moved: Row = moved.collect();
    frame.settled(&moved, draws)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Domain, Parameter};

    #[test]
    fn the_configuration_of_a_trial_is_no_candidate() {
        let domains = [
            Domain::LogInt(2, 4000),
            Domain::Int(1, 100),
            Domain::LogUniform(1e-4, 10.0),
            Domain::Uniform(-3.0, 0.99),
        ];
        let parameter = |(i, domain): (usize, &Domain)| Parameter {
            name: format!("p{i}"),
            domain: domain.clone(),
            conditions: Vec::new(),
        };
        let space = Space::new(domains.iter().enumerate().map(parameter).collect()).unwrap();
        let search = Search { space: &space, seed: 1, candidates: None, is_suggested: false };
        let mut pool = Pool::new(&search);
        for _ in 0..10 {
            pool.renew(&[], &[], |_| 0.0);
        }
        let points: Vec<Point> = pool.open().filter_map(|it| it.point.clone()).collect();
        assert!(points.len() > 200);
        for point in &points {
            let at = pool.coordinates().of(point);
            pool.exclude(&at);
        }
        assert_eq!(pool.open().count(), 0);
    }
}
