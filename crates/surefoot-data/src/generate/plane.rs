//! Classes as figures in space: circles, moons, blobs and spirals.

use std::f64::consts::{PI, TAU};

use super::{Settings, classified, key, numbered, site};
use crate::error::DataError;
use crate::preprocessing::Column;
use crate::samples::{Samples, room};

/// Two circles, as scikit-learn's `make_circles`: evenly spaced points with normal noise, the outer
/// circle of radius 1 first.
pub(crate) fn circles(
    seed: u64,
    samples: usize,
    noise: f64,
    factor: f64,
) -> Result<Samples, DataError> {
    let settings = Settings("circles");
    settings.samples(samples, 2)?;
    settings.need(
        (0.0..1.0).contains(&factor),
        "factor",
        factor,
        "the inner radius must be at least 0 and below 1, the outer one",
    )?;
    let outer = samples / 2;
    figures(settings, seed, samples, noise, &["outer", "inner"], |i| {
        let (class, step, steps) = halves(i, outer, samples);
        let radius = if class == 0 { 1.0 } else { factor };
        let angle = TAU * step as f64 / steps as f64;
        (class, [radius * libm::cos(angle), radius * libm::sin(angle)])
    })
}

/// Two half circles, as scikit-learn's `make_moons`: evenly spaced points with normal noise, the
/// upper one first.
pub(crate) fn moons(seed: u64, samples: usize, noise: f64) -> Result<Samples, DataError> {
    let settings = Settings("moons");
    settings.samples(samples, 2)?;
    let upper = samples / 2;
    figures(settings, seed, samples, noise, &["upper", "lower"], |i| {
        let (class, step, steps) = halves(i, upper, samples);
        let angle = PI * step as f64 / (steps - 1).max(1) as f64;
        let (x, y) = (libm::cos(angle), libm::sin(angle));
        if class == 0 { (0, [x, y]) } else { (1, [1.0 - x, 0.5 - y]) }
    })
}

/// Spirals that start near the origin and reach radius 1, with normal noise; sample `i` is of class
/// `i % classes`.
pub(crate) fn spirals(
    seed: u64,
    samples: usize,
    classes: usize,
    turns: f64,
    noise: f64,
) -> Result<Samples, DataError> {
    let settings = Settings("spirals");
    settings.need(classes >= 2, "classes", classes, "at least 2 are needed")?;
    settings.samples(samples, classes)?;
    settings.need(turns.is_finite(), "turns", turns, "it must be finite")?;
    let names = numbered(classes);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    figures(settings, seed, samples, noise, &names, |i| {
        let (class, step) = (i % classes, i / classes);
        let steps = (samples - class).div_ceil(classes);
        let radius = (step + 1) as f64 / steps as f64;
        let angle = TAU * (turns * radius + class as f64 / classes as f64);
        (class, [radius * libm::cos(angle), radius * libm::sin(angle)])
    })
}

/// Normal clusters, as scikit-learn's `make_blobs`: the centers are uniform in ±10 and sample `i`
/// belongs to center `i % centers`.
pub(crate) fn blobs(
    seed: u64,
    samples: usize,
    centers: usize,
    features: usize,
    spread: f64,
) -> Result<Samples, DataError> {
    let settings = Settings("blobs");
    settings.need(centers >= 2, "centers", centers, "at least 2 are needed")?;
    settings.need(features >= 1, "features", features, "at least 1 is needed")?;
    settings.samples(samples, centers)?;
    settings.deviation("spread", spread)?;
    let mut values = room(&settings.origin(), samples, features)?;
    let mut ids = room(&settings.origin(), samples, 1)?;
    let (shared, noise) = (key(seed, site::SHARED), key(seed, site::NOISE));
    for i in 0..samples {
        let class = i % centers;
        let (center, noise) = (shared.sample(class as u64), noise.sample(i as u64));
        values.extend((0..features as u64).map(|feature| {
            let middle = 20.0 * center.uniform(feature) - 10.0;
            (middle + spread * noise.normal(feature)) as f32
        }));
        ids.push(class as u32);
    }
    Ok(classified(settings, vec![features], values, ids, numbered(centers)))
}

/// Points of the plane, each at its place in a figure and then moved by noise.
fn figures(
    settings: Settings,
    seed: u64,
    samples: usize,
    noise: f64,
    names: &[&str],
    point: impl Fn(usize) -> (usize, [f64; 2]),
) -> Result<Samples, DataError> {
    settings.deviation("noise", noise)?;
    let mut values = room(&settings.origin(), samples, 2)?;
    let mut ids = room(&settings.origin(), samples, 1)?;
    for i in 0..samples {
        let draw = key(seed, site::NOISE).sample(i as u64);
        let (class, [x, y]) = point(i);
        values.push((x + noise * draw.normal(0)) as f32);
        values.push((y + noise * draw.normal(1)) as f32);
        ids.push(class as u32);
    }
    let names = names.iter().map(|&name| name.to_owned()).collect();
    let mut samples = classified(settings, vec![2], values, ids, names);
    samples.columns = ["x", "y"].map(Column::number).into();
    Ok(samples)
}

/// The class of a sample if the first `first` of `all` are of class 0, its number in the class, and
/// the size of the class.
fn halves(i: usize, first: usize, all: usize) -> (usize, usize, usize) {
    if i < first { (0, i, first) } else { (1, i - first, all - first) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Labels;

    fn points(samples: &Samples) -> Vec<(u32, f32, f32)> {
        let Labels::Classes { ids, .. } = &samples.labels else {
            panic!("classes expected");
        };
        ids.iter().zip(samples.features.chunks(2)).map(|(&id, xy)| (id, xy[0], xy[1])).collect()
    }

    #[test]
    fn circles_without_noise_have_their_radii() {
        for (class, x, y) in points(&circles(1, 41, 0.0, 0.5).unwrap()) {
            let radius = if class == 0 { 1.0 } else { 0.5 };
            assert!((x.hypot(y) - radius).abs() < 1e-6);
        }
    }

    /// `make_moons(5, shuffle=False)` of scikit-learn.
    #[test]
    fn moons_without_noise_are_scikit_learns() {
        let expected =
            [(0, 1.0, 0.0), (0, -1.0, 0.0), (1, 0.0, 0.5), (1, 1.0, -0.5), (1, 2.0, 0.5)];
        for (found, expected) in points(&moons(1, 5, 0.0).unwrap()).iter().zip(expected) {
            assert_eq!(found.0, expected.0);
            assert!((found.1 - expected.1).abs() < 1e-6 && (found.2 - expected.2).abs() < 1e-6);
        }
    }

    #[test]
    fn spirals_end_at_radius_one() {
        let points = points(&spirals(1, 30, 3, 2.0, 0.0).unwrap());
        for &(_, x, y) in &points[27..] {
            assert!((x.hypot(y) - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn blobs_gather_at_their_centers() {
        let tight = blobs(3, 12, 4, 5, 0.0).unwrap();
        let rows: Vec<&[f32]> = tight.features.chunks(5).collect();
        assert_eq!(rows[0], rows[4]);
        assert_ne!(rows[0], rows[1]);
        assert!(tight.features.iter().all(|x| x.abs() <= 10.0));
    }

    #[test]
    fn noise_moves_points_by_its_deviation() {
        let (still, moved) =
            (circles(5, 4000, 0.0, 0.5).unwrap(), circles(5, 4000, 0.2, 0.5).unwrap());
        let squares: f32 =
            still.features.iter().zip(&moved.features).map(|(a, b)| (a - b).powi(2)).sum();
        assert!((squares / 8000.0 - 0.04).abs() < 0.003);
    }
}
