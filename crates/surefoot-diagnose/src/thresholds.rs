//! Where a symptom becomes a problem.

use crate::finding::Problem;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as NotAProblem;

/// The limits of all detectors.
///
/// The first group are those of AutoTrainer (section 5.4), with its names and values.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// β1: the gradient of the first layer by that of the last, below which it vanishes.
    pub beta_1: f64,
    /// β2: the norm of the first layer's gradient, below which it vanishes.
    pub beta_2: f64,
    /// β3: the gradient of the first layer by that of the last, above which it explodes.
    pub beta_3: f64,
    /// γ: the share of units with a gradient of zero, above which ReLUs are dying.
    pub gamma: f64,
    /// ζ: the swing of the accuracy that is large.
    pub zeta: f64,
    /// η: the share of time with a large swing, above which the loss oscillates.
    pub eta: f64,
    /// δ: the change of the accuracy in an iteration, below which it hardly moves.
    pub delta: f64,
    /// ω: the size of an input or output that is too large.
    pub omega: f64,
    /// Θ: the accuracy below which a model has learned next to nothing. It is read as that of two
    /// classes of equal size, as the paper's 0.6 was, and turned into a skill: 0.6 is a fifth of the
    /// way from guessing to perfection.
    pub theta: f64,
    /// α: for how many blocks more than the first a symptom has to last. The paper has 0, in
    /// epochs: a block is a two-hundredth of the training, so some are needed to be sure.
    pub alpha: usize,

    /// The metric that the user is content with: nothing is wrong with a model that has it.
    pub good_enough: f64,
    /// The share of the training in which nothing is said to be slow: it has only begun.
    pub patience: f64,
    /// A step that moves the weights by less than this part of them leads nowhere.
    pub least_update: f64,
    /// A step that moves the weights by more than this part of them destroys what they were.
    pub largest_update: f64,
    /// How many standard deviations a loss jumps in a spike (OLMo-core and Levanter use 6).
    pub spike: f64,
    /// The share of outputs at the bounds of their activation that is too much.
    pub saturated: f64,
    /// How much the validation loss may rise above its best before it is called over-fitting.
    pub over_fitting: f64,
    /// Problems that are not looked for.
    pub off: Vec<Problem>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
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
    /// Θ as a skill.
    pub(crate) fn low_skill(&self) -> f64 {
        2.0 * self.theta - 1.0
    }

    /// Sets the one that is called `key`, as in `diagnose.theta`, to `value`. The problems that are
    /// switched off are a list: `["slow_convergence", "dying_relu"]`.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let name = key.strip_prefix("diagnose.").unwrap_or(key);
        let value = value.trim();
        match name {
            "off" => self.off = problems(value),
            "alpha" => {
                let count = value.parse();
                self.alpha = count.map_err(|_| format!("`{key}` is a count, not `{value}`"))?;
            }
            _ => {
                let mut numbers = self.numbers();
                let names = || numbers.iter().map(|(name, _)| *name).chain(["alpha", "off"]);
                let keys: Vec<String> = names().map(|name| format!("diagnose.{name}")).collect();
                let Some((_, number)) = numbers.iter_mut().find(|(known, _)| *known == name) else {
                    return Err(format!("there is no `{key}`; there are {}", keys.join(", ")));
                };
                **number = match value.parse::<f64>() {
                    Ok(value) if !value.is_nan() => value,
                    _ => return Err(format!("`{key}` is a number, not `{value}`")),
                };
            }
        }
        Ok(())
    }

    /// Those that are numbers, by their names. Every field is named, so that none is forgotten.
    fn numbers(&mut self) -> Vec<(&'static str, &mut f64)> {
        let Thresholds {
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

/// The problems of a list, with or without brackets and quotes.
fn problems(text: &str) -> Vec<Problem> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner
        .unwrap_or(text)
        .split(',')
        .map(|id| id.trim().trim_matches(['"', '\'']))
        .filter(|id| !id.is_empty())
        .filter_map(|id| {
            let id: serde::de::value::StringDeserializer<NotAProblem> =
                id.to_owned().into_deserializer();
            Problem::deserialize(id).ok()
        })
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
        assert_eq!(thresholds.alpha, 7);
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
    fn what_cannot_be_set_is_said() {
        let mut thresholds = Thresholds::default();
        let unknown = thresholds.set("diagnose.thetta", "1").unwrap_err();
        assert!(unknown.contains("there are diagnose.beta_1, "), "{unknown}");
        assert!(unknown.ends_with("diagnose.alpha, diagnose.off"), "{unknown}");
        for (key, value) in [("theta", "much"), ("theta", "NaN"), ("alpha", "-1")] {
            assert!(thresholds.set(key, value).is_err(), "{key}={value}");
        }
        assert_eq!(thresholds, Thresholds::default());
    }
}
