//! Trains a plan with Burn, every layer watched, the same bits every time.
//!
//! The model is data: a plan's layers are compiled into a list of stages, each with its forward
//! pass and its gradient written out over Burn's tensors, generic in the device. Parameters, their
//! gradients and the optimizer's memory are flat arrays, so that watching, summing over shards,
//! digests and checkpoints are single passes over memory.

mod activation;
mod compute;
mod device;
mod error;
mod facts;
mod initialize;
mod journal;
mod kernel;
mod layer;
mod loss;
mod metric;
mod network;
mod optimizer;
mod parameters;
#[cfg(test)]
mod parity;
mod repair;
mod run;
mod schedule;
mod shard;
mod tensor;
mod watch;
mod worker_pool;

pub use compute::Compute;
pub use device::Device;
#[doc(hidden)]
pub use device::no_cuda;
pub use error::TrainError;
pub use journal::{Journal, Unrecorded};
pub use metric::metric_name;
pub use network::Network;
pub use parameters::Parameters;
pub use repair::{Clerk, Delivered, Patient, Repaired, repair};
pub use run::capsule::{Origin, Repeated, repeat};
pub use run::state::{CHECKPOINT_MEMBERS, Member};
pub use run::{End, Flow, Outline, Progress, Report, Run, Watcher};
pub use watch::Rhythm;

/// Burn's CPU backend.
pub use burn_flex::Flex as Cpu;

/// Burn's CUDA backend.
#[cfg(feature = "cuda")]
pub use burn_cuda::Cuda;

/// The libraries whose version decides the bits of a run, with their versions.
pub const LIBRARIES: [(&str, &str); 6] = [
    ("burn", "0.22.1"),
    ("cubecl", "0.11.3"),
    ("gemm", "0.19.0"),
    ("libm", "0.2.16"),
    ("pulp", "0.22.3"),
    // Not a library, and it decides as much.
    ("rustc", env!("SUREFOOT_RUSTC")),
];

/// The GPU of that number, if it is there and answers.
#[cfg(feature = "cuda")]
#[doc(hidden)]
pub fn cuda_device(
    index: usize,
) -> Result<<Cuda as burn_backend::BackendTypes>::Device, TrainError> {
    let device = burn_cuda::CudaDevice::new(index).into();
    // Burn panics where there is no driver or no such GPU, and only at the first operation.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let answer = std::panic::catch_unwind(|| {
        tensor::Tensor::<Cuda>::from_values(vec![1.0], &[1], &device).to_vec()
    });
    std::panic::set_hook(hook);
    match answer {
        Ok(values) if values == [1.0] => Ok(device),
        _ => Err(TrainError::NoDevice(format!(
            "cuda:{index} does not answer: is there such a GPU, and NVIDIA's driver and NVRTC?"
        ))),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_libraries_have_the_versions_that_are_built() {
        let manifest = include_str!("../Cargo.toml");
        for (name, version) in super::LIBRARIES {
            if name == "rustc" {
                assert!(version.starts_with("1."), "{version}");
                continue;
            }
            let mut lines = manifest.lines().filter(|line| line.starts_with(name));
            let pinned = format!("\"={version}\"");
            assert!(
                lines.clone().count() > 0 && lines.all(|line| line.contains(&pinned)),
                "{name} is not {version}"
            );
        }
    }
}
