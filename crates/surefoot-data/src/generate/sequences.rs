//! Sequences of symbols that only a model with a memory can classify.

use super::{Settings, classified, key, numbered, site};
use crate::error::DataError;
use crate::samples::{Measure, Samples, room};

/// Uniform symbols; the class is the first of them, to be remembered to the end.
pub(crate) fn copy(
    seed: u64,
    samples: usize,
    length: usize,
    symbols: usize,
) -> Result<Samples, DataError> {
    let settings = Settings("copy");
    settings.need((2..=1 << 16).contains(&symbols), "symbols", symbols, "it must be 2 to 65536")?;
    settings.samples(samples, symbols)?;
    sequences(settings, seed, [samples, length], symbols, |sequence| sequence[0] as u32)
}

/// Uniform bits; the class is 1 when an odd number of them is.
pub(crate) fn parity(seed: u64, samples: usize, length: usize) -> Result<Samples, DataError> {
    let settings = Settings("parity");
    settings.samples(samples, 2)?;
    let mut samples = sequences(settings, seed, [samples, length], 2, |sequence| {
        sequence.iter().filter(|&&bit| bit == 1.0).count() as u32 % 2
    })?;
    if let crate::samples::Labels::Classes { names, .. } = &mut samples.labels {
        *names = vec!["even".into(), "odd".into()];
    }
    Ok(samples)
}

fn sequences(
    settings: Settings,
    seed: u64,
    [samples, length]: [usize; 2],
    symbols: usize,
    class: impl Fn(&[f32]) -> u32,
) -> Result<Samples, DataError> {
    settings.need(length >= 1, "length", length, "at least 1 is needed")?;
    let mut features = room(&settings.origin(), samples, length)?;
    let mut ids = room(&settings.origin(), samples, 1)?;
    for i in 0..samples {
        let draw = key(seed, site::FEATURES).sample(i as u64);
        features.extend((0..length as u64).map(|step| draw.below(step, symbols as u64) as f32));
        ids.push(class(&features[i * length..]));
    }
    let names = numbered(symbols);
    Ok(Samples {
        measure: Measure::Symbols,
        ..classified(settings, vec![length], features, ids, names)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Labels;

    fn ids(samples: &Samples) -> &[u32] {
        match &samples.labels {
            Labels::Classes { ids, .. } => ids,
            Labels::Numbers { .. } => panic!("classes expected"),
        }
    }

    #[test]
    fn the_class_of_a_copy_is_its_first_symbol() {
        let samples = copy(1, 100, 7, 5).unwrap();
        for (sequence, &id) in samples.features.chunks(7).zip(ids(&samples)) {
            assert_eq!(sequence[0], id as f32);
            assert!(sequence.iter().all(|&x| x < 5.0 && x.fract() == 0.0));
        }
    }

    #[test]
    fn the_class_of_bits_is_their_parity() {
        let samples = parity(1, 100, 7).unwrap();
        for (bits, &id) in samples.features.chunks(7).zip(ids(&samples)) {
            assert_eq!(bits.iter().sum::<f32>() as u32 % 2, id);
        }
    }

    #[test]
    fn a_sequence_of_no_steps_is_refused() {
        assert!(parity(1, 100, 0).is_err());
        assert!(copy(1, 100, 3, 1).is_err());
    }
}
