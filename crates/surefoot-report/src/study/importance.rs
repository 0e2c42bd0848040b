//! How much of what complete trials reached each parameter explains.

use maud::{Markup, html};
use surefoot_tune::{Parameter, Point};

use super::StudyPage;
use super::axis::Axis;
use super::forest::Forest;
use super::outcome::Outcome;
use super::selection::evenly;
use crate::svg::percent;
use crate::words::counted;

/// With fewer complete trials there is nothing to be said.
const FEWEST: usize = 20;

/// A forest does not get better by more trials than this.
const MOST: usize = 1000;

/// Below this share of explained variance a forest tells next to nothing.
const LEAST: f64 = 0.1;

/// How many parameters have a bar.
const BARS: usize = 24;

/// What can be said of the importance of parameters.
#[derive(Debug)]
pub(super) struct Importance<'a> {
    /// All parameters, in the order of the space.
    parameters: &'a [Parameter],
    grounds: Grounds,
}

#[derive(Debug)]
enum Grounds {
    /// Too few complete trials.
    Few(usize),
    /// All that count reached the same.
    Same(usize),
    /// The forest explains so little of so many trials.
    Nothing(usize),
    Found {
        trials: usize,
        explained: f64,
        /// By parameter.
        shares: Vec<f64>,
    },
}

impl<'a> Importance<'a> {
    pub(super) fn of(page: &StudyPage<'a>) -> Importance<'a> {
        let parameters = page.space.parameters();
        let complete = page.trials.iter().filter_map(|trial| {
            let point = trial.trial.point.as_ref()?;
            let value = trial.reached()?;
            (trial.outcome() == Outcome::Complete).then_some((point, value))
        });
        let complete: Vec<(&Point, f64)> = complete.collect();
        Importance { parameters, grounds: grounds(parameters, &complete) }
    }

    /// The most important parameters, in the order of the space.
    pub(super) fn most(&self, count: usize) -> Vec<&'a Parameter> {
        let mut order: Vec<usize> = (0..self.parameters.len()).collect();
        if let Grounds::Found { shares, .. } = &self.grounds {
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
                h2 { "What mattered" }
                @match &self.grounds {
                    Grounds::Few(trials) => p.quiet {
                        "Which parameters matter cannot be told from " (counted(*trials as u64, "complete trial"))
                        "; it takes " (FEWEST) "."
                    },
                    Grounds::Same(trials) => p.quiet {
                        "All " (trials) " complete trials reached the same, so no parameter mattered."
                    },
                    Grounds::Nothing(trials) => p.quiet {
                        "What " (trials) " complete trials reached cannot be told from their parameters, so nothing can be said "
                        "about which of them matter."
                    },
                    Grounds::Found { trials, explained, shares } => {
                        p.quiet {
                            "How much of the differences in " (page.objective_name()) " each parameter explains on its own: "
                            "its share of the variance of a random forest over the whole space (functional ANOVA), fitted to the ranks of "
                            (counted(*trials as u64, "complete trial")) ". The forest explains " (format!("{:.0}%", explained * 100.0))
                            " of trials that it had not seen."
                        }
                        (self.bars(shares))
                        p.note {
                            "What parameters do only together is in no bar."
                            @if page.has(Outcome::Stopped) {
                                " Trials that were stopped are not judged: a value that was always stopped early may matter more than is shown."
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

fn grounds(parameters: &[Parameter], complete: &[(&Point, f64)]) -> Grounds {
    let trials = complete.len();
    if trials < FEWEST {
        return Grounds::Few(trials);
    }
    if complete.iter().all(|(_, value)| *value == complete[0].1) {
        return Grounds::Same(trials);
    }
    let used: Vec<(&Point, f64)> = evenly(complete, trials.min(MOST)).collect();
    let values: Vec<f64> = used.iter().map(|(_, value)| *value).collect();
    let columns: Vec<Vec<f64>> = parameters.iter().map(|p| column(p, &used)).collect();
    let row = |i: usize| columns.iter().map(|column| column[i]).collect();
    let rows: Vec<Vec<f64>> = (0..used.len()).map(row).collect();
    let forest = Forest::grow(&rows, &ranks(&values));
    if forest.explained() < LEAST {
        return Grounds::Nothing(used.len());
    }
    Grounds::Found { trials: used.len(), explained: forest.explained(), shares: forest.shares() }
}

/// The places of a parameter. Those who do not have it share the beginning, as wide as their number.
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

/// Ranks from 0 to 1; equal values have the same. A loss that exploded is then no more than the worst.
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

    fn drawn(made: &Made) -> String {
        let page = made.page();
        Importance::of(&page).section(&page).into_string()
    }

    #[test]
    fn the_parameter_that_decides_comes_first() {
        let made = Made::study(400);
        let page = made.page();
        let importance = Importance::of(&page);
        let Grounds::Found { shares, explained, .. } = &importance.grounds else {
            panic!("{:?}", importance.grounds);
        };
        assert!(*explained > 0.3, "{explained}");
        // The made-up study goes mostly by its first parameter.
        assert!(shares[1..].iter().all(|share| *share < shares[0]), "{shares:?}");
        assert_eq!(importance.most(1)[0].name, "rate");
    }

    #[test]
    fn few_trials_and_equal_ones_say_nothing() {
        let few = Made::of(vec![complete(0.5); 3]);
        assert!(drawn(&few).contains("cannot be told from 3 complete trials; it takes 20"));
        let same = Made::of(vec![complete(0.5); 30]);
        assert!(drawn(&same).contains("All 30 complete trials reached the same"));
    }

    #[test]
    fn equal_values_have_equal_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 1e300]), [0.5, 0.125, 0.5, 0.875]);
    }
}
