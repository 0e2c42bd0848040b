//! The cases of the zoo.

use crate::dataset::{self, DatasetKind};
use crate::fault::{Corruption, Degree, Fault};
use crate::rng::Rng;
use surefoot_plan::Plan;

/// A plan of the zoo.
#[derive(Clone, Debug)]
pub struct Case {
    /// Case number.
    pub number: u64,
    /// Its data.
    pub dataset: DatasetKind,
    /// The plan without a fault.
    pub twin: Plan,
    /// The injected fault.
    pub injected: Option<Injected>,
}

/// A fault injected into a plan.
#[derive(Clone, Debug)]
pub struct Injected {
    /// Kind of the fault.
    pub fault: Fault,
    /// Degree of the fault.
    pub degree: Degree,
    /// The plan with the fault.
    pub plan: Plan,
    /// Corruption of its data.
    pub corruption: Option<Corruption>,
}

/// Cases in ten that have a fault.
const FAULTY_IN_TEN: u64 = 6;

/// The first `count` cases of the zoo of `seed`.
pub fn cases(seed: u64, count: u64) -> Vec<Case> {
    (0..count).map(|number| case(seed, number)).collect()
}

fn case(seed: u64, number: u64) -> Case {
    let rng = Rng::new(seed, number);
    let dataset = DatasetKind::ALL[(number % DatasetKind::ALL.len() as u64) as usize];
    let mut twin = dataset::plan(dataset, &rng);
    twin.name = Some(format!("zoo-{number:03}"));
    let is_faulty = number % 10 < FAULTY_IN_TEN;
    if is_faulty {
        Fault::ALL[turn(number) % Fault::ALL.len()].suit(&mut twin);
    }
    let injected = is_faulty.then(|| inject(&twin, dataset, number, &rng));
    Case { number, dataset, twin, injected: injected.flatten() }
}

/// Number of faulty cases before case `number`.
fn turn(number: u64) -> usize {
    (number / 10 * FAULTY_IN_TEN + number % 10) as usize
}

/// Injects the next fault in turn that applies to the plan.
pub(crate) fn inject(
    twin: &Plan,
    dataset: DatasetKind,
    number: u64,
    rng: &Rng,
) -> Option<Injected> {
    let degree = rng.pick(&[Degree::Mild, Degree::Severe]);
    (0..Fault::ALL.len()).find_map(|skipped| {
        let fault = Fault::ALL[(turn(number) + skipped) % Fault::ALL.len()];
        let mut plan = twin.clone();
        let corruption = fault.inject(&mut plan, dataset, degree, rng)?;
        Some(Injected { fault, degree, plan, corruption })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_generates_the_same_valid_plans() {
        let (a, b) = (cases(1, 120), cases(1, 120));
        for (a, b) in a.iter().zip(&b) {
            assert_eq!(a.twin, b.twin);
            let plans = [Some(&a.twin), a.injected.as_ref().map(|i| &i.plan)];
            for plan in plans.into_iter().flatten() {
                plan.validate().unwrap();
            }
        }
    }

    #[test]
    fn six_in_ten_cases_have_a_fault_and_every_fault_occurs() {
        let cases = cases(2, 400);
        let faults: Vec<Fault> = cases
            .iter()
            .filter_map(|case| case.injected.as_ref().map(|injected| injected.fault))
            .collect();
        assert!((220..=250).contains(&faults.len()), "{}", faults.len());
        for fault in Fault::ALL {
            let count = faults.iter().filter(|&&other| other == fault).count();
            assert!(count >= 8, "{count} of {fault:?}");
        }
    }
}
