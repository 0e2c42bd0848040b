//! A file that only grows.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A file that only grows, by whole pieces: what of a piece was written before a failure is cut off
/// again.
#[derive(Debug)]
pub(crate) struct Appender {
    path: PathBuf,
    file: File,
    length: u64,
    /// True if appended data may not be durable yet.
    dirty: bool,
    /// Length at which the disk is full, in tests.
    #[cfg(test)]
    pub(crate) limit: Option<u64>,
}

impl Appender {
    /// Creates an empty file or truncates an existing one.
    pub(crate) fn create(path: &Path) -> Result<Appender> {
        Appender::open(path, 0)
    }

    /// Goes on with a file after its first `length` bytes; the rest is cut off.
    pub(crate) fn open(path: &Path, length: u64) -> Result<Appender> {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(path).map_err(Error::io("open", path))?;
        let found = file.metadata().map_err(Error::io("read", path))?.len();
        if found < length {
            return Err(Error::damaged(path, "its end is missing"));
        }
        if found > length {
            file.set_len(length).map_err(Error::io("shorten", path))?;
        }
        Ok(Appender {
            path: path.to_owned(),
            file,
            length,
            dirty: found > length,
            #[cfg(test)]
            limit: None,
        })
    }

    /// Gives the file another name.
    pub(crate) fn rename(&mut self, path: &Path) -> Result<()> {
        std::fs::rename(&self.path, path).map_err(Error::io("create", path))?;
        self.path = path.to_owned();
        Ok(())
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Adds a piece at the end.
    pub(crate) fn append(&mut self, piece: &[u8]) -> Result<()> {
        self.dirty = true;
        if let Err(error) = self.write(piece) {
            // If even this fails, readers stop at the torn piece by themselves.
            let _ = self.file.set_len(self.length);
            return Err(Error::io("write", &self.path)(error));
        }
        self.length += piece.len() as u64;
        Ok(())
    }

    /// Makes the file durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.dirty {
            let synced = self.file.sync_data();
            synced.map_err(Error::io("write", &self.path))?;
            self.dirty = false;
        }
        Ok(())
    }

    fn write(&mut self, piece: &[u8]) -> std::io::Result<()> {
        #[cfg(test)]
        if let Some(limit) = self.limit
            && self.length + piece.len() as u64 > limit
        {
            let fits = limit.saturating_sub(self.length) as usize;
            self.file.write_all(&piece[..fits])?;
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.file.write_all(piece)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_piece_that_does_not_fit_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut file = Appender::create(&path).unwrap();
        file.append(b"whole").unwrap();
        file.limit = Some(8);
        let error = file.append(b"too long").unwrap_err().to_string();
        assert!(error.contains("file: no storage space"), "{error}");
        assert!(error.contains("free some space"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        file.append(b"fit").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"wholefit");
        assert_eq!(file.length(), 8);
    }

    #[test]
    fn what_comes_after_the_wanted_length_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, b"0123456789").unwrap();
        let mut file = Appender::open(&path, 4).unwrap();
        file.append(b"x").unwrap();
        file.sync().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"0123x");
        assert!(Appender::open(&path, 6).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_named() {
        let mut file = Appender {
            path: "/dev/full".into(),
            file: File::options().write(true).open("/dev/full").unwrap(),
            length: 0,
            dirty: false,
            limit: None,
        };
        let error = file.append(b"x").unwrap_err().to_string();
        assert!(error.contains("cannot write /dev/full"), "{error}");
        assert!(error.contains("free some space"), "{error}");
    }
}
