//! The thresholds of a plan.

use surefoot_diagnose::{Detector, Problem, Thresholds};
use surefoot_plan::Plan;

/// The thresholds that `plan` states, and the defaults for the others.
///
/// A problem in `diagnose.off` must belong to one of `detectors`; fails with the names that
/// there are if it is not.
pub fn thresholds(plan: &Plan, detectors: &[Box<dyn Detector>]) -> Result<Thresholds, String> {
    let mut thresholds = Thresholds::default();
    for (name, value) in plan.diagnose.stated() {
        thresholds.set(name, &value.to_string())?;
    }
    let known: Vec<Problem> = detectors.iter().map(|d| d.problem()).collect();
    for id in &plan.diagnose.off {
        let Some(problem) = known.iter().find(|problem| problem.id() == id) else {
            let ids: Vec<&str> = known.iter().map(Problem::id).collect();
            return Err(format!(
                "`diagnose.off` names `{id}`, which is no problem; there are {}",
                ids.join(", ")
            ));
        };
        thresholds.off.push(problem.clone());
    }
    Ok(thresholds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remedies::fixture::plan;
    use surefoot_diagnose::{Quantity, detectors};

    struct FromElsewhere;

    impl Detector for FromElsewhere {
        fn problem(&self) -> Problem {
            Problem::new("from_elsewhere")
        }

        fn needs(&self) -> &'static [Quantity] {
            &[]
        }
    }

    #[test]
    fn a_plan_states_some_and_the_others_stay() {
        let mut plan = plan();
        plan.diagnose.gamma = Some(0.9);
        plan.diagnose.off = vec!["loss_spike".to_owned()];
        let thresholds = thresholds(&plan, &detectors::all()).unwrap();
        assert_eq!(thresholds.gamma, 0.9);
        assert_eq!(thresholds.omega, Thresholds::default().omega);
        assert_eq!(thresholds.off, [Problem::LOSS_SPIKE]);
    }

    #[test]
    fn a_problem_that_is_none_is_refused_with_those_there_are() {
        let mut plan = plan();
        plan.diagnose.off = vec!["dying_rely".to_owned()];
        let error = thresholds(&plan, &detectors::all()).unwrap_err();
        assert!(error.contains("dying_relu"), "{error}");
    }

    #[test]
    fn a_problem_from_elsewhere_is_switched_off_where_it_is_looked_for() {
        let mut plan = plan();
        plan.diagnose.off = vec!["from_elsewhere".to_owned()];
        assert!(thresholds(&plan, &detectors::all()).is_err());
        let thresholds = thresholds(&plan, &[Box::new(FromElsewhere)]).unwrap();
        assert_eq!(thresholds.off, [Problem::new("from_elsewhere")]);
    }
}
