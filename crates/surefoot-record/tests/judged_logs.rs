//! Verdicts on synthetic curves, in every format.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use proptest::prelude::*;
use surefoot_diagnose::{Severity, Thresholds};
use surefoot_record::logs::{Map, read};

/// The name of a file and its content for the losses of epochs.
type Format = (&'static str, fn(&[String]) -> String);

/// Ways to write the losses of epochs.
const FORMATS: [Format; 7] = [
    ("history.csv", |losses| {
        format!("epoch,loss\n{}", lines(losses, |i, loss| format!("{i},{loss}")))
    }),
    ("table.txt", |losses| {
        format!("epoch loss lr\n{}", lines(losses, |i, loss| format!("{i} {loss} 0.1")))
    }),
    ("log.jsonl", |losses| {
        lines(losses, |i, loss| format!("{{\"epoch\": {i}, \"loss\": \"{loss}\", \"lr\": 0.1}}"))
    }),
    ("history.json", |losses| format!("{{\"loss\": [{}]}}", quoted(losses))),
    ("train.log", |losses| {
        lines(losses, |i, loss| format!("12:30:01 INFO Epoch {i}/9: loss={loss}, lr=0.1"))
    }),
    ("dict.txt", |losses| lines(losses, |i, loss| format!("{{'loss': {loss}, 'epoch': {i}}}"))),
    ("keras.txt", |losses| {
        lines(losses, |i, loss| format!("Epoch {i}/9\n9/9 [===] - 1s - loss: {loss}"))
    }),
];

fn lines(losses: &[String], line: impl Fn(usize, &str) -> String) -> String {
    losses.iter().enumerate().map(|(i, loss)| line(i, loss) + "\n").collect()
}

fn quoted(losses: &[String]) -> String {
    losses.iter().map(|loss| format!("\"{loss}\"")).collect::<Vec<_>>().join(",")
}

/// Ids of the problems and of the warnings in each format; the same for all.
fn judged(losses: &[String]) -> (Vec<String>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let judge = |(name, write): &Format| {
        let path = dir.path().join(name);
        std::fs::write(&path, write(losses)).unwrap();
        let logs = read(&path, &Map::new()).unwrap();
        assert_eq!((logs.len(), logs[0].steps.len()), (1, losses.len()), "{name}");
        let diagnosis = logs[0].diagnose(Thresholds::default());
        let of = |severity| {
            let findings = diagnosis.findings().iter().filter(move |it| it.severity == severity);
            findings.map(|finding| finding.problem.id().to_owned()).collect::<Vec<_>>()
        };
        (of(Severity::Problem), of(Severity::Warning))
    };
    let first = judge(&FORMATS[0]);
    for format in &FORMATS[1..] {
        assert_eq!(judge(format), first, "{}", format.0);
    }
    first
}

/// Problems of a curve of `rows` losses, with up to 2% of noise.
fn problems(rows: usize, noise: &[f64], loss: impl Fn(f64) -> f64) -> Vec<String> {
    let value =
        |i: usize| loss(i as f64 / (rows - 1) as f64) * (1.0 + 0.02 * noise[i % noise.len()]);
    judged(&(0..rows).map(|i| format!("{:.6}", value(i))).collect::<Vec<_>>()).0
}

fn noise() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1.0..1.0, 17)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_loss_that_becomes_nan_is_a_problem_in_every_spelling(
        rows in 6_usize..40,
        from in 0.0..1.0_f64,
        nan in prop::sample::select(vec!["nan", "NaN", "-nan", "inf", "Infinity", "nan(ind)", "1.#QNAN", "nanxxx"]),
    ) {
        let from = ((from * rows as f64) as usize).min(rows - 3);
        let loss = |i: usize| if i < from { format!("{:.4}", 2.0 / (i + 1) as f64) } else { nan.to_owned() };
        let problems = judged(&(0..rows).map(loss).collect::<Vec<_>>()).0;
        prop_assert!(problems.contains(&"non_finite_loss".to_owned()), "{problems:?}");
    }

    #[test]
    fn a_single_nan_that_the_run_recovers_from_is_a_warning(rows in 8_usize..40, at in 1_usize..6) {
        let loss = |i: usize| if i == at { "nan".to_owned() } else { format!("{:.4}", 2.0 / (i + 1) as f64) };
        let found = judged(&(0..rows).map(loss).collect::<Vec<_>>());
        prop_assert_eq!(found, (vec![], vec!["non_finite_loss".to_owned()]));
    }

    #[test]
    fn a_level_loss_is_a_problem(rows in 6_usize..60, level in 0.05..50.0_f64) {
        let found = problems(rows, &[0.0], |_| level);
        prop_assert_eq!(found, ["slow_convergence"]);
    }

    #[test]
    fn a_rising_loss_is_a_problem(rows in 6_usize..60, level in 0.05..50.0_f64, top in 1.8..50.0_f64, noise in noise()) {
        let found = problems(rows, &noise, |t| level * (1.0 + (top - 1.0) * t));
        prop_assert!(found.contains(&"diverging_loss".to_owned()), "{found:?}");
    }

    #[test]
    fn an_alternating_loss_is_a_problem(rows in 10_usize..60, level in 0.05..50.0_f64, ratio in 1.4..8.0_f64) {
        let loss = |i: usize| format!("{:.6}", if i.is_multiple_of(2) { ratio * level } else { level });
        let found = judged(&(0..rows).map(loss).collect::<Vec<_>>()).0;
        prop_assert!(found.contains(&"oscillating_loss".to_owned()), "{found:?}");
    }

    #[test]
    fn what_was_learned_and_lost_is_a_problem(rows in 12_usize..60, level in 0.05..50.0_f64, low in 0.05..0.4_f64, noise in noise()) {
        let found = problems(rows, &noise, |t| level * if t < 0.6 { low + (1.0 - low) * (-9.0 * t).exp() } else { 1.0 });
        prop_assert!(!found.is_empty());
    }

    #[test]
    fn a_loss_that_falls_is_left_alone(
        rows in 6_usize..60,
        level in 0.05..50.0_f64,
        floor in 0.0..0.6_f64,
        rate in 2.0..9.0_f64,
        noise in noise(),
    ) {
        let found = problems(rows, &noise, |t| level * (floor + (1.0 - floor) * (-rate * t).exp()));
        prop_assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn any_text_is_read_or_refused(
        pieces in prop::collection::vec(
            prop_oneof![
                "\\PC{0,6}",
                prop::sample::select(vec![
                    "loss", "Epoch 3/40", "\n", "\n", "\t", " ", ":", "=", ",", "|", "[", "]", "{", "}", "(", "tensor(",
                    "nan", "1.#INF", "-0.5", "1e9", "3/", "/4", "%", "val acc", "[12]", "\u{1b}[", "\u{8}", "\r",
                    "epoch train_loss lr\n", "\"loss\": [1, 2]", "12: ",
                ]).prop_map(str::to_owned),
            ],
            0..40,
        ),
        name in prop::sample::select(vec!["a.txt", "a.csv", "a.json", "a.jsonl", "a"]),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, pieces.concat()).unwrap();
        if let Ok(logs) = read(&path, &Map::new()) {
            for log in logs {
                log.diagnose(Thresholds::default());
            }
        }
    }
}
