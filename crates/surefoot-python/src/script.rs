//! The record of a script that `surefoot run` executes: the class `surefoot._core.Recorder`, and the
//! keys of its generators.

use crate::guard::{catch, error};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use surefoot_diagnose::Observation;
use surefoot_random::{Key, Purpose};
use surefoot_record::{
    Array, Checkpoint, Digest, Dtype, Environment, Event, Header, MetricSummary, Part, Quantity,
    RunSummary, StateDigest, Status, StepDigest, Values,
};

/// Parts of the digest of a step, in order.
const PARTS: [Quantity; 5] = [
    Quantity::Batch,
    Quantity::Loss,
    Quantity::Parameters,
    Quantity::Statistics,
    Quantity::Optimizer,
];

/// A tensor in a checkpoint or model: name, type as in safetensors, shape, address and size in bytes.
pub(crate) type TensorAt = (String, String, Vec<usize>, usize, usize);
/// A tensor of a checkpoint: name, type, shape and bytes.
type TensorBytes = (String, String, Vec<usize>, Py<PyBytes>);
/// A checkpoint: step, state as JSON and tensors.
type Restored = (u64, String, Vec<TensorBytes>);

/// Returns the seed that belongs to a purpose (`site`) of a script and two counters.
#[pyfunction]
pub(crate) fn key(seed: u64, site: u64, epoch: u64, sample: u64) -> u64 {
    Key::new(seed, Purpose::Script).site(site).epoch(epoch).sample(sample).u64(0)
}

/// Returns the digests of tensors, each given by its address and size in bytes.
#[pyfunction]
pub(crate) fn digests(addresses: Vec<usize>, sizes: Vec<usize>) -> PyResult<Vec<String>> {
    let tensors = memory(&addresses, &sizes)?;
    Ok(tensors.map(|bytes| Digest::of(bytes).to_string()).collect())
}

/// Records a run of a script.
///
/// Tensors are given by their addresses and must stay alive during the call.
#[pyclass(module = "surefoot._core")]
pub(crate) struct Recorder {
    /// `None` once the run is finished.
    recorder: Mutex<Option<surefoot_record::Recorder>>,
    directory: PathBuf,
    begun: Instant,
    digest: StepDigest,
}

#[pymethods]
impl Recorder {
    /// Starts a run in a new directory below `runs`, with `program` (JSON) as its definition.
    #[staticmethod]
    fn create(
        runs: PathBuf,
        name: &str,
        program: &str,
        libraries: BTreeMap<String, String>,
        device: String,
        threads: usize,
    ) -> PyResult<Self> {
        catch(|| {
            let header = Header {
                digest_parts: PARTS.map(Part::of).to_vec(),
                environment: environment(libraries, device, threads),
                ..Header::default()
            };
            let recorder =
                surefoot_record::Recorder::create_for_program(&runs, name, program, header);
            Ok(Self::new(recorder.map_err(error)?))
        })
    }

    /// The run directory.
    #[getter]
    fn directory(&self) -> PathBuf {
        self.directory.clone()
    }

    /// Records a step of the 1-based `epoch`. `parts` are the tensors of the batch, the loss, the
    /// parameters, the buffers and the optimizer: their addresses and their sizes in bytes. `extra` is
    /// text that belongs to the optimizer's part.
    fn step(
        &mut self,
        step: u64,
        epoch: u64,
        loss: Option<f64>,
        parts: [(Vec<usize>, Vec<usize>); 5],
        extra: &str,
    ) -> PyResult<()> {
        catch(|| {
            let mut digests = [Digest(0); PARTS.len()];
            for (index, (addresses, sizes)) in parts.iter().enumerate() {
                let mut state = StateDigest::new();
                for bytes in memory(addresses, sizes)? {
                    state.update("", bytes);
                }
                if index == PARTS.len() - 1 && !extra.is_empty() {
                    state.update("extra", extra.as_bytes());
                }
                digests[index] = state.finish();
            }
            self.digest.seal(step, &digests);
            let mut recorder = lock(&self.recorder);
            let recorder = recorder.as_mut().ok_or_else(finished)?;
            if let Some(loss) = loss {
                recorder.observe(&Observation::new(step, loss).with_epoch(epoch));
            }
            recorder.digest(&self.digest);
            Ok(())
        })
    }

    /// Digest of the state after the last recorded step.
    #[getter]
    fn digest(&self) -> String {
        self.digest.digest.to_string()
    }

    /// Records an event: an object with `event` and `step`, as JSON.
    fn event(&mut self, event: &str) -> PyResult<()> {
        catch(|| {
            let event: Event = serde_json::from_str(event).map_err(error)?;
            let mut recorder = lock(&self.recorder);
            recorder.as_mut().ok_or_else(finished)?.event(&event).map_err(error)
        })
    }

    /// Writes a checkpoint with `state` (JSON) and `tensors`.
    fn checkpoint(
        &mut self,
        step: u64,
        epoch: u64,
        state: &str,
        tensors: Vec<TensorAt>,
    ) -> PyResult<()> {
        catch(|| {
            let arrays = tensors.into_iter().map(array).collect::<PyResult<_>>()?;
            let state = serde_json::from_str(state).map_err(error)?;
            let checkpoint = Checkpoint { step, epoch, state, arrays };
            let mut recorder = lock(&self.recorder);
            let recorder = recorder.as_mut().ok_or_else(finished)?;
            recorder.checkpoint(&checkpoint).map_err(error)?;
            Ok(())
        })
    }

    /// Writes everything recorded so far to the disk. The run can be resumed.
    fn flush(&mut self) -> PyResult<()> {
        catch(|| {
            let mut recorder = lock(&self.recorder);
            recorder.as_mut().ok_or_else(finished)?.sync().map_err(error)
        })
    }

    /// Ends the run after `steps` steps and writes its summary.
    fn finish(&mut self, steps: u64) -> PyResult<()> {
        catch(|| {
            let recorder = lock(&self.recorder).take().ok_or_else(finished)?;
            let summary = RunSummary {
                status: Status::Normal,
                problems: Vec::new(),
                remedies: Vec::new(),
                failed_detectors: Vec::new(),
                metric: MetricSummary { name: String::new(), before: None, after: None },
                steps,
                seconds: self.begun.elapsed().as_secs_f64(),
                digest: self.digest.digest,
                run: self.directory.display().to_string(),
            };
            recorder.finish(&summary).map_err(error)
        })
    }
}

/// A run that was interrupted or killed: locked, and still as it was left.
#[pyclass(module = "surefoot._core")]
pub(crate) struct InterruptedRun {
    /// `None` once the run is resumed.
    run: Mutex<Option<surefoot_record::InterruptedRun>>,
}

#[pymethods]
impl InterruptedRun {
    /// Locks the run in `directory`.
    #[new]
    fn new(directory: PathBuf) -> PyResult<Self> {
        catch(|| {
            let run = surefoot_record::InterruptedRun::open(&directory).map_err(error)?;
            Ok(Self { run: Mutex::new(Some(run)) })
        })
    }

    /// Cuts the record back to its newest checkpoint and continues it; returns the step of the
    /// checkpoint too.
    fn resume(
        &self,
        libraries: BTreeMap<String, String>,
        device: String,
        threads: usize,
    ) -> PyResult<(Recorder, u64)> {
        catch(|| {
            let environment = environment(libraries, device, threads);
            let run = lock(&self.run).take();
            let run =
                run.ok_or_else(|| PyRuntimeError::new_err("the run has been resumed already"))?;
            let (recorder, checkpoint) = run.resume(&environment).map_err(error)?;
            Ok((Recorder::new(recorder), checkpoint.map_or(0, |checkpoint| checkpoint.step)))
        })
    }
}

/// Returns the newest checkpoint of the run in `directory`.
#[pyfunction]
pub(crate) fn newest_checkpoint(py: Python<'_>, directory: PathBuf) -> PyResult<Option<Restored>> {
    catch(|| {
        let record = surefoot_record::Record::open(&directory).map_err(error)?;
        let checkpoint = record.checkpoint().map_err(error)?;
        Ok(checkpoint.map(|checkpoint| restored(py, &checkpoint)))
    })
}

impl Recorder {
    fn new(recorder: surefoot_record::Recorder) -> Self {
        Self {
            directory: recorder.dir().to_owned(),
            recorder: Mutex::new(Some(recorder)),
            begun: Instant::now(),
            digest: StepDigest::default(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn finished() -> PyErr {
    PyRuntimeError::new_err("the run is finished")
}

fn environment(libraries: BTreeMap<String, String>, device: String, threads: usize) -> Environment {
    Environment { libraries, device, threads, ..Environment::detect() }
}

/// The memory at each address.
fn memory<'a>(
    addresses: &'a [usize],
    sizes: &'a [usize],
) -> PyResult<impl Iterator<Item = &'a [u8]>> {
    if addresses.len() != sizes.len() {
        let (addresses, sizes) = (addresses.len(), sizes.len());
        return Err(PyValueError::new_err(format!("{addresses} addresses and {sizes} sizes")));
    }
    Ok(addresses.iter().zip(sizes).map(|(&address, &size)| bytes(address, size)))
}

fn bytes<'a>(address: usize, size: usize) -> &'a [u8] {
    if address == 0 || size == 0 {
        return &[];
    }
    // SAFETY: the Python package passes addresses of contiguous tensors in memory, with their sizes; it
    // holds references to them and the interpreter lock during the call.
    unsafe { std::slice::from_raw_parts(address as *const u8, size) }
}

pub(crate) fn array((name, dtype, shape, address, size): TensorAt) -> PyResult<Array> {
    let unknown = |_| PyValueError::new_err(format!("unknown type `{dtype}` of `{name}`"));
    let dtype: Dtype =
        serde_json::from_value(serde_json::Value::from(dtype.as_str())).map_err(unknown)?;
    let data = Values::Bytes(dtype, bytes(address, size).to_vec());
    Ok(Array::new(name, &shape, data))
}

fn restored(py: Python<'_>, checkpoint: &Checkpoint) -> Restored {
    let tensor = |array: &Array| {
        let bytes = PyBytes::new(py, &array.data.to_bytes()).unbind();
        (array.name.clone(), array.data.dtype().to_string(), array.shape.clone(), bytes)
    };
    let tensors = checkpoint.arrays.iter().map(tensor).collect();
    (checkpoint.step, checkpoint.state.to_string(), tensors)
}
