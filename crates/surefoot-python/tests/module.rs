//! The extension module in a Python interpreter.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::path::PathBuf;
use std::process::Command;

/// The library that cargo has built beside this test.
fn library() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let folder = here.parent().unwrap();
    let names = ["lib_core.so", "lib_core.dylib", "_core.dll"];
    names.iter().map(|name| folder.join(name)).find(|path| path.exists()).unwrap()
}

#[test]
fn python_imports_the_module_and_runs_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let name = if cfg!(windows) { "_core.pyd" } else { "_core.abi3.so" };
    std::fs::copy(library(), dir.path().join(name)).unwrap();
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = "import _core; print(_core.VERSION, _core.command(['no-such-command'], ['x']))";
    let output =
        Command::new(python).args(["-c", script]).env("PYTHONPATH", dir.path()).output().unwrap();
    let expected = format!("{} 2", env!("CARGO_PKG_VERSION"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{stderr}");
    assert!(stderr.contains("unrecognized subcommand"), "{stderr}");
}
