//! A trial of `surefoot tune` as a Rust program.
//!
//! In a study: `command = "cargo run --release --example trial"`.

use serde_json::{Value, json};

fn parameters() -> Value {
    let text = std::env::var("SUREFOOT_PARAMETERS").expect("started by surefoot tune");
    serde_json::from_str(&text).expect("JSON")
}

fn main() {
    let rate = parameters()["rate"].as_f64().expect("a rate");
    let mut x = 5.0_f64;
    for epoch in 1..=20 {
        x -= rate * 2.0 * x;
        println!("{}", json!({"epoch": epoch, "epochs": 20, "loss": x * x, "value": x * x}));
    }
}
