//! Steps of a PyTorch loop on the CPU at which no layer is observed.
//!
//! Such a step calls no operation of PyTorch: the loss and one small gradient are read through their
//! addresses. Several short steps are delivered to the detectors together, because the code of the
//! detectors leaves the caches of the processor in each step, and loading it again takes longer than
//! running it.

use crate::tensor::{Format, Tensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyFloat;

/// Loss, metric and learning rate of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepReport {
    pub(crate) loss: f64,
    pub(crate) metric: Option<f64>,
    /// 1-based epoch, if the caller knows it.
    pub(crate) epoch: Option<u64>,
    pub(crate) learning_rate: Option<f64>,
}

/// Result of [`Quick::take`].
pub(crate) enum Taken {
    /// The caller has to take the batch: its loss is NaN or not in the memory of the host.
    No,
    /// The batch is one of several of a step.
    Batch,
    /// The batch ends a step.
    Step,
}

/// Unobserved steps that wait to be delivered.
pub(crate) struct Quick {
    /// Steps in order.
    pub(crate) waiting: Vec<StepReport>,
    /// Last step that is taken; 0 while none is.
    pub(crate) until: u64,
    /// Number of steps that are delivered at a time.
    pub(crate) together: usize,
    optimizer: Option<Py<PyAny>>,
    /// Parameter whose gradient shows NaN in the others, and the number of its values.
    probe: Option<(Py<PyAny>, usize)>,
    reader: Reader,
    /// Losses since the last step.
    losses: Vec<f64>,
    /// True if the optimizer has updated the weights since the last step.
    is_updated: bool,
}

impl Quick {
    pub(crate) fn new(
        py: Python<'_>,
        optimizer: Option<Py<PyAny>>,
        probe: Option<Py<PyAny>>,
    ) -> PyResult<Quick> {
        let count = |it: Py<PyAny>| {
            let values = it.bind(py).call_method0("numel")?.extract()?;
            Ok::<_, PyErr>((it, values))
        };
        Ok(Quick {
            waiting: Vec::new(),
            until: 0,
            together: 1,
            optimizer,
            probe: probe.map(count).transpose()?,
            reader: Reader::new(py)?,
            losses: Vec::new(),
            is_updated: false,
        })
    }

    /// Starts quick steps up to step `until`.
    pub(crate) fn start(&mut self, until: u64, together: usize) {
        (self.until, self.together, self.is_updated) = (until, together, false);
    }

    /// Notes an update of the weights. Returns false if the gradient of the probe is not finite, or
    /// cannot be read.
    pub(crate) fn update(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.is_updated = true;
        let Some((probe, len)) = &self.probe else { return Ok(true) };
        let gradient = probe.bind(py).getattr(intern!(py, "grad"))?;
        if gradient.is_none() {
            return Ok(true);
        }
        Ok(self.reader.tensor(&gradient, *len)?.is_some_and(Tensor::is_finite))
    }

    /// L2 norm of the gradient of the probe; `None` if it has none that can be read.
    pub(crate) fn probe_norm(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let Some((probe, len)) = &self.probe else { return Ok(None) };
        let gradient = probe.bind(py).getattr(intern!(py, "grad"))?;
        Ok(self.reader.tensor(&gradient, *len)?.map(|it| it.moments().finish().l2))
    }

    /// Takes the loss of a batch, and ends the step if the optimizer has updated the weights.
    pub(crate) fn take(
        &mut self,
        loss: &Bound<'_, PyAny>,
        metric: Option<&Bound<'_, PyAny>>,
        epoch: Option<u64>,
    ) -> PyResult<Taken> {
        let py = loss.py();
        let Some(loss) = self.reader.number(loss)?.filter(|loss| loss.is_finite()) else {
            return Ok(Taken::No);
        };
        let metric = match metric {
            None => None,
            Some(metric) => match self.reader.number(metric)? {
                None => return Ok(Taken::No),
                value => value,
            },
        };
        if self.optimizer.is_some() && !std::mem::take(&mut self.is_updated) {
            self.losses.push(loss);
            return Ok(Taken::Batch);
        }
        let batches = self.losses.len() as f64 + 1.0;
        let loss = (self.losses.drain(..).sum::<f64>() + loss) / batches;
        let learning_rate = self.learning_rate(py)?;
        self.waiting.push(StepReport { loss, metric, epoch, learning_rate });
        Ok(Taken::Step)
    }

    /// Ends quick steps. Returns the losses since the last step, and whether the weights were updated
    /// after it.
    pub(crate) fn stop(&mut self) -> (Vec<f64>, bool) {
        self.until = 0;
        (std::mem::take(&mut self.losses), std::mem::take(&mut self.is_updated))
    }

    /// Learning rate of the first parameter group.
    fn learning_rate(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let Some(optimizer) = &self.optimizer else { return Ok(None) };
        let groups = optimizer.bind(py).getattr(intern!(py, "param_groups"))?;
        groups.get_item(0)?.get_item(intern!(py, "lr"))?.extract().map(Some)
    }
}

/// Reads tensors without calling an operation of PyTorch.
struct Reader {
    tensor: Py<PyAny>,
    formats: Vec<(Py<PyAny>, Format)>,
}

impl Reader {
    fn new(py: Python<'_>) -> PyResult<Reader> {
        let torch = py.import("torch")?;
        let names = ["float32", "bfloat16", "float16", "float64"];
        let format = |name: &str| Ok((torch.getattr(name)?.unbind(), Format::parse(name)?));
        Ok(Reader {
            tensor: torch.getattr("Tensor")?.unbind(),
            formats: names.into_iter().map(format).collect::<PyResult<_>>()?,
        })
    }

    /// The value of a number or of a tensor with one value in the memory of the host.
    fn number(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        if value.get_type().is(&self.tensor) {
            return Ok(self.tensor(value, 1)?.map(Tensor::first));
        }
        if let Ok(number) = value.cast_exact::<PyFloat>() {
            return Ok(Some(number.value()));
        }
        if value.is_instance(self.tensor.bind(value.py()))? {
            return Ok(None);
        }
        value.extract().map(Some)
    }

    /// A tensor of `len` values, if it is dense and in the memory of the host.
    fn tensor(&self, tensor: &Bound<'_, PyAny>, len: usize) -> PyResult<Option<Tensor>> {
        let py = tensor.py();
        if !tensor.get_type().is(&self.tensor)
            || !tensor.getattr(intern!(py, "is_cpu"))?.is_truthy()?
            || tensor.call_method0(intern!(py, "numel"))?.extract::<usize>()? != len
            || !tensor.call_method0(intern!(py, "is_contiguous"))?.is_truthy()?
        {
            return Ok(None);
        }
        let dtype = tensor.getattr(intern!(py, "dtype"))?;
        let Some((_, format)) = self.formats.iter().find(|(it, _)| dtype.is(it)) else {
            return Ok(None);
        };
        let address = tensor.call_method0(intern!(py, "data_ptr"))?.extract()?;
        Ok(Some(Tensor { address, len, format: *format }))
    }
}
