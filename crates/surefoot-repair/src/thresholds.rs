//! The thresholds of a plan.

use surefoot_diagnose::{Problem, Thresholds, detectors};
use surefoot_plan::Plan;

/// The thresholds that `plan` states, and the defaults for the others.
///
/// Fails with the names that there are if one to switch off is not among them.
pub fn thresholds(plan: &Plan) -> Result<Thresholds, String> {
    let mut thresholds = Thresholds::default();
    for (name, value) in plan.diagnose.stated() {
        thresholds.set(name, &value.to_string())?;
    }
    let known: Vec<Problem> = detectors::all().iter().map(|d| d.problem()).collect();
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

    #[test]
    fn a_plan_states_some_and_the_others_stay() {
        let mut plan = plan();
        plan.diagnose.gamma = Some(0.9);
        plan.diagnose.off = vec!["loss_spike".to_owned()];
        let thresholds = thresholds(&plan).unwrap();
        assert_eq!(thresholds.gamma, 0.9);
        assert_eq!(thresholds.omega, Thresholds::default().omega);
        assert_eq!(thresholds.off, [Problem::LOSS_SPIKE]);
    }

    #[test]
    fn a_problem_that_is_none_is_refused_with_those_there_are() {
        let mut plan = plan();
        plan.diagnose.off = vec!["dying_rely".to_owned()];
        let error = thresholds(&plan).unwrap_err();
        assert!(error.contains("dying_relu"), "{error}");
    }
}
