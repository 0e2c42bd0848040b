//! Draws have their documented distribution, and draws of different keys are independent.
//!
//! Keys are fixed, so these tests always pass or always fail. Limits are exceeded by a true draw in
//! one of ten thousand cases or less.

use surefoot_random::{Key, Permutation, Purpose};

const N: usize = 200_000;

fn key() -> Key {
    Key::new(2025, Purpose::Generate)
}

fn draws(draw: impl Fn(u64) -> f64) -> Vec<f64> {
    (0..N as u64).map(draw).collect()
}

/// The mean and the mean of squares about it.
fn moments(draws: &[f64]) -> (f64, f64) {
    let n = draws.len() as f64;
    let mean = draws.iter().sum::<f64>() / n;
    let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    (mean, variance)
}

/// Distance of the empirical distribution function from the given one, times the root of the number
/// of draws (Kolmogorov and Smirnov's statistic; above 2.2 once in ten thousand times).
fn distance(mut draws: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    draws.sort_unstable_by(f64::total_cmp);
    let n = draws.len() as f64;
    let gap = (0u32..).zip(&draws).fold(0.0, |gap: f64, (i, &x)| {
        let (below, expected) = (f64::from(i) / n, distribution(x));
        gap.max(expected - below).max(below + 1.0 / n - expected)
    });
    gap * n.sqrt()
}

/// Asserts that counts fit equally likely cells: Pearson's statistic within four standard
/// deviations of its mean.
fn assert_even(counts: &[u64]) {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let statistic: f64 =
        counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
    let freedom = (counts.len() - 1) as f64;
    let deviations = (statistic - freedom) / (2.0 * freedom).sqrt();
    assert!(deviations.abs() < 4.0, "{deviations} in {statistic}: {counts:?}");
}

/// The correlation of two sequences, times the root of their length: about standard normal.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let ((mean_a, variance_a), (mean_b, variance_b)) = (moments(a), moments(b));
    let covariance: f64 = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum();
    covariance / (variance_a * variance_b * a.len() as f64).sqrt()
}

/// Φ by its Taylor series about 0, good to 10⁻⁹ within ±6.
fn normal_distribution(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for k in 1..120 {
        term *= x * x / f64::from(2 * k + 1);
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

#[test]
fn uniform_draws_are_uniform() {
    for draws in [draws(|i| key().uniform(i)), draws(|i| f64::from(key().uniform_f32(i)))] {
        assert!(draws.iter().all(|x| (0.0..1.0).contains(x)));
        let (mean, variance) = moments(&draws);
        assert!((mean - 0.5).abs() < 0.003, "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < 0.001, "{variance}");
        assert!(distance(draws, |x| x) < 2.2);
    }
}

#[test]
fn normal_draws_are_normal() {
    let draws = draws(|i| key().normal(i));
    let (mean, variance) = moments(&draws);
    assert!(mean.abs() < 0.009, "{mean}");
    assert!((variance - 1.0).abs() < 0.013, "{variance}");
    assert!(distance(draws, normal_distribution) < 2.2);
}

#[test]
fn truncated_normal_draws_are_the_middle_of_the_normal_distribution() {
    let draws = draws(|i| key().truncated_normal(i));
    assert!(draws.iter().all(|x| x.abs() <= 2.0));
    let (mean, variance) = moments(&draws);
    assert!(mean.abs() < 0.008, "{mean}");
    assert!((variance.sqrt() - 0.879_625_6).abs() < 0.004, "{variance}");
    let (low, high) = (normal_distribution(-2.0), normal_distribution(2.0));
    assert!(distance(draws, |x| (normal_distribution(x) - low) / (high - low)) < 2.2);
}

#[test]
fn bernoulli_draws_succeed_as_often_as_they_should() {
    for p in [0.001, 0.1, 0.5, 0.8, 0.999] {
        let successes = (0..N as u64).filter(|&i| key().bernoulli(i, p)).count() as f64;
        let deviation = (N as f64 * p * (1.0 - p)).sqrt();
        assert!((successes - N as f64 * p).abs() < 4.0 * deviation, "{p}");
    }
}

#[test]
fn draws_below_a_number_are_even() {
    for n in [2, 3, 7, 10, 256, 1000] {
        let mut counts = vec![0; n];
        for i in 0..N as u64 {
            counts[key().below(i, n as u64) as usize] += 1;
        }
        assert_even(&counts);
    }
}

#[test]
fn bits_are_even_at_every_place() {
    for place in 0..32 {
        let ones = (0..20_000).filter(|&i| key().word(i) >> place & 1 == 1).count();
        assert_even(&[ones as u64, 20_000 - ones as u64]);
    }
}

#[test]
fn a_draw_says_nothing_about_the_next() {
    let draws = draws(|i| key().uniform(i));
    for lag in [1, 2, 3, 4, 8, 16, 64] {
        let deviations = correlation(&draws[lag..], &draws[..N - lag]);
        assert!(deviations.abs() < 4.0, "lag {lag}: {deviations}");
    }
}

#[test]
fn pairs_of_draws_fill_the_square_evenly() {
    let mut counts = vec![0; 256];
    for i in 0..N as u64 {
        let cell = |index| (key().uniform(index) * 16.0) as usize;
        counts[16 * cell(2 * i) + cell(2 * i + 1)] += 1;
    }
    assert_even(&counts);
}

#[test]
fn neighbouring_keys_are_independent() {
    let neighbours = [
        Key::new(2026, Purpose::Generate),
        Key::new(2025, Purpose::Subset),
        key().epoch(1),
        key().sample(1),
        key().site(1),
        key().epoch(1).sample(1),
    ];
    let here = draws(|i| key().uniform(i));
    for neighbour in neighbours {
        let deviations = correlation(&here, &draws(|i| neighbour.uniform(i)));
        assert!(deviations.abs() < 4.0, "{neighbour:?}: {deviations}");
    }
}

/// One number from each of many keys is as good as many numbers from one key.
#[test]
fn the_first_draws_of_consecutive_keys_are_uniform() {
    let along: [fn(u64) -> Key; 4] = [
        |i| Key::new(i, Purpose::Generate),
        |i| key().epoch(i),
        |i| key().sample(i),
        |i| key().site(i),
    ];
    for along in along {
        let draws = draws(|i| along(i).uniform(0));
        let deviations = correlation(&draws[1..], &draws[..N - 1]);
        assert!(deviations.abs() < 4.0, "{deviations}");
        assert!(distance(draws, |x| x) < 2.2);
    }
}

#[test]
fn all_orders_of_four_are_equally_likely() {
    let mut counts = vec![0; 256];
    for epoch in 0..48_000 {
        let permutation = Permutation::new(key().epoch(epoch), 4);
        let order = permutation.iter().fold(0, |order, x| 4 * order + x as usize);
        counts[order] += 1;
    }
    counts.retain(|&count| count > 0);
    assert_eq!(counts.len(), 24);
    assert_even(&counts);
}

/// Below and above the size at which permutations are no longer held in a table.
#[test]
fn any_element_may_come_at_any_position() {
    for n in [5, 256, 257, 1000] {
        for position in [0, n / 2, n - 1] {
            let mut counts = vec![0; n as usize];
            for epoch in 0..40 * n {
                let permutation = Permutation::new(key().epoch(epoch), n);
                counts[permutation.get(position) as usize] += 1;
            }
            assert_even(&counts);
        }
    }
}

/// The elements at two positions, as a pair: what a shuffle that is too regular gets wrong first.
#[test]
fn neighbouring_positions_hold_unrelated_elements() {
    let n = 257;
    // In the rectangle of this size: in one row, in one column, and in neither.
    for (a, b) in [(0, 1), (0, 16), (3, 200)] {
        let mut counts = vec![0; (n * n) as usize];
        let draws = 20 * n * n;
        for epoch in 0..draws {
            let permutation = Permutation::new(key().epoch(epoch), n);
            counts[(permutation.get(a) * n + permutation.get(b)) as usize] += 1;
        }
        let together = (0..n as usize).map(|x| counts[x * n as usize + x]).sum::<u64>();
        assert_eq!(together, 0);
        let apart: Vec<u64> = (0..n * n)
            .filter(|cell| cell / n != cell % n)
            .map(|cell| counts[cell as usize])
            .collect();
        assert_even(&apart);
    }
}

#[test]
fn a_shuffle_forgets_the_order() {
    for n in [1000, 100_003] {
        let positions: Vec<f64> = (0..n).map(|x| x as f64).collect();
        let elements: Vec<f64> = Permutation::new(key(), n).iter().map(|x| x as f64).collect();
        assert!(correlation(&positions, &elements).abs() < 4.0);
        assert!(correlation(&elements[1..], &elements[..n as usize - 1]).abs() < 4.0);
    }
}
