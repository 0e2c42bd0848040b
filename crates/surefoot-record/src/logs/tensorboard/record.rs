//! The frame of an event file: records with their length and two checksums.
//!
//! A record is the length (8 bytes), its checksum (4), the data, its checksum (4), all
//! little-endian. The checksum is CRC-32C, rotated and shifted ("masked").

use super::event::Event;
use crate::logs::error::Error;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

const HEAD: usize = 12;

/// The events of a file, in order.
#[derive(Debug)]
pub(crate) struct Records {
    path: PathBuf,
    reader: BufReader<File>,
    /// Start of the next record.
    offset: u64,
    /// Length of the file when it was opened.
    length: u64,
    data: Vec<u8>,
}

impl Records {
    pub(crate) fn open(path: &Path) -> Result<Records, Error> {
        let file = File::open(path).map_err(Error::io(path))?;
        let length = file.metadata().map_err(Error::io(path))?.len();
        Ok(Records {
            path: path.to_owned(),
            reader: BufReader::new(file),
            offset: 0,
            length,
            data: Vec::new(),
        })
    }

    /// Returns the next event; `None` at the end or at a record that is still being written.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, Error> {
        let mut head = [0; HEAD];
        if !self.fill(&mut head)? {
            return Ok(None);
        }
        let Some(size) = size_of(&head) else {
            return Err(self.damaged("the length of a record and its checksum do not agree"));
        };
        let rest = self.length.saturating_sub(self.offset + HEAD as u64);
        if size.saturating_add(4) > rest {
            return Ok(None);
        }
        let mut data = std::mem::take(&mut self.data);
        data.resize(size as usize + 4, 0);
        if !self.fill(&mut data)? {
            return Ok(None);
        }
        let (content, checksum) = data.split_at(size as usize);
        if checksum != masked(content).to_le_bytes() {
            return Err(self.damaged("a record and its checksum do not agree"));
        }
        let Some(event) = Event::decode(content) else {
            return Err(self.damaged("a record is not an event"));
        };
        self.offset += HEAD as u64 + size + 4;
        self.data = data;
        Ok(Some(event))
    }

    /// Fills the buffer; returns false if the file ends first.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, Error> {
        match self.reader.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(Error::io(&self.path)(error)),
        }
    }

    fn damaged(&self, reason: &str) -> Error {
        Error::Damaged { path: self.path.clone(), offset: self.offset, reason: reason.to_owned() }
    }
}

/// Returns true if a file contains events, by its name or its first bytes.
pub(crate) fn is_event_file(path: &Path) -> Result<bool, Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.contains("tfevents") {
        return Ok(true);
    }
    let mut file = File::open(path).map_err(Error::io(path))?;
    let mut head = [0; HEAD];
    match file.read_exact(&mut head) {
        Ok(()) => Ok(size_of(&head).is_some()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(Error::io(path)(error)),
    }
}

/// The length of the data, if it has its checksum.
fn size_of(head: &[u8; HEAD]) -> Option<u64> {
    let (size, checksum) = head.split_first_chunk::<8>()?;
    (checksum == masked(size).to_le_bytes()).then(|| u64::from_le_bytes(*size))
}

/// The checksum as TensorFlow writes it, so that one of data with checksums in it is as good.
fn masked(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}
