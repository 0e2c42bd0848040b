//! Atomic output files.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Replaces a file atomically: the old content stays until the new one is on the disk.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    // Links are followed; pipes and devices are written to directly.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let written = if target.exists() && !target.is_file() {
        fs::write(&target, bytes)
    } else {
        replace(&target, bytes)
    };
    written.map_err(|error| Failure::broken(format!("cannot write {}: {error}", file.display())))
}

fn replace(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = target.with_file_name(name);
    let written = write_through(&partial, bytes).and_then(|()| fs::rename(&partial, target));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Writes and syncs a file: some disks report that they are full only then.
fn write_through(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(file)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_keeps_the_old_content() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trials.csv");
        fs::write(&file, "precious").unwrap();
        // A folder blocks the temporary file.
        fs::create_dir(folder.path().join("trials.csv.partial")).unwrap();
        let failure = write(&file, b"new").unwrap_err();
        assert!(failure.message().contains("trials.csv"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    }

    #[test]
    fn a_write_replaces_the_file_and_leaves_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trials.csv");
        for text in ["first", "second"] {
            write(&file, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    #[cfg(unix)]
    fn links_are_followed_and_devices_are_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["trials.csv", "link.csv"].map(|name| folder.path().join(name));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        write(Path::new("/dev/null"), b"new").unwrap();
        assert!(write(Path::new("/dev/full"), b"new").is_err());
    }
}
