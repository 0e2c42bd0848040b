//! The device to train on, chosen at run time.

use crate::error::TrainError;
use std::fmt;
use std::str::FromStr;

/// A device: `cpu`, `cuda` or `cuda:1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The CPU.
    #[default]
    Cpu,
    /// An NVIDIA GPU by index.
    Cuda(usize),
}

impl FromStr for Device {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name.split_once(':') {
            None if name == "cpu" => Ok(Self::Cpu),
            None if name == "cuda" => Ok(Self::Cuda(0)),
            Some(("cuda", index)) => {
                index.parse().map(Self::Cuda).map_err(|_| format!("`{index}` is not a GPU index"))
            }
            _ => Err(format!("unknown device `{name}`; use cpu, cuda or cuda:N")),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

/// Runs `$body` with `$backend` and `$handle` bound to those of `$device`.
///
/// A macro because the body is compiled once for each backend.
#[macro_export]
macro_rules! on_device {
    ($device:expr, |$backend:ident, $handle:ident| $body:expr) => {
        match $device {
            $crate::Device::Cpu => {
                type $backend = $crate::Cpu;
                let $handle = Default::default();
                $body
            }
            $crate::Device::Cuda(index) => $crate::on_cuda!(index, |$backend, $handle| $body),
        }
    };
}

/// The GPU's half of [`on_device!`].
#[cfg(feature = "cuda")]
#[macro_export]
macro_rules! on_cuda {
    ($index:expr, |$backend:ident, $handle:ident| $body:expr) => {
        match $crate::cuda_device($index) {
            Ok($handle) => {
                type $backend = $crate::Cuda;
                $body
            }
            Err(error) => Err(error.into()),
        }
    };
}

/// The GPU's half of [`on_device!`], in a build without it.
#[cfg(not(feature = "cuda"))]
#[macro_export]
macro_rules! on_cuda {
    ($index:expr, |$backend:ident, $handle:ident| $body:expr) => {
        Err($crate::no_cuda($index).into())
    };
}

/// The error of a build without GPU support.
#[doc(hidden)]
pub fn no_cuda(index: usize) -> TrainError {
    TrainError::NoDevice(format!(
        "cuda:{index} is not available: this build has no GPU support; \
         build it with `cargo build --release --features cuda`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_round_trip() {
        for device in [Device::Cpu, Device::Cuda(0), Device::Cuda(3)] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        assert!("gpu".parse::<Device>().is_err());
        assert!("cuda:x".parse::<Device>().is_err());
    }
}
