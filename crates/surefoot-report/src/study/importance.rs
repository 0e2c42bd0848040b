//! Importance of parameters.

use maud::{Markup, html};
use surefoot_tune::importance::{self, final_costs};
use surefoot_tune::{Parameter, Point};

use super::StudyPage;
use super::axis::Axis;
use super::selection::evenly;
use super::status::Status;
use crate::format::counted;
use crate::svg::percent;

/// Minimum number of trials with a value.
const FEWEST: usize = 20;

/// Maximum number of trials for the forest.
const MOST: usize = 1000;

/// Minimum fraction of explained variance.
const LEAST: f64 = 0.1;

/// Maximum number of bars.
const BARS: usize = 24;

/// Importance of the parameters of a study.
#[derive(Debug)]
pub(super) struct Importance<'a> {
    /// All parameters, in the order of the space.
    parameters: &'a [Parameter],
    evidence: Evidence,
}

#[derive(Debug)]
enum Evidence {
    /// Too few trials with a value.
    Few(usize),
    /// All trials have the same value.
    Same(usize),
    /// The forest explains too little of the given number of trials.
    Nothing(usize),
    Found {
        trials: usize,
        explained: f64,
        /// Importance of each parameter.
        shares: Vec<f64>,
    },
}

impl<'a> Importance<'a> {
    pub(super) fn of(page: &StudyPage<'a>) -> Importance<'a> {
        let parameters = page.space.parameters();
        let trials = page.trials.iter().map(|trial| (trial.trial, trial.reports));
        let costs = final_costs(page.direction, trials);
        let known = page.trials.iter().zip(costs);
        let known = known.filter_map(|(trial, cost)| Some((trial.trial.point.as_ref()?, cost?)));
        let known: Vec<(&Point, f64)> = known.collect();
        Importance { parameters, evidence: evidence(parameters, &known) }
    }

    /// The most important parameters, in the order of the space.
    pub(super) fn most(&self, count: usize) -> Vec<&'a Parameter> {
        let mut order: Vec<usize> = (0..self.parameters.len()).collect();
        if let Evidence::Found { shares, .. } = &self.evidence {
            order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
        }
        order.truncate(count);
        order.sort_unstable();
        order.into_iter().map(|i| &self.parameters[i]).collect()
    }

    pub(super) fn section(&self, page: &StudyPage<'_>) -> Markup {
        if self.parameters.is_empty() {
            return html! {};
        }
        html! {
            section #importance {
                h2 { "Parameter importance" }
                @match &self.evidence {
                    Evidence::Few(trials) => p.quiet {
                        "Importances cannot be estimated from " (counted(*trials as u64, "trial"))
                        "; at least " (FEWEST) " are needed."
                    },
                    Evidence::Same(trials) => p.quiet {
                        "All " (trials) " trials have the same value, so no parameter had an effect."
                    },
                    Evidence::Nothing(trials) => p.quiet {
                        "The parameters of " (trials) " trials do not explain their values, so no importances "
                        "are shown."
                    },
                    Evidence::Found { trials, explained, shares } => {
                        p.quiet {
                            "Fraction of the differences in " (page.objective_name()) " that each parameter explains on its own: "
                            "its share of the variance of a random forest over the whole space (functional ANOVA), fitted to the ranks of "
                            (counted(*trials as u64, "trial")) ". The forest explains " (format!("{:.0}%", explained * 100.0))
                            " of the variance of unseen trials."
                        }
                        (self.bars(shares))
                        p.note {
                            "Interactions between parameters are not included."
                            @match (page.has(Status::Pruned), page.has(Status::Paused)) {
                                (true, true) => " Pruned and paused trials count with their imputed final values.",
                                (true, false) => " Pruned trials count with their imputed final values.",
                                (false, true) => " Paused trials count with their imputed final values.",
                                (false, false) => {},
                            }
                        }
                    }
                }
            }
        }
    }

    fn bars(&self, shares: &[f64]) -> Markup {
        let mut bars: Vec<(&Parameter, f64)> =
            self.parameters.iter().zip(shares.iter().copied()).collect();
        bars.sort_by(|a, b| b.1.total_cmp(&a.1));
        html! {
            dl.bars {
                @for (parameter, share) in bars.into_iter().take(BARS) {
                    div {
                        dt { (Axis::of(parameter).name()) }
                        dd {
                            svg height="10" aria-hidden="true" {
                                rect.ground width="100%" height="100%" rx="2" {}
                                rect.bar width=(percent(share.clamp(0.0, 1.0))) height="100%" rx="2" {}
                            }
                            span { (shown(share)) }
                        }
                    }
                }
            }
        }
    }
}

fn shown(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.5 => "<1%".to_owned(),
        percent => format!("{percent:.0}%"),
    }
}

fn evidence(parameters: &[Parameter], known: &[(&Point, f64)]) -> Evidence {
    let trials = known.len();
    if trials < FEWEST {
        return Evidence::Few(trials);
    }
    if known.iter().all(|(_, cost)| *cost == known[0].1) {
        return Evidence::Same(trials);
    }
    let used: Vec<(&Point, f64)> = evenly(known, trials.min(MOST)).collect();
    let values: Vec<f64> = used.iter().map(|(_, value)| *value).collect();
    let columns: Vec<Vec<f64>> = parameters.iter().map(|p| column(p, &used)).collect();
    let row = |i: usize| columns.iter().map(|column| column[i]).collect();
    let rows: Vec<Vec<f64>> = (0..used.len()).map(row).collect();
    let found = importance::Importance::new(&rows, &ranks(&values));
    if found.explained < LEAST {
        return Evidence::Nothing(used.len());
    }
    Evidence::Found { trials: used.len(), explained: found.explained, shares: found.shares }
}

/// Positions of a parameter. Trials without it share the start, in proportion to their number.
fn column(parameter: &Parameter, trials: &[(&Point, f64)]) -> Vec<f64> {
    let value = |point: &Point| point.get(&parameter.name).cloned();
    let without = trials.iter().filter(|(p, _)| value(p).is_none()).count();
    let absent = without as f64 / trials.len().max(1) as f64;
    let place = |(point, _): &(&Point, f64)| match value(point) {
        Some(value) => absent + (1.0 - absent) * parameter.domain.place(&value),
        None => absent / 2.0,
    };
    trials.iter().map(place).collect()
}

/// Ranks from 0 to 1; equal values have equal ranks. Ranks make exploded losses comparable.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other < value);
        let until = sorted.partition_point(|other| other <= value);
        (below + until) as f64 / 2.0 / sorted.len() as f64
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::fixture::{Made, complete};
    use surefoot_tune::storage::TrialState;

    fn drawn(made: &Made) -> String {
        let page = made.page();
        Importance::of(&page).section(&page).into_string()
    }

    #[test]
    fn the_deciding_parameter_is_the_most_important() {
        let made = Made::study(400);
        let page = made.page();
        let importance = Importance::of(&page);
        let Evidence::Found { shares, explained, .. } = &importance.evidence else {
            panic!("{:?}", importance.evidence);
        };
        assert!(*explained > 0.3, "{explained}");
        // The fixture depends mostly on its first parameter.
        assert!(shares[1..].iter().all(|share| *share < shares[0]), "{shares:?}");
        assert_eq!(importance.most(1)[0].name, "rate");
    }

    #[test]
    fn pruned_trials_count() {
        let mut made = Made::study(400);
        let mut complete = 0;
        made.trials.retain(|(trial, _)| {
            complete += usize::from(Status::of(trial) == Status::Complete);
            Status::of(trial) == Status::Pruned || complete <= 10
        });
        let page = made.page();
        let importance = Importance::of(&page);
        assert!(matches!(importance.evidence, Evidence::Found { .. }), "{:?}", importance.evidence);
        assert_eq!(importance.most(1)[0].name, "rate");
    }

    #[test]
    fn paused_trials_count() {
        let mut made = Made::study(100);
        for (trial, reports) in &mut made.trials {
            trial.state = TrialState::Paused;
            reports.truncate(8);
        }
        let page = made.page();
        let importance = Importance::of(&page);
        assert!(matches!(importance.evidence, Evidence::Found { .. }), "{:?}", importance.evidence);
        assert_eq!(importance.most(1)[0].name, "rate");
        assert!(drawn(&made).contains(" Paused trials count with their imputed final values."));
    }

    #[test]
    fn few_or_equal_trials_have_no_importance() {
        let few = Made::of(vec![complete(0.5); 3]);
        assert!(drawn(&few).contains("cannot be estimated from 3 trials; at least 20"));
        let same = Made::of(vec![complete(0.5); 30]);
        assert!(drawn(&same).contains("All 30 trials have the same value"));
    }

    #[test]
    fn equal_values_have_equal_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 1e300]), [0.5, 0.125, 0.5, 0.875]);
    }
}
