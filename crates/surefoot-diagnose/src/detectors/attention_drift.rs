//! Attention logits that grow without end.

use super::output_drift::Growth;
use crate::detector::{Context, Detector, Quantity};
use crate::finding::{Finding, Problem};
use crate::layer::LayerKind;
use crate::measure::Measure;

/// The products of queries and keys, before the softmax, grow beyond a hundred and still grow.
///
/// Then a head attends to a single position only, its gradient is close to zero, and large models
/// diverge soon after (Wortsman et al. 2023, "Small-scale proxies for large-scale transformer
/// training instabilities"). Kimi K2 rescales queries and keys from a limit of a hundred on; logits of
/// models that train well stay in the tens.
#[derive(Clone, Debug, Default)]
pub struct AttentionDrift {
    growth: Growth,
}

/// Absolute logit from which on growth is a drift.
const LARGE: f64 = 100.0;
/// Growth since the first blocks that is a drift.
const GROWTH: f64 = 4.0;

impl Detector for AttentionDrift {
    fn problem(&self) -> Problem {
        Problem::ATTENTION_DRIFT
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Outputs]
    }

    fn review(&mut self, context: &Context<'_>) -> Option<Finding> {
        let layers = &context.facts.layers;
        let counted = |i: usize| layers[i].kind == LayerKind::AttentionLogits;
        let (worst, now, start) = self.growth.review(context, LARGE, GROWTH, counted)?;
        let message = format!(
            "The largest attention logit has grown from {} to {} and still grows: the attention is \
             on single positions.",
            crate::number::rough(start),
            crate::number::rough(now)
        );
        Some(
            Finding::new(self.problem(), context.step(), message)
                .warning()
                .within(vec![layers[worst].name.clone()])
                .with(Measure::LargestOutput, now, LARGE),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Course, facts};
    use super::*;
    use crate::Summary;

    fn found(kind: LayerKind, logit: impl Fn(f64) -> f64 + 'static) -> Option<Finding> {
        let mut facts = facts();
        (facts.layers[1].kind, facts.layers[1].parameters) = (kind, 0);
        let mut course = Course::new(facts).skill(|_| 0.5);
        course.change(move |step, seen| {
            let linf = logit(step as f64);
            seen.layers[1].output = Some(Summary { count: 64, linf, ..Summary::default() });
        });
        course.run(AttentionDrift::default())
    }

    #[test]
    fn logits_that_grow_without_end_are_found() {
        let finding = found(LayerKind::AttentionLogits, |step| 2.0 * step).unwrap();
        assert_eq!(finding.layers, ["dense_2"]);
        assert_eq!(found(LayerKind::Dense, |step| 2.0 * step), None);
    }

    #[test]
    fn logits_that_settle_are_fine() {
        assert_eq!(found(LayerKind::AttentionLogits, |step| 4.0 * step.ln()), None);
    }
}
