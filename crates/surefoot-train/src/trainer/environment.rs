//! The environment of a run, and differences between two.

use crate::device::Device;
use crate::{GPU_LIBRARIES, LIBRARIES};
use std::collections::{BTreeMap, BTreeSet};
use surefoot_record::{Digest, Environment};

/// Name of the CPU features among the facts of an environment.
const CPU: &str = "the CPU feature set";

/// The environment of this process with `workers` threads on `device`.
pub fn current_environment(data: Digest, workers: usize, device: Device) -> Environment {
    let gpu: &[_] = if device == Device::Cpu { &[] } else { &GPU_LIBRARIES };
    let libraries = LIBRARIES.iter().chain(gpu);
    Environment {
        workers,
        device: device.to_string(),
        data: Some(data),
        libraries: libraries
            .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
            .collect(),
        ..Environment::detect()
    }
}

/// The CPU features that a portable run records: no other changes its bits.
pub(super) fn portable_features() -> Vec<String> {
    ["avx2", "fma"].map(str::to_owned).to_vec()
}

/// Differences that may change the bits of a result, a sentence each. The number of workers and
/// threads has no influence.
pub fn environment_warnings(then: &Environment, now: &Environment) -> Vec<String> {
    let differences = environment_differences(then, now).into_iter();
    let sentences = differences.map(|(what, then, now)| {
        format!("{what} was {then} when the run was started and is {now}")
    });
    sentences.collect()
}

/// Differences that may change the bits of a result: a name and both values.
pub fn environment_differences(
    one: &Environment,
    other: &Environment,
) -> Vec<(String, String, String)> {
    let facts = |environment: &Environment| {
        let mut facts: BTreeMap<String, String> = environment.libraries.clone();
        let more = [
            ("surefoot", environment.surefoot.clone()),
            ("the platform", environment.platform.clone()),
            ("the device", environment.device.clone()),
            (CPU, list(&environment.cpu_features)),
        ];
        facts.extend(more.map(|(name, fact)| (name.to_owned(), fact)));
        facts
    };
    let portable = portable_features();
    let is_portable = [(one, other), (other, one)].iter().any(|(run, machine)| {
        run.cpu_features == portable
            && portable.iter().all(|feature| machine.cpu_features.contains(feature))
    });
    let (mut one, mut other) = (facts(one), facts(other));
    if is_portable {
        one.remove(CPU);
        other.remove(CPU);
    }
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
    fn workers_and_threads_are_not_a_difference() {
        let then = Environment::detect();
        let now = Environment { workers: 7, threads: 64, ..then.clone() };
        assert!(environment_warnings(&then, &now).is_empty());
    }

    #[test]
    fn a_portable_run_is_the_same_on_all_cpus_with_its_features() {
        let run = Environment { cpu_features: portable_features(), ..Environment::detect() };
        let features = |names: &[&str]| Environment {
            cpu_features: names.iter().map(|&name| name.to_owned()).collect(),
            ..run.clone()
        };
        let wide = features(&["sse4.2", "avx", "avx2", "fma", "avx512f"]);
        assert!(environment_warnings(&run, &wide).is_empty());
        assert_eq!(environment_warnings(&run, &features(&["sse4.2", "avx"])).len(), 1);
        let narrow = features(&["sse4.2", "avx", "avx2", "fma"]);
        assert_eq!(environment_warnings(&narrow, &wide).len(), 1);
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
            environment_warnings(&then, &now),
            [
                "burn was 0.22.1 when the run was started and is 0.23.0",
                "the CPU feature set was avx2 when the run was started and is no vector instructions",
                "the device was cpu when the run was started and is cuda:0",
            ]
        );
    }
}
