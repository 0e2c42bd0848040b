//! Trains a plan with Burn, every layer watched, the same bits every time.
//!
//! The model is data: a plan's layers are compiled into a list of stages, each with its forward
//! pass and its gradient written out over Burn's tensors, generic in the device. Parameters, their
//! gradients and the optimizer's memory are flat arrays, so that watching, summing over shards,
//! digests and checkpoints are single passes over memory.

mod activation;
mod compute;
mod crew;
mod device;
mod error;
mod initialize;
mod kernel;
mod layer;
mod loss;
mod metric;
mod network;
mod optimizer;
mod parameters;
#[cfg(test)]
mod parity;
mod run;
mod schedule;
mod shard;
mod tensor;
mod watch;

pub use compute::Compute;
pub use device::Device;
#[doc(hidden)]
pub use device::no_cuda;
pub use error::TrainError;
pub use metric::metric_name;
pub use network::Network;
pub use parameters::Parameters;
pub use run::{Outline, Progress, Report, Run, Watcher};
pub use watch::Rhythm;

/// Burn's CPU backend.
pub use burn_flex::Flex as Cpu;

/// Burn's CUDA backend.
#[cfg(feature = "cuda")]
pub use burn_cuda::Cuda;

/// The GPU of that number.
#[cfg(feature = "cuda")]
#[doc(hidden)]
pub fn cuda_device(index: usize) -> <Cuda as burn_backend::BackendTypes>::Device {
    burn_cuda::CudaDevice::new(index).into()
}
