//! What each rule means, for those who meet it: a page a rule, in `explain/`.

use crate::Rule;

/// The page of a rule. Its texts are Markdown of paragraphs and `code`, nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What it is, in a sentence.
    pub title: &'static str,
    /// What it is, in a paragraph.
    pub meaning: &'static str,
    /// What can happen to a training.
    pub consequences: &'static str,
    /// A script that has it.
    pub faulty: &'static str,
    /// The same script without it.
    pub sound: &'static str,
    /// The whole page.
    pub page: &'static str,
}

impl Rule {
    /// What it means.
    pub fn explanation(self) -> Explanation {
        let page = page(self);
        Explanation {
            title: between(page, "# ", "\n"),
            meaning: between(page, "\n\n", "\n\n## "),
            consequences: between(page, "## What can happen\n\n", "\n\n## "),
            faulty: between(page, "## Faulty\n\n```python\n", "```"),
            sound: between(page, "## Sound\n\n```python\n", "```"),
            page,
        }
    }
}

/// What lies between two marks; nothing if they are not there.
fn between(page: &'static str, start: &str, end: &str) -> &'static str {
    let after = page.split_once(start).map(|(_, after)| after);
    let found = after.and_then(|after| after.split_once(end));
    found.map_or("", |(found, _)| found)
}

fn page(rule: Rule) -> &'static str {
    match rule {
        Rule::MissingState => include_str!("explain/missing_state.md"),
        Rule::MissingGenerator => include_str!("explain/missing_generator.md"),
        Rule::MissingPosition => include_str!("explain/missing_position.md"),
        Rule::NotRestored => include_str!("explain/not_restored.md"),
        Rule::RestoredEarly => include_str!("explain/restored_early.md"),
        Rule::UnseededGenerator => include_str!("explain/unseeded_generator.md"),
        Rule::UnseededShuffle => include_str!("explain/unseeded_shuffle.md"),
        Rule::UnseededWorkers => include_str!("explain/unseeded_workers.md"),
        Rule::RankKeyed => include_str!("explain/rank_keyed.md"),
        Rule::EvaluationDraws => include_str!("explain/evaluation_draws.md"),
        Rule::SetOrder => include_str!("explain/set_order.md"),
        Rule::FileOrder => include_str!("explain/file_order.md"),
        Rule::HashOrder => include_str!("explain/hash_order.md"),
        Rule::Clock => include_str!("explain/clock.md"),
        Rule::NondeterministicOperation => include_str!("explain/nondeterministic_operation.md"),
        Rule::ArrivalOrder => include_str!("explain/arrival_order.md"),
        Rule::CudnnBenchmark => include_str!("explain/cudnn_benchmark.md"),
        Rule::WarnOnly => include_str!("explain/warn_only.md"),
        Rule::Autotune => include_str!("explain/autotune.md"),
        Rule::Precision => include_str!("explain/precision.md"),
        Rule::UnknownCall => include_str!("explain/unknown_call.md"),
        Rule::UnknownSuppression => include_str!("explain/unknown_suppression.md"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_whole() {
        for rule in Rule::ALL {
            let it = rule.explanation();
            let parts = [it.title, it.meaning, it.consequences, it.faulty, it.sound];
            for part in parts {
                assert!(!part.trim().is_empty(), "{rule}: {it:?}");
                assert!(!part.contains("## "), "{rule}: {part}");
            }
            assert_ne!(it.faulty, it.sound, "{rule}");
            assert!(!it.title.ends_with('.'), "{rule}");
        }
    }

    #[test]
    fn no_two_rules_share_a_title() {
        let titles: std::collections::BTreeSet<_> =
            Rule::ALL.map(|rule| rule.explanation().title).into();
        assert_eq!(titles.len(), Rule::ALL.len());
    }
}
