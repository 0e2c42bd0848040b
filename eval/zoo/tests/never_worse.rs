//! A repair never delivers a model that is worse than that of the plan trained to its end.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use surefoot_zoo::{cases, treat, with_fault};

/// A seed for development, and the number of its first cases to look at.
const SEED: u64 = 31;
const CASES: u64 = 60;

#[test]
fn no_delivered_model_is_worse_than_that_of_the_plan_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut repaired = 0;
    for case in cases(SEED, CASES) {
        let Some(injected) = &case.injected else {
            continue;
        };
        let plan = with_fault(case.number, injected, 1, dir.path()).unwrap();
        let treated = treat(&plan, dir.path()).unwrap();
        assert!(
            treated.after >= treated.alone,
            "case {}: {} delivered, {} alone",
            case.number,
            treated.after,
            treated.alone
        );
        repaired += u64::from(treated.repaired);
    }
    assert!(repaired > 0, "the cases are of no use without a repair");
}
