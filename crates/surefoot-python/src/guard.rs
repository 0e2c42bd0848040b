//! Errors and panics as Python exceptions.

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `body` and turns a panic into a `RuntimeError`. PyO3's own exception for panics is no
/// `Exception`, so it would end the program of the user.
pub(crate) fn catch<T>(body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let message = surefoot_diagnose::panic_message(&*panic);
        Err(PyRuntimeError::new_err(format!("internal error: {message}")))
    })
}

/// The error as a `RuntimeError` with its causes.
pub(crate) fn error(error: impl Error) -> pyo3::PyErr {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    PyRuntimeError::new_err(text)
}
