//! Throughput of the fills: `cargo bench -p surefoot-random`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use surefoot_random::{Key, Permutation, Purpose};

fn main() {
    let key = Key::new(42, Purpose::Generate);
    for len in [16, 64, 128, 1024, 65_536] {
        let mut out = vec![0.0; len];
        println!("{len} numbers a call");
        let count = len as u64;
        report("fill_uniform_f32", count, |i| {
            key.sample(i).fill_uniform_f32(black_box(&mut out));
        });
        report("fill_bernoulli_f32", count, |i| {
            key.sample(i).fill_bernoulli_f32(0.5, 2.0, black_box(&mut out));
        });
        report("fill_normal_f32", count, |i| {
            key.sample(i).fill_normal_f32(black_box(&mut out));
        });
        report("fill_truncated_normal_f32", count, |i| {
            key.sample(i).fill_truncated_normal_f32(black_box(&mut out));
        });
    }
    println!("one number a call");
    report("word", 1, |i| {
        black_box(key.sample(i).word(0));
    });
    report("normal", 1, |i| {
        black_box(key.normal(i));
    });
    for n in [1 << 16, 1 << 40] {
        let permutation = Permutation::new(key, n);
        report("Permutation::get", 1, |i| {
            black_box(permutation.get(i % n));
        });
        report("Permutation::inverse", 1, |i| {
            black_box(permutation.inverse(i % n));
        });
    }
}

/// Prints the best rate of twenty runs of some milliseconds.
fn report(name: &str, count: u64, mut call: impl FnMut(u64)) {
    let calls = 1_000_000 / count;
    let mut best = Duration::MAX;
    for run in 0..20 {
        let start = Instant::now();
        for i in 0..calls {
            call(run * calls + i);
        }
        best = best.min(start.elapsed());
    }
    let each = best.as_secs_f64() * 1e9 / (calls * count) as f64;
    println!("  {name:<28} {each:7.2} ns  {:7.0} million/s", 1e3 / each);
}
