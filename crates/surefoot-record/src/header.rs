//! Facts of a run that are fixed before its first step: `header.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use surefoot_diagnose::Facts;

use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::step_digest::Part;

/// The version of the record's format that this crate writes.
pub const FORMAT: u32 = 2;

/// The static facts of a run: what a reader needs to make sense of the observations without the
/// plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Facts for the detectors.
    #[serde(flatten)]
    pub facts: Facts,
    /// The layers are observed at every n-th step; 0 is never.
    pub observe_every: u64,
    /// Parts of a step's digest, in order.
    pub digest_parts: Vec<Part>,
    /// Environment in which the run was started.
    pub environment: Environment,
    /// Entries added by other crates.
    #[serde(flatten)]
    pub more: serde_json::Map<String, serde_json::Value>,
}

/// Software and hardware that executed a run. Equal environments are expected to produce equal
/// digests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The version of surefoot.
    pub surefoot: String,
    /// The operating system and processor architecture: `linux-x86_64`.
    pub platform: String,
    /// The instruction sets of the processor that change how numbers are computed.
    pub cpu_features: Vec<String>,
    /// Number of compute threads.
    pub threads: usize,
    /// Number of workers that share a batch.
    pub workers: usize,
    /// Device as on the command line: `cpu`, `cuda:0`.
    pub device: String,
    /// The digest of the data that is trained on.
    pub data: Option<Digest>,
    /// The versions of the libraries that compute.
    pub libraries: BTreeMap<String, String>,
}

impl Environment {
    /// This process on this machine, with one worker on the CPU and no data yet.
    pub fn detect() -> Environment {
        Environment {
            surefoot: env!("CARGO_PKG_VERSION").to_owned(),
            platform: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
            cpu_features: cpu_features(),
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            workers: 1,
            device: "cpu".to_owned(),
            data: None,
            libraries: BTreeMap::new(),
        }
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn cpu_features() -> Vec<String> {
    let found = [
        ("sse4.2", is_x86_feature_detected!("sse4.2")),
        ("avx", is_x86_feature_detected!("avx")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("f16c", is_x86_feature_detected!("f16c")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
        ("avx512vl", is_x86_feature_detected!("avx512vl")),
    ];
    let names = found.iter().filter(|(_, there)| *there);
    names.map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn cpu_features() -> Vec<String> {
    Vec::new()
}

/// `header.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredHeader {
    pub(crate) format: u32,
    pub(crate) plan_digest: Digest,
    #[serde(flatten)]
    pub(crate) header: Header,
}

impl StoredHeader {
    /// An error if the record is of an older format: it can be read, but its digests and
    /// checkpoints are not those of today.
    pub(crate) fn check_current(&self, path: &Path) -> Result<()> {
        if self.format >= FORMAT {
            return Ok(());
        }
        Err(Error::Older { path: path.to_owned(), found: self.format, known: FORMAT })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_diagnose::LayerInfo;

    #[test]
    fn a_header_survives_json_with_what_it_does_not_know() {
        let mut header = Header {
            facts: Facts {
                layers: vec![LayerInfo {
                    name: "dense_1".to_owned(),
                    kind: surefoot_diagnose::LayerKind::Dense,
                    parameters: 30,
                    units: Some(10),
                    activation: Some(surefoot_diagnose::Activation::Relu),
                    output_shape: vec![10],
                    frozen: false,
                }],
                epochs: Some(50),
                chance: Some(0.5),
                ..Facts::default()
            },
            environment: Environment::detect(),
            ..Header::default()
        };
        header.more.insert("later".to_owned(), 7.into());
        let stored = StoredHeader { format: FORMAT, plan_digest: Digest(5), header };
        let text = serde_json::to_string_pretty(&stored).unwrap();
        assert_eq!(serde_json::from_str::<StoredHeader>(&text).unwrap(), stored);
    }

    #[test]
    fn the_environment_names_the_version_and_the_platform() {
        let environment = Environment::detect();
        assert_eq!(environment.surefoot, env!("CARGO_PKG_VERSION"));
        assert!(environment.platform.contains('-'));
        assert!(environment.threads >= 1);
    }
}
