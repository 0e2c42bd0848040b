//! Files that are written for other programs.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Writes a file as a whole: what was there before stays until all of it is on the disk.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    // A link is followed, and what is there and no plain file, such as a pipe, is written to as it is.
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
        // The error that counts is the first one.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Writes a file, and waits until the disk has it: some disks say only then that they are full.
fn write_through(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(file)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_if_not_all_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trials.csv");
        fs::write(&file, "precious").unwrap();
        // A folder in the way of what is being written.
        fs::create_dir(folder.path().join("trials.csv.partial")).unwrap();
        let failure = write(&file, b"new").unwrap_err();
        assert!(failure.message().contains("trials.csv"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    }

    #[test]
    fn a_file_takes_the_place_of_another_and_nothing_else_is_left() {
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
    fn links_are_followed_and_devices_written_to() {
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
