//! Trains plans: observed, diagnosed, repaired, recorded, and bit-identical every time.
//!
//! [`Trainer`] is the whole pipeline; everything that follows a run is a [`Callback`]. A
//! [`TrainingRun`] is the training loop alone.
//!
//! A plan's layers are compiled into a list of stages with hand-written gradients, generic over the
//! device: [`Cpu`], or an NVIDIA GPU through Burn with the feature `cuda`. Parameters, gradients and
//! optimizer state are flat arrays, so observing, summing over shards, digests and checkpoints are
//! single passes over memory.

#[cfg(any(feature = "cuda", feature = "test-burn"))]
mod burn;
mod callback;
mod compute;
mod cpu;
mod device;
mod error;
mod export;
mod facts;
mod initialize;
mod kernel;
mod layer;
mod loss;
mod memory;
mod metric;
mod network;
mod observe;
mod optimizer;
mod parameters;
#[cfg(test)]
mod parity;
mod predict;
mod repair;
mod run;
mod schedule;
mod shard;
mod tensor;
mod thresholds;
mod trainer;
mod worker_pool;

pub use callback::{
    AttemptEvent, Callback, DiagnosisCallback, OnProblem, RecordCallback, RunContext, Step,
    StopReason, StopSignal,
};
pub use compute::Compute;
pub use cpu::Cpu;
pub use device::Device;
#[doc(hidden)]
pub use device::no_cuda;
pub use error::TrainError;
pub use memory::MemoryNeeds;
pub use metric::metric_name;
pub use network::Network;
pub use observe::ObserveSchedule;
pub use parameters::Parameters;
pub use predict::{Prediction, Predictions, Predictor};
pub use repair::{DeliveredAttempt, PlanSubject, Proposal, RepairResult};
pub use run::capsule::{Origin, Repeated, repeat};
pub use run::state::{CHECKPOINT_MEMBERS, Member};
pub use run::{Outline, Progress, TrainingResult, TrainingRun, model_digest};
pub use thresholds::{rules, thresholds};
pub use trainer::{
    Approval, PreparedPlan, RepairMode, TrainSummary, Trainer, current_environment,
    environment_differences, environment_warnings, is_plan_of, plan_folder, recorded_document,
};

/// NVIDIA GPUs.
#[cfg(feature = "cuda")]
pub type Cuda = burn::Burn<burn_cuda::Cuda>;

/// Libraries whose versions influence the bits of a run on any device.
const LIBRARIES: [(&str, &str); 4] = [
    ("gemm", "0.19.0"),
    ("libm", "0.2.16"),
    ("pulp", "0.22.3"),
    // The compiler has the same influence.
    ("rustc", env!("SUREFOOT_RUSTC")),
];

/// Libraries whose versions influence the bits of a run on a GPU.
const GPU_LIBRARIES: [(&str, &str); 2] = [("burn", "0.22.1"), ("cubecl", "0.11.3")];

/// The GPU with this index, if it responds.
#[cfg(feature = "cuda")]
#[doc(hidden)]
pub fn cuda_device(index: usize) -> Result<<Cuda as Compute>::Device, TrainError> {
    let device = burn_cuda::CudaDevice::new(index).into();
    // Burn panics at the first operation if there is no driver or no such GPU.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let answer = std::panic::catch_unwind(|| {
        tensor::Tensor::<Cuda>::from_values(vec![1.0], &[1], &device).to_vec()
    });
    std::panic::set_hook(hook);
    match answer {
        Ok(values) if values == [1.0] => Ok(device),
        _ => Err(TrainError::NoDevice(format!(
            "cuda:{index} does not respond; check that the GPU exists and that NVIDIA's driver and NVRTC are installed"
        ))),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn library_versions_match_the_manifest() {
        let manifest = include_str!("../Cargo.toml");
        for (name, version) in super::LIBRARIES.into_iter().chain(super::GPU_LIBRARIES) {
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
