//! What a run is executed on.

use super::Arguments;
use super::job::Job;
use surefoot_record::{Digest, Environment};
use surefoot_train::LIBRARIES;

/// This process, with the device, the workers and the data of a job.
pub(super) fn of(job: &Job, arguments: &Arguments) -> Environment {
    Environment {
        workers: arguments.workers(),
        device: arguments.device.to_string(),
        data: Some(Digest(job.data.digest)),
        libraries: LIBRARIES
            .iter()
            .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
            .collect(),
        ..Environment::detect()
    }
}

/// What may make a run go on to other bits than it would have, a sentence each. The number of
/// workers and threads does not.
pub(super) fn differences(then: &Environment, now: &Environment) -> Vec<String> {
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
    if then.libraries != now.libraries {
        differences.push("the libraries that compute have other versions".to_owned());
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
            ..Environment::detect()
        };
        let now = Environment {
            device: "cuda:0".to_owned(),
            cpu_features: Vec::new(),
            ..then.clone()
        };
        assert_eq!(
            differences(&then, &now),
            [
                "the device was cpu when the run was started and is cuda:0",
                "the processor had avx2 when the run was started and has no vector instructions",
            ]
        );
    }
}
