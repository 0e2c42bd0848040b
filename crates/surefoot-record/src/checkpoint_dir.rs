//! The checkpoints of a run: `checkpoints/step-000000123.ckpt`.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::checkpoint::{Checkpoint, Marks, Stored, read_stored, write_stored};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::layout::remove;

/// The file of a step's checkpoint.
pub(crate) fn path_of(dir: &Path, step: u64) -> PathBuf {
    dir.join(format!("step-{step:09}.ckpt"))
}

/// Writes a checkpoint and removes all but the newest `keep`.
pub(crate) fn write(
    dir: &Path,
    checkpoint: &Checkpoint,
    plan_digest: Digest,
    marks: Marks,
    keep: usize,
) -> Result<()> {
    fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
    let path = path_of(dir, checkpoint.step);
    write_stored(&path, checkpoint, plan_digest, marks)?;
    for (_, path) in list(dir)?.into_iter().skip(keep) {
        remove(&path)?;
    }
    Ok(())
}

/// The checkpoint files, newest first. Other files, such as those being written, are left out.
pub(crate) fn list(dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("read", dir)(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::io("read", dir))?.path();
        let name = path.file_name().and_then(OsStr::to_str);
        let number = name
            .and_then(|name| name.strip_prefix("step-")?.strip_suffix(".ckpt"))
            .and_then(|number| number.parse().ok());
        if let Some(step) = number {
            files.push((step, path));
        }
    }
    files.sort_unstable_by(|a, b| b.cmp(a));
    Ok(files)
}

/// Returns the newest valid checkpoint that `usable` accepts; `None` if there are no checkpoints.
///
/// Only damaged files are skipped. A file that cannot be opened or has a newer version may be
/// usable later, and continuing from an older state would lose work.
pub(crate) fn newest<T>(
    dir: &Path,
    mut usable: impl FnMut(Stored) -> Result<T>,
) -> Result<Option<T>> {
    let mut first_failure = None;
    for (_, path) in list(dir)? {
        match read_stored(&path).and_then(&mut usable) {
            Ok(found) => return Ok(Some(found)),
            Err(error @ Error::Damaged { .. }) => {
                first_failure.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match first_failure {
        None => Ok(None),
        Some(newest) => {
            Err(Error::NoUsableCheckpoint { path: dir.to_owned(), newest: Box::new(newest) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::tests::sample;

    fn write_steps(dir: &Path, steps: &[u64], keep: usize) {
        for &step in steps {
            write(dir, &sample(step), Digest(0), Marks::default(), keep).unwrap();
        }
    }

    fn newest_step(dir: &Path) -> Result<Option<u64>> {
        newest(dir, |stored| Ok(stored.checkpoint.step))
    }

    #[test]
    fn the_newest_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(newest_step(&dir.path().join("none")).unwrap(), None);
        write_steps(dir.path(), &[5, 10, 15, 20], 2);
        let steps: Vec<u64> = list(dir.path()).unwrap().iter().map(|f| f.0).collect();
        assert_eq!(steps, [20, 15]);
        assert!(dir.path().join("step-000000020.ckpt").exists());
        assert_eq!(newest_step(dir.path()).unwrap(), Some(20));
    }

    #[test]
    fn a_damaged_newest_falls_back_to_the_previous() {
        let dir = tempfile::tempdir().unwrap();
        write_steps(dir.path(), &[5, 10], 2);
        let path = path_of(dir.path(), 10);
        let whole = fs::read(&path).unwrap();
        for cut in (0..whole.len()).step_by(7) {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(newest_step(dir.path()).unwrap(), Some(5), "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut torn = whole.clone();
            torn[at] ^= 0x55;
            fs::write(&path, torn).unwrap();
            assert_eq!(newest_step(dir.path()).unwrap(), Some(5), "changed at {at}");
        }
    }

    #[test]
    fn temporary_files_are_not_checkpoints() {
        let dir = tempfile::tempdir().unwrap();
        write_steps(dir.path(), &[5], 2);
        for name in [".step-000000009.ckpt.tmp", "step-9.ckpt~", "step-.ckpt"] {
            fs::write(dir.path().join(name), "torn").unwrap();
        }
        assert_eq!(newest_step(dir.path()).unwrap(), Some(5));
    }

    #[test]
    fn only_damaged_checkpoints_are_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(path_of(dir.path(), 3), "torn").unwrap();
        let error = newest_step(dir.path()).unwrap_err().to_string();
        assert!(error.contains("no checkpoint in"), "{error}");
        assert!(error.contains("it is not a checkpoint"), "{error}");
    }

    #[test]
    fn a_newer_version_is_not_skipped() {
        let dir = tempfile::tempdir().unwrap();
        write_steps(dir.path(), &[5, 10], 2);
        let newer = crate::tensor_file::Format { kind: "checkpoint", version: 9 };
        newer.write(&path_of(dir.path(), 10), &serde_json::json!({}), &[]).unwrap();
        let error = newest_step(dir.path()).unwrap_err();
        assert!(matches!(error, Error::Newer { found: 9, .. }));
    }
}
