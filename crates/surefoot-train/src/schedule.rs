//! Learning rates.

use surefoot_plan::{Decay, Schedule};

/// The learning rate of step `step` (from 0) of a run of `total` steps.
pub(crate) fn learning_rate(base: f64, schedule: &Schedule, step: u64, total: u64) -> f64 {
    if step < schedule.warmup_steps {
        return base * (step + 1) as f64 / schedule.warmup_steps as f64;
    }
    let t = (step - schedule.warmup_steps) as f64;
    match schedule.decay {
        Decay::Constant => base,
        Decay::Step { decay_steps, decay_rate } => {
            base * libm::pow(decay_rate, (t / decay_steps.max(1) as f64).floor())
        }
        Decay::Exponential { decay_steps, decay_rate } => {
            base * libm::pow(decay_rate, t / decay_steps.max(1) as f64)
        }
        Decay::InverseTime { decay_steps, decay_rate } => {
            base / (1.0 + decay_rate * t / decay_steps.max(1) as f64)
        }
        Decay::Cosine { decay_steps, alpha } => {
            let length = decay_steps.unwrap_or(total.saturating_sub(schedule.warmup_steps)).max(1);
            let done = (t / length as f64).min(1.0);
            let cosine = 0.5 * (1.0 + libm::cos(std::f64::consts::PI * done));
            base * (alpha + (1.0 - alpha) * cosine)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(decay: Decay, warmup_steps: u64, steps: &[u64]) -> Vec<f64> {
        let schedule = Schedule { decay, warmup_steps };
        steps.iter().map(|&s| (learning_rate(0.1, &schedule, s, 20) * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn warm_up_rises_to_the_base_rate() {
        assert_eq!(rates(Decay::Constant, 4, &[0, 1, 3, 4, 9]), [0.025, 0.05, 0.1, 0.1, 0.1]);
    }

    #[test]
    fn steps_and_exponentials_fall_by_their_factor() {
        let step = Decay::Step { decay_steps: 5, decay_rate: 0.5 };
        assert_eq!(rates(step, 0, &[0, 4, 5, 10]), [0.1, 0.1, 0.05, 0.025]);
        let exponential = Decay::Exponential { decay_steps: 2, decay_rate: 0.25 };
        assert_eq!(rates(exponential, 0, &[0, 1, 2]), [0.1, 0.05, 0.025]);
    }

    #[test]
    fn the_decay_of_keras_2_divides_the_rate() {
        let decay = Decay::InverseTime { decay_steps: 1, decay_rate: 0.25 };
        assert_eq!(rates(decay, 0, &[0, 4, 12]), [0.1, 0.05, 0.025]);
        let slower = Decay::InverseTime { decay_steps: 4, decay_rate: 1.0 };
        assert_eq!(rates(slower, 0, &[0, 4, 12]), [0.1, 0.05, 0.025]);
    }

    #[test]
    fn a_cosine_ends_with_the_run() {
        let cosine = Decay::Cosine { decay_steps: None, alpha: 0.1 };
        assert_eq!(rates(cosine, 10, &[10, 15, 20, 30]), [0.1, 0.055, 0.01, 0.01]);
    }
}
