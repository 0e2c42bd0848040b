//! Points of a space as numeric coordinates.

use super::draws::Draws;
use crate::space::{Domain, Parameter, Point, Space, Value};

/// One coordinate per parameter: the place of a number or integer from 0 to 1, the index of a choice, NaN
/// if the parameter is inactive.
pub(crate) type Row = Vec<f64>;

/// Kind of a coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Axis {
    /// Any place from 0 to 1.
    Real,
    /// Places of integers.
    Whole,
    /// One of this many choices.
    Choice(usize),
}

/// Coordinate system of a space.
pub(crate) struct Frame<'a> {
    space: &'a Space,
    axes: Vec<Axis>,
    /// For each parameter, the parameters and values that its conditions require.
    conditions: Vec<Vec<(usize, &'a [Value])>>,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(space: &'a Space) -> Frame<'a> {
        let parameters = space.parameters();
        let axes = parameters.iter().map(|p| axis(&p.domain)).collect();
        let of = |parameter: &'a Parameter| {
            let conditions = parameter.conditions.iter().filter_map(|condition| {
                let index = parameters.iter().position(|p| p.name == condition.parameter)?;
                Some((index, condition.values.as_slice()))
            });
            conditions.collect()
        };
        Frame { space, axes, conditions: parameters.iter().map(of).collect() }
    }

    pub(crate) fn axes(&self) -> &[Axis] {
        &self.axes
    }

    fn domain(&self, index: usize) -> &'a Domain {
        &self.space.parameters()[index].domain
    }

    fn value(&self, index: usize, coordinate: f64) -> Value {
        match self.domain(index) {
            Domain::Choice(values) => values[(coordinate as usize).min(values.len() - 1)].clone(),
            domain => domain.at(coordinate),
        }
    }

    fn coordinate(&self, index: usize, value: &Value) -> f64 {
        match self.domain(index) {
            // The value may come from a study whose space has changed.
            Domain::Choice(values) => values.iter().position(|v| v == value).unwrap_or(0) as f64,
            domain => domain.place(value),
        }
    }

    /// Coordinates of a point.
    pub(crate) fn row(&self, point: &Point) -> Row {
        let parameters = self.space.parameters().iter().enumerate();
        let coordinates = parameters.map(|(index, parameter)| {
            let value = point.get(&parameter.name);
            value.map_or(f64::NAN, |value| self.coordinate(index, value))
        });
        coordinates.collect()
    }

    /// Point of coordinates.
    pub(crate) fn point(&self, row: &Row) -> Point {
        let mut point = Point::default();
        for (index, parameter) in self.space.parameters().iter().enumerate() {
            if parameter.holds(&point) {
                let value = self.value(index, row[index]);
                point.0.insert(parameter.name.clone(), value);
            }
        }
        point
    }

    /// True if the conditions of a parameter hold for the coordinates before it.
    fn holds(&self, index: usize, row: &[f64]) -> bool {
        self.conditions[index].iter().all(|&(other, values)| {
            !row[other].is_nan() && values.contains(&self.value(other, row[other]))
        })
    }

    /// Builds coordinates for all active parameters.
    pub(crate) fn build(&self, mut coordinate: impl FnMut(usize, &[f64]) -> f64) -> Row {
        let mut row = Vec::with_capacity(self.axes.len());
        for index in 0..self.axes.len() {
            let there = self.holds(index, &row);
            let at = if there { coordinate(index, &row) } else { f64::NAN };
            row.push(self.snapped(index, at));
        }
        row
    }

    /// Rounds an integer coordinate to the center of its share.
    fn snapped(&self, index: usize, coordinate: f64) -> f64 {
        match self.axes[index] {
            Axis::Whole if !coordinate.is_nan() => {
                let domain = self.domain(index);
                domain.place(&domain.at(coordinate))
            }
            _ => coordinate,
        }
    }

    /// Coordinate at a place from 0 to 1.
    pub(crate) fn at(&self, index: usize, place: f64) -> f64 {
        match self.axes[index] {
            Axis::Choice(n) => ((place * n as f64) as usize).min(n - 1) as f64,
            _ => place,
        }
    }

    /// Uniform random coordinates.
    pub(crate) fn random(&self, draws: &mut Draws) -> Row {
        self.build(|index, _| self.at(index, draws.uniform()))
    }

    /// Keeps coordinates of active parameters and draws those that became active.
    pub(crate) fn settled(&self, row: &[f64], draws: &mut Draws) -> Row {
        self.build(|index, _| match row[index] {
            missing if missing.is_nan() => self.at(index, draws.uniform()),
            coordinate => coordinate,
        })
    }

    /// Bounds of the share of an integer.
    pub(crate) fn share(&self, index: usize, place: f64) -> (f64, f64) {
        let edges = |low: f64, high: f64, value: f64, scale: fn(f64) -> f64| {
            let (first, last) = (scale(low - 0.5), scale(high + 0.5));
            let share = |edge: f64| ((scale(edge) - first) / (last - first)).clamp(0.0, 1.0);
            (share(value - 0.5), share(value + 0.5))
        };
        match (self.domain(index), self.domain(index).at(place)) {
            (&Domain::Int(low, high), Value::Int(value)) => {
                edges(low as f64, high as f64, value as f64, |x| x)
            }
            (&Domain::LogInt(low, high), Value::Int(value)) => {
                edges(low as f64, high as f64, value as f64, libm::log)
            }
            _ => (place, place),
        }
    }

    /// Place of the integer `by` further; `None` outside the domain.
    pub(crate) fn step(&self, index: usize, place: f64, by: i64) -> Option<f64> {
        let domain = self.domain(index);
        match (domain, domain.at(place)) {
            (&(Domain::Int(low, high) | Domain::LogInt(low, high)), Value::Int(value)) => {
                let next = value.checked_add(by)?;
                (low..=high).contains(&next).then(|| domain.place(&Value::Int(next)))
            }
            _ => None,
        }
    }
}

fn axis(domain: &Domain) -> Axis {
    match domain {
        Domain::Uniform(..) | Domain::LogUniform(..) => Axis::Real,
        Domain::Int(..) | Domain::LogInt(..) => Axis::Whole,
        Domain::Choice(values) => Axis::Choice(values.len()),
    }
}

/// Equality with NaN equal to NaN.
pub(crate) fn same(a: &[f64], b: &[f64]) -> bool {
    let mut pairs = a.iter().zip(b);
    pairs.all(|(a, b)| a == b || a.is_nan() && b.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::fixture;
    use proptest::prelude::*;
    use surefoot_random::{Key, Purpose};

    #[test]
    fn shares_of_integers_partition_the_range() {
        for domain in [Domain::Int(-2, 5), Domain::LogInt(3, 40)] {
            let space = fixture::space([("n", domain.clone())]);
            let frame = Frame::new(&space);
            let mut place = Some(domain.place(&domain.at(0.0)));
            let mut reached = 0.0;
            while let Some(at) = place {
                let (low, high) = frame.share(0, at);
                assert!((low - reached).abs() < 1e-12 && low < at && at < high);
                reached = high;
                place = frame.step(0, at, 1);
            }
            assert!((reached - 1.0).abs() < 1e-12);
        }
    }

    proptest! {
        #[test]
        fn coordinates_round_trip_to_their_point(space in fixture::spaces(), seed: u64) {
            let frame = Frame::new(&space);
            let row = frame.random(&mut Draws::new(Key::new(seed, Purpose::Sample)));
            let point = frame.point(&row);
            prop_assert!(space.contains(&point));
            let again = frame.point(&frame.row(&point));
            for (name, value) in &point.0 {
                match (value, again.get(name)) {
                    (&Value::Float(a), Some(&Value::Float(b))) => {
                        prop_assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0));
                    }
                    (value, again) => prop_assert_eq!(Some(value), again),
                }
            }
        }
    }
}
