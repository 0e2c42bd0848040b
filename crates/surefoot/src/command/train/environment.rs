//! What a run is executed on.

use std::collections::BTreeSet;
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
    let facts = [
        ("surefoot", &then.surefoot, &now.surefoot),
        ("the platform", &then.platform, &now.platform),
        ("the device", &then.device, &now.device),
    ];
    let mut differences: Vec<String> = facts
        .iter()
        .filter(|(_, then, now)| then != now)
        .map(|(what, then, now)| format!("{what} was {then} when the run was started and is {now}"))
        .collect();
    if then.cpu_features != now.cpu_features {
        differences.push(format!(
            "the processor had {} when the run was started and has {}",
            list(&then.cpu_features),
            list(&now.cpu_features)
        ));
    }
    let libraries = then.libraries.keys().chain(now.libraries.keys());
    for name in libraries.collect::<BTreeSet<_>>() {
        let version = |environment: &Environment| match environment.libraries.get(name) {
            Some(version) => version.clone(),
            None => "not there".to_owned(),
        };
        let (then, now) = (version(then), version(now));
        if then != now {
            differences.push(format!(
                "{name} was {then} when the run was started and is {now}"
            ));
        }
    }
    differences
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
        let now = Environment {
            workers: 7,
            threads: 64,
            ..then.clone()
        };
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
                "the device was cpu when the run was started and is cuda:0",
                "the processor had avx2 when the run was started and has no vector instructions",
                "burn was 0.22.1 when the run was started and is 0.23.0",
            ]
        );
    }
}
