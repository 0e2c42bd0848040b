//! Every parser returns for every seed and for keyed mutations of it.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use surefoot_fuzz::{TARGETS, Target, mutated, run_seeds, target};
use surefoot_random::{Key, Purpose};

/// The seeds of a target with their names.
fn seeds(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut seeds: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "no seeds in {folder:?}");
    seeds
}

/// Runs a target over seeds and their mutations, and lists those that panic.
fn survives(target: &Target, seeds: &[(String, Vec<u8>)]) {
    let mut panics = Vec::new();
    for (seed, (name, bytes)) in (0..).zip(seeds) {
        for round in 0..=target.rounds {
            let key = Key::new(1, Purpose::Noise).sample(seed).epoch(round);
            let input = if round == 0 { bytes.clone() } else { mutated(bytes, key) };
            if catch_unwind(|| (target.read)(&input)).is_err() {
                panics.push(format!("{name}, round {round}"));
            }
        }
    }
    assert!(panics.is_empty(), "{} panics on {panics:?}", target.name);
}

/// A test for each target, so that they run side by side.
macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                let target = target(stringify!($name));
                survives(target, &seeds(target));
            }
        )*

        #[test]
        fn every_target_has_a_test() {
            let tested = [$(stringify!($name)),*];
            assert!(TARGETS.iter().map(|target| target.name).eq(tested));
        }
    };
}

targets! { plan study csv npz parquet keras tensorboard logs python run }

#[test]
fn runs_of_today() {
    let seeds = run_seeds().into_iter().enumerate();
    let seeds: Vec<_> = seeds.map(|(number, bytes)| (number.to_string(), bytes)).collect();
    assert!(seeds.len() > 20, "{}", seeds.len());
    survives(target("run"), &seeds);
}

#[test]
fn mutations_change_the_seed_and_repeat_with_their_key() {
    let seed = b"epoch,loss\n0,0.7\n1,0.5\n";
    let keys = (0..50).map(|round| Key::new(3, Purpose::Noise).epoch(round));
    let all: Vec<Vec<u8>> = keys.clone().map(|key| mutated(seed, key)).collect();
    assert_eq!(all, keys.map(|key| mutated(seed, key)).collect::<Vec<_>>());
    assert!(all.iter().filter(|bytes| bytes[..] != seed[..]).count() > 40);
    assert!(mutated(b"", Key::new(3, Purpose::Noise)).len() < 100);
}
