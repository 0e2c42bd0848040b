//! The extension module `surefoot._core`: translation between Python and the crates, nothing else.
//!
//! Structured data crosses the border as JSON, tensors as addresses. `python/surefoot/_core.pyi` has
//! the types; the package around it is the interface for users.

mod guard;
mod optuna;
mod quick;
mod repair;
mod run;
mod script;
mod tensor;
mod tune;

use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// Functions and classes in Rust for the package `surefoot`.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::optuna::{check_sampler, prune, suggest};
    #[pymodule_export]
    use super::repair::{has_ended_well, remedies, repair};
    #[pymodule_export]
    use super::run::{Run, check_thresholds};
    #[pymodule_export]
    use super::script::{InterruptedRun, Recorder, digests, key, newest_checkpoint};
    #[pymodule_export]
    use super::tune::{TuneStudy, TuneTrial, TuneWorker};
    #[pymodule_export]
    use super::{command, pytorch_source, report, title};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}

/// Runs the command line `arguments`, without the name of the program, and returns its exit code.
/// `worker` starts this command in a new process.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>, worker: Vec<OsString>) -> u8 {
    surefoot::set_worker_command(worker);
    let name = std::iter::once(OsString::from("surefoot"));
    py.detach(|| surefoot::run(name.chain(arguments)))
}

/// Returns the report of the run in `directory` as an HTML page.
#[pyfunction]
fn report(directory: PathBuf) -> PyResult<String> {
    guard::catch(|| {
        let record = surefoot_record::Record::open(&directory).map_err(guard::error)?;
        surefoot_report::report(&record).map_err(guard::error)
    })
}

/// Returns the name of a problem as words.
#[pyfunction]
fn title(problem: String) -> String {
    surefoot_diagnose::Problem::from(problem).title()
}

/// Returns the source of a PyTorch module with the delivered model of the native run in `directory`.
#[pyfunction]
fn pytorch_source(directory: PathBuf) -> PyResult<String> {
    guard::catch(|| {
        let weights = std::path::absolute(directory.join("model.safetensors"))?;
        let predictor = surefoot_train::Predictor::open(&directory).map_err(guard::error)?;
        Ok(predictor.to_pytorch(&weights.to_string_lossy()))
    })
}
