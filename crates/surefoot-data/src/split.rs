//! Which sample is in which part: a keyed shuffle cut at both ends.

use surefoot_plan::SplitFractions;
use surefoot_random::{Key, Permutation, Purpose};

use crate::error::DataError;

/// The samples of each part, ascending.
#[derive(Debug, PartialEq)]
pub(crate) struct Division {
    pub(crate) train: Vec<u64>,
    pub(crate) validation: Vec<u64>,
    pub(crate) test: Vec<u64>,
}

/// Divides `samples` samples.
///
/// They are shuffled by key; validation is cut off at the front and test at the back. So a sample's
/// part depends on the seed, the number of samples and the shares alone, and another share of the
/// one leaves the other as it was.
pub(crate) fn divide(
    split: SplitFractions,
    samples: usize,
    seed: u64,
) -> Result<Division, DataError> {
    let validation = count("validation", split.validation, samples)?;
    let test = count("test", split.test, samples)?;
    let share = 1.0 - split.validation - split.test;
    if share <= 0.0 {
        return Err(DataError::new(format!(
            "split.validation = {}: with split.test it must leave something to train on",
            split.validation
        )));
    }
    let Some(last) = samples.checked_sub(test).filter(|&last| last > validation) else {
        return Err(DataError::empty_part("training", share, samples));
    };
    let order = Permutation::new(Key::new(seed, Purpose::Split), samples as u64);
    let part = |from: usize, to: usize| {
        let mut ids: Vec<u64> = (from as u64..to as u64).map(|at| order.get(at)).collect();
        ids.sort_unstable();
        ids
    };
    Ok(Division {
        validation: part(0, validation),
        train: part(validation, last),
        test: part(last, samples),
    })
}

/// Rounds a share to a number of samples; 0 only if the share is 0.
fn count(part: &'static str, share: f64, samples: usize) -> Result<usize, DataError> {
    if !(0.0..1.0).contains(&share) {
        return Err(DataError::new(format!(
            "split.{part} = {share}: it must be a share of the samples, at least 0 and below 1"
        )));
    }
    let count = (share * samples as f64).round() as usize;
    if count == 0 && share > 0.0 {
        return Err(DataError::empty_part(part, share, samples));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(validation: f64, test: f64) -> SplitFractions {
        SplitFractions { validation, test }
    }

    proptest! {
        #[test]
        fn a_division_is_a_partition_with_exact_counts(
            seed: u64,
            samples in 1_usize..2000,
            validation in 0.0..0.6,
            test in 0.0..0.6,
        ) {
            let Ok(parts) = divide(split(validation, test), samples, seed) else {
                return Ok(());
            };
            let exact = |share: f64| (share * samples as f64).round() as usize;
            prop_assert_eq!(parts.validation.len(), exact(validation));
            prop_assert_eq!(parts.test.len(), exact(test));
            prop_assert!(!parts.train.is_empty());
            let mut all = [parts.train, parts.validation, parts.test].concat();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..samples as u64));
        }

        #[test]
        fn a_share_of_test_leaves_validation_alone(seed: u64, samples in 20_usize..500) {
            let without = divide(split(0.2, 0.0), samples, seed).unwrap();
            let with = divide(split(0.2, 0.3), samples, seed).unwrap();
            prop_assert_eq!(&without.validation, &with.validation);
            prop_assert!(with.test.iter().all(|id| without.train.contains(id)));
        }
    }

    #[test]
    fn the_same_sample_is_always_in_the_same_part() {
        let parts = divide(split(0.25, 0.25), 8, 42).unwrap();
        assert_eq!(parts, divide(split(0.25, 0.25), 8, 42).unwrap());
        assert_eq!(parts.validation, [0, 3]);
        assert_eq!(parts.test, [4, 6]);
    }

    #[test]
    fn a_share_of_nothing_is_an_error() {
        let error = divide(split(0.1, 0.0), 4, 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the validation part would be empty: 0.1 of 4 samples is none; give it a larger share, \
             or more samples"
        );
    }

    #[test]
    fn something_must_be_left_to_train_on() {
        assert!(divide(split(0.5, 0.5), 10, 1).is_err());
        assert!(divide(split(0.6, 0.3), 2, 1).is_err());
        assert!(divide(split(0.7, 0.0), 1, 1).is_err());
    }

    #[test]
    fn shares_must_be_shares() {
        for share in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
            assert!(divide(split(share, 0.0), 10, 1).is_err(), "{share}");
            assert!(divide(split(0.0, share), 10, 1).is_err(), "{share}");
        }
    }
}
