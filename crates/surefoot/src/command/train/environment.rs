//! What a run is executed on.

use std::collections::{BTreeMap, BTreeSet};
use surefoot_record::{Digest, Environment};
use surefoot_train::{Device, LIBRARIES};

/// This process, with some workers on a device.
pub(crate) fn of(data: Digest, workers: usize, device: Device) -> Environment {
    Environment {
        workers,
        device: device.to_string(),
        data: Some(data),
        libraries: LIBRARIES
            .iter()
            .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
            .collect(),
        ..Environment::detect()
    }
}

/// What may make a run go on to other bits than it would have, a sentence each. The number of
/// workers and threads does not.
pub(crate) fn differences(then: &Environment, now: &Environment) -> Vec<String> {
    let parting = parting(then, now).into_iter();
    let sentences = parting.map(|(what, then, now)| {
        format!("{what} was {then} when the run was started and is {now}")
    });
    sentences.collect()
}

/// What differs between two environments and may make for other bits: a name, and what it is in
/// each.
pub(crate) fn parting(one: &Environment, other: &Environment) -> Vec<(String, String, String)> {
    let facts = |environment: &Environment| {
        let mut facts: BTreeMap<String, String> = environment.libraries.clone();
        let more = [
            ("surefoot", environment.surefoot.clone()),
            ("the platform", environment.platform.clone()),
            ("the device", environment.device.clone()),
            ("the processor's kind", list(&environment.cpu_features)),
        ];
        facts.extend(more.map(|(name, fact)| (name.to_owned(), fact)));
        facts
    };
    let (one, other) = (facts(one), facts(other));
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let fact = |facts: &BTreeMap<String, String>, name: &String| {
        let fact = facts.get(name).cloned();
        fact.unwrap_or_else(|| "unknown".to_owned())
    };
    names
        .into_iter()
        .map(|name| (name.clone(), fact(&one, name), fact(&other, name)))
        .filter(|(_, one, other)| one != other)
        .collect()
}

fn list(features: &[String]) -> String {
    match features {
        [] => "no vector instructions".to_owned(),
        _ => features.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_change_the_result_is_no_difference() {
        let then = Environment::detect();
        let now = Environment { workers: 7, threads: 64, ..then.clone() };
        assert!(differences(&then, &now).is_empty());
    }

    #[test]
    fn a_difference_names_both_sides() {
        let then = Environment {
            cpu_features: vec!["avx2".to_owned()],
            libraries: [("burn".to_owned(), "0.22.1".to_owned())].into(),
            ..Environment::detect()
        };
        let now = Environment {
            device: "cuda:0".to_owned(),
            cpu_features: Vec::new(),
            libraries: [("burn".to_owned(), "0.23.0".to_owned())].into(),
            ..then.clone()
        };
        assert_eq!(
            differences(&then, &now),
            [
                "burn was 0.22.1 when the run was started and is 0.23.0",
                "the device was cpu when the run was started and is cuda:0",
                "the processor's kind was avx2 when the run was started and is no vector instructions",
            ]
        );
    }
}
