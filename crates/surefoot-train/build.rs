//! Says which compiler builds the crate: it is part of what decides the bits of a run.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    // `rustc 1.95.0 (hash date)`
    let version = text.ok().and_then(|text| {
        let version = text.split_whitespace().nth(1)?;
        Some(version.to_owned())
    });
    let version = version.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=SUREFOOT_RUSTC={version}");
}
