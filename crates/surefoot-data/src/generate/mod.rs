//! Synthetic data: small sets with a known answer.
//!
//! Each sample is a pure function of the seed, its number and the settings. Everything is computed
//! in `f64` with operations that produce the same bits on every platform (sine and cosine come from
//! `libm`, not from the system) and rounded to `f32` at the end.

mod plane;
mod regression;
mod sequences;
mod shapes;

pub(crate) use plane::{blobs, circles, moons, spirals};
pub(crate) use regression::{friedman, linear};
pub(crate) use sequences::{copy, parity};
pub(crate) use shapes::shapes;

use surefoot_random::{Key, Purpose};

use crate::error::{DataError, Origin};
use crate::samples::{Labels, Measure, Samples};

/// Purpose of a draw. A site is never reassigned: recorded data depends on it.
mod site {
    /// The features, or what they are computed from.
    pub(super) const FEATURES: u64 = 0;
    /// The noise.
    pub(super) const NOISE: u64 = 1;
    /// Values shared by all samples: centers, weights.
    pub(super) const SHARED: u64 = 2;
}

/// The key of a generator's draws at a site.
fn key(seed: u64, site: u64) -> Key {
    Key::new(seed, Purpose::Generate).site(site)
}

/// Checks of a generator's settings, so that an error names the setting.
#[derive(Clone, Copy)]
struct Settings(&'static str);

impl Settings {
    fn origin(self) -> Origin {
        Origin::Generator(self.0)
    }

    fn need(
        self,
        fits: bool,
        key: &'static str,
        value: impl ToString,
        need: &'static str,
    ) -> Result<(), DataError> {
        let (kind, value) = (self.0, value.to_string());
        match fits {
            true => Ok(()),
            false => Err(DataError::new(format!("data.source ({kind}): {key} = {value}; {need}"))),
        }
    }

    fn samples(self, samples: usize, least: usize) -> Result<(), DataError> {
        self.need(
            samples >= least.max(2),
            "samples",
            samples,
            "at least two are needed, and one for each class",
        )
    }

    /// A standard deviation.
    fn deviation(self, key: &'static str, value: f64) -> Result<(), DataError> {
        self.need(
            value.is_finite() && value >= 0.0,
            key,
            value,
            "it must be a finite number, 0 or more",
        )
    }
}

/// Samples of named classes from a generator.
fn classified(
    settings: Settings,
    shape: Vec<usize>,
    features: Vec<f32>,
    ids: Vec<u32>,
    names: Vec<String>,
) -> Samples {
    Samples {
        origin: settings.origin(),
        label_origin: settings.origin(),
        shape,
        features,
        columns: Vec::new(),
        label_columns: Vec::new(),
        measure: Measure::Amounts,
        labels: Labels::Classes { ids, names },
        positions: 1,
        notes: Vec::new(),
    }
}

/// Classes that have no names but their numbers.
fn numbered(classes: usize) -> Vec<String> {
    (0..classes).map(|class| class.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use surefoot_plan::{Data, Source};
    use twox_hash::XxHash3_128;

    /// One of each generator, small.
    fn each() -> [Source; 9] {
        [
            Source::Circles { samples: 20, noise: 0.1, factor: 0.5 },
            Source::Blobs { samples: 20, centers: 3, features: 4, spread: 1.0 },
            Source::Moons { samples: 21, noise: 0.1 },
            Source::Spirals { samples: 20, classes: 3, turns: 1.5, noise: 0.05 },
            Source::Linear { samples: 20, features: 3, noise: 0.1 },
            Source::Friedman { samples: 20, features: 7, noise: 1.0 },
            Source::Copy { samples: 20, length: 6, symbols: 5 },
            Source::Parity { samples: 20, length: 6 },
            Source::Shapes { samples: 20, size: 12, channels: 3, classes: 10, noise: 0.1 },
        ]
    }

    /// The digests of their bits.
    const DIGESTS: [u128; 9] = [
        0xc5c74f84b00d2c2b0b15b1a3cad01f95,
        0x7cb9de5d5619320aad1773783e5f7cdf,
        0x70e770412bb72892340630862f1dcb0e,
        0xca62f0bbc4053ffd8efa875546a3302d,
        0x08041de9e1988108354b7e7e86128ed4,
        0xbdd5c8651ec25c52f9c2b1124e6a4eb1,
        0xca5abff1c2a18c10328403302a637d64,
        0xbd0a99e1d748d515c413e853eba88238,
        0x70519e1d087d05007a9b7657ad061ec6,
    ];

    fn made(source: &Source, seed: u64) -> Samples {
        crate::read(source, &Data::new(source.clone()), seed, Path::new("")).unwrap()
    }

    fn bytes(samples: &Samples) -> Vec<u8> {
        let features = samples.features.iter().flat_map(|x| x.to_le_bytes());
        match &samples.labels {
            Labels::Classes { ids, .. } => {
                features.chain(ids.iter().flat_map(|id| id.to_le_bytes())).collect()
            }
            Labels::Numbers { values, .. } => {
                features.chain(values.iter().flat_map(|y| y.to_le_bytes())).collect()
            }
        }
    }

    /// A change here changes what every recorded run on generated data means.
    #[test]
    fn the_bits_never_change() {
        let found = each().map(|source| XxHash3_128::oneshot(&bytes(&made(&source, 42))));
        assert_eq!(found, DIGESTS, "{found:#034x?}");
    }

    #[test]
    fn another_seed_makes_other_data() {
        for source in each() {
            assert_ne!(bytes(&made(&source, 1)), bytes(&made(&source, 2)), "{source:?}");
        }
    }

    #[test]
    fn every_sample_is_whole_and_finite() {
        for source in each() {
            let samples = made(&source, 7);
            let width: usize = samples.shape.iter().product();
            assert_eq!(samples.features.len(), samples.len() * width, "{source:?}");
            assert!(samples.features.iter().all(|x| x.is_finite()), "{source:?}");
        }
    }

    #[test]
    fn more_data_than_memory_is_an_error() {
        for (samples, needed) in [(usize::MAX / 2, u64::MAX), (1 << 50, 3 << 52)] {
            let source = Source::Linear { samples, features: 3, noise: 0.0 };
            let error =
                crate::read(&source, &Data::new(source.clone()), 0, Path::new("")).unwrap_err();
            let expected = format!("the generator linear needs {needed} bytes of memory");
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn a_setting_that_makes_no_sense_is_named() {
        let source = Source::Moons { samples: 10, noise: -1.0 };
        let error = crate::read(&source, &Data::new(source.clone()), 0, Path::new("")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "data.source (moons): noise = -1; it must be a finite number, 0 or more"
        );
    }
}
