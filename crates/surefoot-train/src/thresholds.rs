//! The rules and thresholds of a plan.

use surefoot_diagnose::{Detector, Problem, Rules, Thresholds};
use surefoot_plan::Plan;
use surefoot_repair::{Remedy, remedies};

/// Returns the rules of diagnosis in `plan`.
pub fn rules(plan: &Plan) -> Rules {
    match plan.rules {
        surefoot_plan::Rules::Surefoot => Rules::Surefoot,
        surefoot_plan::Rules::AutoTrainer => Rules::AutoTrainer,
    }
}

/// A new set of the remedies of `plan`.
pub(crate) fn remedies_of(plan: &Plan) -> Vec<Box<dyn Remedy>> {
    match rules(plan) {
        Rules::Surefoot => remedies::all(),
        Rules::AutoTrainer => remedies::autotrainer(),
    }
}

/// Returns the thresholds of `plan`, with the defaults where it states none. With AutoTrainer's rules,
/// Θ is then the metric at which training ends, if the plan has one (section 5.4).
///
/// Fails if `diagnose.off` names a problem that none of `detectors` finds.
pub fn thresholds(plan: &Plan, detectors: &[Box<dyn Detector>]) -> Result<Thresholds, String> {
    let mut thresholds = rules(plan).thresholds();
    if let Some(goal) = plan.training.stop_at.filter(|_| thresholds.rules == Rules::AutoTrainer) {
        thresholds.theta = goal;
    }
    for (name, value) in plan.diagnose.stated() {
        thresholds.set(name, &value.to_string())?;
    }
    let known: Vec<Problem> = detectors.iter().map(|d| d.problem()).collect();
    for id in &plan.diagnose.off {
        let Some(problem) = known.iter().find(|problem| problem.id() == id) else {
            let ids: Vec<&str> = known.iter().map(Problem::id).collect();
            return Err(format!(
                "unknown problem `{id}` in `diagnose.off`; known problems: {}",
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
    use surefoot_diagnose::{Quantity, detectors};

    fn plan() -> Plan {
        let text = "[data]\nsource = \"circles\"\n[[model]]\nlayer = \"dense\"\nunits = 1\n\
                    [training]\nepochs = 1\n";
        Plan::parse(text, "fixture").unwrap()
    }

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
    fn stated_thresholds_replace_defaults() {
        let mut plan = plan();
        plan.diagnose.gamma = Some(0.9);
        plan.diagnose.off = vec!["loss_spike".to_owned()];
        let thresholds = thresholds(&plan, &detectors::all()).unwrap();
        assert_eq!(thresholds.gamma, 0.9);
        assert_eq!(thresholds.omega, Thresholds::default().omega);
        assert_eq!(thresholds.off, [Problem::LOSS_SPIKE]);
    }

    #[test]
    fn rules_determine_the_defaults() {
        let mut plan = plan();
        plan.rules = surefoot_plan::Rules::AutoTrainer;
        plan.diagnose.alpha = Some(2);
        let thresholds = thresholds(&plan, &detectors::autotrainer()).unwrap();
        assert_eq!(thresholds, Thresholds { alpha: 2, ..Thresholds::autotrainer() });
    }

    #[test]
    fn theta_of_autotrainer_is_the_metric_that_ends_the_training() {
        let mut plan = plan();
        plan.training.stop_at = Some(0.95);
        let theta = |plan: &Plan| thresholds(plan, &detectors::all()).unwrap().theta;
        assert_eq!(theta(&plan), 0.6);
        plan.rules = surefoot_plan::Rules::AutoTrainer;
        assert_eq!(theta(&plan), 0.95);
        plan.diagnose.theta = Some(0.7);
        assert_eq!(theta(&plan), 0.7);
    }

    #[test]
    fn an_unknown_problem_is_refused() {
        let mut plan = plan();
        plan.diagnose.off = vec!["dying_rely".to_owned()];
        let error = thresholds(&plan, &detectors::all()).unwrap_err();
        assert!(error.contains("dying_relu"), "{error}");
    }

    #[test]
    fn a_problem_of_another_crate_can_be_switched_off() {
        let mut plan = plan();
        plan.diagnose.off = vec!["from_elsewhere".to_owned()];
        assert!(thresholds(&plan, &detectors::all()).is_err());
        let thresholds = thresholds(&plan, &[Box::new(FromElsewhere)]).unwrap();
        assert_eq!(thresholds.off, [Problem::new("from_elsewhere")]);
    }
}
