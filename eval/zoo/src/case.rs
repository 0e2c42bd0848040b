//! The cases of the zoo.

use crate::dice::Dice;
use crate::fault::{Degree, Fault, Spoiled};
use crate::habitat::{self, Habitat};
use surefoot_plan::Plan;

/// A plan of the zoo.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its number in the zoo.
    pub number: u64,
    /// What it is about.
    pub habitat: Habitat,
    /// The plan without a fault.
    pub twin: Plan,
    /// What was done to it.
    pub injected: Option<Injected>,
}

/// What was done to a plan.
#[derive(Clone, Debug)]
pub struct Injected {
    /// In which way.
    pub fault: Fault,
    /// How much.
    pub degree: Degree,
    /// The plan with the fault.
    pub plan: Plan,
    /// What is done to its data.
    pub spoiled: Option<Spoiled>,
}

/// How many cases in ten have a fault.
const FAULTY_IN_TEN: u64 = 6;

/// The first `count` cases of the zoo of `seed`.
pub fn cases(seed: u64, count: u64) -> Vec<Case> {
    (0..count).map(|number| case(seed, number)).collect()
}

fn case(seed: u64, number: u64) -> Case {
    let dice = Dice::new(seed, number);
    let habitat = Habitat::ALL[(number % Habitat::ALL.len() as u64) as usize];
    let mut twin = habitat::plan(habitat, &dice);
    twin.name = Some(format!("zoo-{number:03}"));
    let is_faulty = number % 10 < FAULTY_IN_TEN;
    if is_faulty {
        Fault::ALL[turn(number) % Fault::ALL.len()].suit(&mut twin);
    }
    let injected = is_faulty.then(|| inject(&twin, habitat, number, &dice));
    Case { number, habitat, twin, injected: injected.flatten() }
}

/// How many faulty cases come before that of `number`.
fn turn(number: u64) -> usize {
    (number / 10 * FAULTY_IN_TEN + number % 10) as usize
}

/// The next fault in turn that can be done to the plan.
pub(crate) fn inject(twin: &Plan, habitat: Habitat, number: u64, dice: &Dice) -> Option<Injected> {
    let degree = dice.pick(&[Degree::Mild, Degree::Severe]);
    (0..Fault::ALL.len()).find_map(|skipped| {
        let fault = Fault::ALL[(turn(number) + skipped) % Fault::ALL.len()];
        let mut plan = twin.clone();
        let spoiled = fault.inject(&mut plan, habitat, degree, dice)?;
        Some(Injected { fault, degree, plan, spoiled })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_zoo_and_every_plan_is_sound() {
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
    fn about_six_in_ten_have_a_fault_and_every_fault_occurs() {
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
