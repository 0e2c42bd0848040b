//! Limits of the detectors.

use crate::detector::Detector;
use crate::detectors;
use crate::finding::Problem;

/// A set of detection rules: the detectors and their default limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// [All detectors](detectors::all), with the conditions that each documents.
    #[default]
    Surefoot,
    /// The [eight problems](detectors::autotrainer) of AutoTrainer's Table 1, as published.
    AutoTrainer,
}

impl Rules {
    /// A new set of its detectors.
    pub fn detectors(self) -> Vec<Box<dyn Detector>> {
        match self {
            Rules::Surefoot => detectors::all(),
            Rules::AutoTrainer => detectors::autotrainer(),
        }
    }

    /// Its limits.
    pub fn thresholds(self) -> Thresholds {
        match self {
            Rules::Surefoot => Thresholds::default(),
            Rules::AutoTrainer => Thresholds::autotrainer(),
        }
    }
}

impl std::str::FromStr for Rules {
    type Err = String;

    fn from_str(name: &str) -> Result<Rules, String> {
        match name.trim_matches('"') {
            "surefoot" => Ok(Rules::Surefoot),
            "autotrainer" => Ok(Rules::AutoTrainer),
            _ => Err(format!("`rules` must be surefoot or autotrainer, not `{name}`")),
        }
    }
}

/// Limits of all detectors.
///
/// The first group has the names and values of AutoTrainer (section 5.4).
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// The rules that the limits belong to.
    ///
    /// They determine the length of an *iteration*, in which `alpha` and `check_every` are counted: a
    /// block (a two-hundredth of the training) or, with AutoTrainer's rules, an epoch.
    pub rules: Rules,
    /// β1: first-layer gradient / last-layer gradient below which gradients vanish.
    pub beta_1: f64,
    /// β2: norm of the first-layer gradient below which gradients vanish.
    pub beta_2: f64,
    /// β3: first-layer gradient / last-layer gradient above which gradients explode.
    pub beta_3: f64,
    /// γ: share of units with zero gradient above which ReLUs are dying.
    pub gamma: f64,
    /// ζ: change of the accuracy that counts as a large swing.
    pub zeta: f64,
    /// η: share of blocks with a large swing above which the loss oscillates.
    pub eta: f64,
    /// δ: increase of the accuracy per block below which convergence is slow.
    pub delta: f64,
    /// ω: root mean square of the input that is too large.
    pub omega: f64,
    /// Θ: accuracy below which a model has learned nothing. Refers to two classes of equal size, as
    /// in the paper, and is converted to a skill: 0.6 is a fifth of the way from guessing to perfect.
    pub theta: f64,
    /// α: number of additional iterations that a symptom has to last. The paper uses 0 epochs; a block
    /// is a two-hundredth of the training, so several are needed.
    pub alpha: usize,
    /// 1/q: number of iterations from one check to the next. Nothing is reported in between. The paper
    /// checks every 3 epochs.
    pub check_every: usize,

    /// Metric from which on no problem is reported.
    pub good_enough: f64,
    /// Share of the training before which convergence is never called slow.
    pub patience: f64,
    /// Update ratio below which steps are too small to learn.
    pub least_update: f64,
    /// Update ratio above which steps destroy the weights.
    pub largest_update: f64,
    /// Standard deviations above the mean that make a loss spike (OLMo-core and Levanter use 6).
    pub spike: f64,
    /// Share of outputs at the bounds of their activation that is too large.
    pub saturated: f64,
    /// Relative rise of the validation loss above its best that counts as over-fitting.
    pub over_fitting: f64,
    /// Problems that are switched off.
    pub off: Vec<Problem>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            rules: Rules::Surefoot,
            beta_1: 1e-3,
            beta_2: 1e-4,
            beta_3: 70.0,
            gamma: 0.7,
            zeta: 0.03,
            eta: 0.2,
            delta: 0.01,
            omega: 10.0,
            theta: 0.6,
            alpha: 3,
            check_every: 1,
            good_enough: f64::INFINITY,
            patience: 0.06,
            least_update: 3e-5,
            largest_update: 0.3,
            spike: 6.0,
            saturated: 0.9,
            over_fitting: 0.5,
            off: Vec::new(),
        }
    }
}

impl Thresholds {
    /// Limits of AutoTrainer's rules as published (section 5.4): Θ is compared with the accuracy itself,
    /// symptoms count at once, and epochs are checked in threes.
    pub fn autotrainer() -> Thresholds {
        Thresholds { rules: Rules::AutoTrainer, alpha: 0, check_every: 3, ..Thresholds::default() }
    }

    /// Θ as a skill.
    pub(crate) fn low_skill(&self) -> f64 {
        2.0 * self.theta - 1.0
    }

    /// Skill to expect of a run, if it is `usual` with the default Θ. A lower Θ expects less, down to
    /// nothing at the Θ of guessing, a higher one more, up to perfection.
    pub(crate) fn expected_skill(&self, usual: f64) -> f64 {
        let (low, default) = (self.low_skill(), Thresholds::default().low_skill());
        if low <= default {
            usual * (low / default)
        } else {
            1.0 - (1.0 - usual) * (1.0 - low) / (1.0 - default)
        }
    }

    /// Number of blocks of a condition that lasts `usual` blocks with the default α.
    pub(crate) fn lasting(&self, usual: usize) -> usize {
        (usual + self.alpha).saturating_sub(Thresholds::default().alpha).max(1)
    }

    /// Sets the threshold `key`, such as `diagnose.theta`. The value of `diagnose.off` is a list:
    /// `["slow_convergence", "dying_relu"]`.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let name = key.strip_prefix("diagnose.").unwrap_or(key);
        let value = value.trim();
        match name {
            "off" => self.off = problems(value),
            "alpha" | "check_every" => {
                let least = usize::from(name == "check_every");
                let count = value.parse().ok().filter(|count| *count >= least);
                let count = count.ok_or_else(|| {
                    format!("`{key}` must be an integer of at least {least}, not `{value}`")
                })?;
                let place = if name == "alpha" { &mut self.alpha } else { &mut self.check_every };
                *place = count;
            }
            _ => {
                let mut numbers = self.numbers();
                let names =
                    || numbers.iter().map(|(name, _)| *name).chain(["alpha", "check_every", "off"]);
                let keys: Vec<String> = names().map(|name| format!("diagnose.{name}")).collect();
                let Some((_, number)) = numbers.iter_mut().find(|(known, _)| *known == name) else {
                    return Err(format!(
                        "unknown key `{key}`; expected one of {}",
                        keys.join(", ")
                    ));
                };
                **number = match value.parse::<f64>() {
                    Ok(value) if !value.is_nan() => value,
                    _ => return Err(format!("`{key}` must be a number, not `{value}`")),
                };
            }
        }
        Ok(())
    }

    /// Numeric thresholds by name. The pattern is exhaustive so that no field is forgotten.
    fn numbers(&mut self) -> Vec<(&'static str, &mut f64)> {
        let Thresholds {
            rules: _,
            beta_1,
            beta_2,
            beta_3,
            gamma,
            zeta,
            eta,
            delta,
            omega,
            theta,
            alpha: _,
            check_every: _,
            patience,
            good_enough,
            least_update,
            largest_update,
            spike,
            saturated,
            over_fitting,
            off: _,
        } = self;
        vec![
            ("beta_1", beta_1),
            ("beta_2", beta_2),
            ("beta_3", beta_3),
            ("gamma", gamma),
            ("zeta", zeta),
            ("eta", eta),
            ("delta", delta),
            ("omega", omega),
            ("theta", theta),
            ("patience", patience),
            ("good_enough", good_enough),
            ("least_update", least_update),
            ("largest_update", largest_update),
            ("spike", spike),
            ("saturated", saturated),
            ("over_fitting", over_fitting),
        ]
    }
}

/// Problems of a list, with or without brackets and quotes.
fn problems(text: &str) -> Vec<Problem> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner
        .unwrap_or(text)
        .split(',')
        .map(|id| id.trim().trim_matches(['"', '\'']))
        .filter(|id| !id.is_empty())
        .map(|id| Problem::from(id.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_can_be_set_by_its_name() {
        let mut thresholds = Thresholds::default();
        let names: Vec<&str> = thresholds.numbers().iter().map(|(name, _)| *name).collect();
        for name in &names {
            thresholds.set(&format!("diagnose.{name}"), " 0.125").unwrap();
        }
        assert!(thresholds.numbers().iter().all(|(_, number)| **number == 0.125));
        thresholds.set("diagnose.alpha", "7").unwrap();
        thresholds.set("diagnose.check_every", "5").unwrap();
        assert_eq!((thresholds.alpha, thresholds.check_every), (7, 5));
    }

    #[test]
    fn problems_are_switched_off_by_a_list() {
        let mut thresholds = Thresholds::default();
        let list = r#"["slow_convergence", 'dying_relu']"#;
        thresholds.set("diagnose.off", list).unwrap();
        assert_eq!(thresholds.off, [Problem::SLOW_CONVERGENCE, Problem::DYING_RELU]);
        thresholds.set("diagnose.off", "loss_spike").unwrap();
        assert_eq!(thresholds.off, [Problem::LOSS_SPIKE]);
        thresholds.set("diagnose.off", "[]").unwrap();
        assert_eq!(thresholds.off, []);
    }

    #[test]
    fn expectations_are_the_usual_ones_with_the_default_thresholds() {
        let thresholds = Thresholds::default();
        assert_eq!(thresholds.expected_skill(0.9), 0.9);
        assert_eq!(thresholds.lasting(10), 10);
        let with = |theta| Thresholds { theta, ..Thresholds::default() }.expected_skill(0.9);
        assert_eq!([with(0.5), with(1.0)], [0.0, 1.0]);
        assert!(with(0.55) < 0.9 && with(0.7) > 0.9);
    }

    #[test]
    fn invalid_keys_and_values_are_rejected() {
        let mut thresholds = Thresholds::default();
        let unknown = thresholds.set("diagnose.thetta", "1").unwrap_err();
        assert!(unknown.contains("expected one of diagnose.beta_1, "), "{unknown}");
        assert!(unknown.ends_with("diagnose.check_every, diagnose.off"), "{unknown}");
        for (key, value) in
            [("theta", "much"), ("theta", "NaN"), ("alpha", "-1"), ("check_every", "0")]
        {
            assert!(thresholds.set(key, value).is_err(), "{key}={value}");
        }
        assert_eq!(thresholds, Thresholds::default());
    }
}
