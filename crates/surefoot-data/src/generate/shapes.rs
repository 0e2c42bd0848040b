//! Small images of simple shapes, for models that look.

use super::{Settings, classified, key, site};
use crate::error::DataError;
use crate::samples::{Samples, room};

/// Returns true if a point is inside a shape that fills the square from -1 to 1.
type Shape = fn(f64, f64) -> bool;

/// The classes, in their order.
const SHAPES: [(&str, Shape); 10] = [
    ("disc", |x, y| x * x + y * y <= 1.0),
    ("square", |x, y| x.abs().max(y.abs()) <= 0.85),
    ("triangle", |x, y| y.abs() <= 0.9 && x.abs() <= (y + 0.9) / 1.8),
    ("cross", |x, y| x.abs().max(y.abs()) <= 0.95 && (x.abs() - y.abs()).abs() <= 0.3),
    ("ring", |x, y| (0.3..=1.0).contains(&(x * x + y * y))),
    ("plus", |x, y| x.abs().max(y.abs()) <= 1.0 && x.abs().min(y.abs()) <= 0.28),
    ("horizontal stripes", |x, y| x.abs() <= 1.0 && odd_band(y, 5.0)),
    ("vertical stripes", |x, y| y.abs() <= 1.0 && odd_band(x, 5.0)),
    ("diamond", |x, y| x.abs() + y.abs() <= 1.0),
    ("checkers", |x, y| x.abs().max(y.abs()) <= 1.0 && odd_band(x, 4.0) == odd_band(y, 4.0)),
];

/// Returns true if a coordinate is in an odd band of the given number of bands from -1 to 1.
fn odd_band(x: f64, bands: f64) -> bool {
    let band = ((x + 1.0) / 2.0 * bands).floor();
    (0.0..bands).contains(&band) && band % 2.0 == 0.0
}

/// The points of a pixel that are looked at, as offsets from its corner: edges come out smooth.
const POINTS: [[f64; 2]; 4] = [[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]];

/// Shapes on black: place, size and brightness are uniform and normal noise is added to every value.
/// Sample `i` is of class `i % classes`. With three channels each shape has a tint.
pub(crate) fn shapes(
    seed: u64,
    samples: usize,
    size: usize,
    channels: usize,
    classes: usize,
    noise: f64,
) -> Result<Samples, DataError> {
    let settings = Settings("shapes");
    settings.need(
        (2..=SHAPES.len()).contains(&classes),
        "classes",
        classes,
        "it must be 2 to 10",
    )?;
    settings.samples(samples, classes)?;
    settings.need(
        (8..=1 << 12).contains(&size),
        "size",
        size,
        "it must be 8 to 4096 for the shapes to differ",
    )?;
    settings.need(
        channels == 1 || channels == 3,
        "channels",
        channels,
        "it must be 1 (grey) or 3 (colour)",
    )?;
    settings.deviation("noise", noise)?;

    let width = size * size * channels;
    let mut features = room(&settings.origin(), samples, width)?;
    let mut ids = room(&settings.origin(), samples, 1)?;
    let mut image = vec![0.0; width];
    for i in 0..samples {
        let class = i % classes;
        key(seed, site::NOISE).sample(i as u64).fill_normal_f32(&mut image);
        image.iter_mut().for_each(|value| *value *= noise as f32);
        let draw = key(seed, site::FEATURES).sample(i as u64);
        Figure::new(SHAPES[class].1, size, channels, |index| draw.uniform(index)).draw(&mut image);
        features.extend_from_slice(&image);
        ids.push(class as u32);
    }
    let names = SHAPES[..classes].iter().map(|(name, _)| (*name).into());
    Ok(classified(settings, vec![size, size, channels], features, ids, names.collect()))
}

/// A shape at its place.
struct Figure {
    shape: Shape,
    size: usize,
    center: [f64; 2],
    radius: f64,
    colour: Vec<f64>,
}

impl Figure {
    fn new(shape: Shape, size: usize, channels: usize, uniform: impl Fn(u64) -> f64) -> Figure {
        let extent = size as f64;
        let radius = extent * (0.25 + 0.2 * uniform(0));
        // Never over the edge, where a ring could pass for a disc.
        let free = extent - 2.0 * radius;
        let center = [radius + free * uniform(1), radius + free * uniform(2)];
        let brightness = 0.5 + 0.5 * uniform(3);
        let colour = if channels == 1 {
            vec![brightness]
        } else {
            (0..channels as u64)
                .map(|channel| brightness * (0.4 + 0.6 * uniform(4 + channel)))
                .collect()
        };
        Figure { shape, size, center, radius, colour }
    }

    /// Adds the figure to an image.
    fn draw(&self, image: &mut [f32]) {
        for (i, pixel) in image.chunks_mut(self.colour.len()).enumerate() {
            let (row, column) = ((i / self.size) as f64, (i % self.size) as f64);
            let inside = POINTS.iter().filter(|[dx, dy]| {
                (self.shape)(
                    (column + dx - self.center[0]) / self.radius,
                    (row + dy - self.center[1]) / self.radius,
                )
            });
            let cover = inside.count() as f64 / POINTS.len() as f64;
            for (value, colour) in pixel.iter_mut().zip(&self.colour) {
                *value += (cover * colour) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_noise_values_are_brightness() {
        let samples = shapes(1, 40, 16, 3, 10, 0.0).unwrap();
        assert!(samples.features.iter().all(|x| (0.0..=1.0).contains(x)));
        for image in samples.features.chunks(16 * 16 * 3) {
            let lit = image.iter().filter(|&&x| x > 0.0).count();
            assert!((24..16 * 16 * 3 / 10 * 9).contains(&lit), "{lit}");
        }
    }

    #[test]
    fn each_shape_differs_from_each_other() {
        let drawn: Vec<Vec<f32>> = SHAPES
            .iter()
            .map(|(_, shape)| {
                let mut image = vec![0.0; 64];
                Figure::new(*shape, 8, 1, |_| 0.5).draw(&mut image);
                image
            })
            .collect();
        for (i, a) in drawn.iter().enumerate() {
            for b in &drawn[..i] {
                let apart: f32 = a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum();
                assert!(apart > 2.0, "{apart}");
            }
        }
    }

    #[test]
    fn a_ring_has_a_hole() {
        let mut image = vec![0.0; 32 * 32];
        Figure::new(SHAPES[4].1, 32, 1, |_| 0.5).draw(&mut image);
        assert_eq!(image[16 * 32 + 16], 0.0);
        assert!(image.iter().any(|&x| x > 0.0));
    }

    #[test]
    fn eleven_classes_are_refused() {
        let error = shapes(1, 40, 16, 1, 11, 0.0).unwrap_err();
        assert!(error.to_string().contains("classes = 11"), "{error}");
    }
}
