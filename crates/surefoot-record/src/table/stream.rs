//! The live file: an append-only Arrow IPC stream.
//!
//! pyarrow, polars and DuckDB read it as a stream. Each batch carries a checksum in the metadata of
//! its message, so leftovers of a crash are detected, and the stream has no end marker.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use super::flat::{Table, Value, Writer};
use super::{Batch, Column, Data, Field, Kind, Schema};
use crate::array::le_bytes;
use crate::error::{Error, Result};

// Message.fbs and Schema.fbs of the Arrow format.
const CONTINUATION: [u8; 4] = [0xff; 4];
const VERSION_5: i16 = 4;
const SCHEMA: u8 = 1;
const DICTIONARY_BATCH: u8 = 2;
const RECORD_BATCH: u8 = 3;
const TYPE_INT: u8 = 2;
const TYPE_FLOAT: u8 = 3;
const TYPE_UTF8: u8 = 5;
const DOUBLE: i16 = 2;
/// The key of a batch's checksum in the metadata of its message.
const CHECKSUM_KEY: &str = "xxh3";

/// Start of a stream: the schema and the dictionaries.
pub(crate) fn preamble(schema: &Schema) -> Vec<u8> {
    let mut out = Vec::new();
    frame(&mut out, schema_message(schema), &[]);
    for (id, field) in schema.fields.iter().enumerate() {
        if let Kind::Text(texts) = &field.kind {
            let (message, body) = dictionary_message(id as i64, texts);
            frame(&mut out, message, &body);
        }
    }
    out
}

/// Adds a batch to what is to be appended to a stream.
pub(crate) fn encode(out: &mut Vec<u8>, batch: &Batch) {
    let mut body = Vec::with_capacity(body_length(batch.rows, &batch.columns));
    let mut nodes = Vec::with_capacity(batch.columns.len());
    let mut buffers = Vec::with_capacity(2 * batch.columns.len());
    for column in &batch.columns {
        let nulls = match &column.valid {
            Some(valid) => valid.iter().filter(|&&there| !there).count(),
            None => 0,
        };
        nodes.push((batch.rows as i64, nulls as i64));
        buffers.push(put(&mut body, |body| {
            if let Some(valid) = &column.valid {
                put_bits(body, valid);
            }
        }));
        buffers.push(put(&mut body, |body| match &column.data {
            Data::Int(values) => body.extend_from_slice(&le_bytes(values, i64::to_le_bytes)),
            Data::Float(values) => body.extend_from_slice(&le_bytes(values, f64::to_le_bytes)),
            Data::Text(values) => body.extend_from_slice(&le_bytes(values, i32::to_le_bytes)),
        }));
    }
    let checksum = XxHash3_64::oneshot_with_seed(batch.rows as u64, &body);

    let (mut w, root) = Writer::new();
    let [_, _, header, _, metadata] = w.table(root, message(RECORD_BATCH, body.len(), true));
    let [_, node_vector, buffer_vector] =
        w.table(header, [Value::I64(batch.rows as i64), Value::Offset, Value::Offset]);
    w.pairs(node_vector, &nodes);
    w.pairs(buffer_vector, &buffers);
    for pair in w.vector(metadata, 1) {
        let [key, value] = w.table(pair, [Value::Offset; 2]);
        w.text(key, CHECKSUM_KEY);
        w.text(value, &format!("{checksum:016x}"));
    }
    frame(out, w.finish(), &body);
}

/// The fields of a message: version, kind of header, header, length of the body, metadata.
fn message(kind: u8, body: usize, metadata: bool) -> [Value; 5] {
    [
        Value::I16(VERSION_5),
        Value::U8(kind),
        Value::Offset,
        Value::I64(body as i64),
        if metadata { Value::Offset } else { Value::Absent },
    ]
}

fn schema_message(schema: &Schema) -> Vec<u8> {
    let (mut w, root) = Writer::new();
    let [_, _, header, _, _] = w.table(root, message(SCHEMA, 0, false));
    // Little-endian, which is the default, and the fields.
    let [_, fields] = w.table(header, [Value::I16(0), Value::Offset]);
    let holes = w.vector(fields, schema.fields.len());
    for (id, (hole, field)) in holes.into_iter().zip(&schema.fields).enumerate() {
        let (type_, dictionary) = match field.kind {
            Kind::Int => (TYPE_INT, Value::Absent),
            Kind::Float => (TYPE_FLOAT, Value::Absent),
            Kind::Text(_) => (TYPE_UTF8, Value::Offset),
        };
        let [name, _, _, type_hole, dictionary_hole, children] = w.table(
            hole,
            [
                Value::Offset,
                Value::U8(u8::from(field.nullable)),
                Value::U8(type_),
                Value::Offset,
                dictionary,
                Value::Offset,
            ],
        );
        w.text(name, field.name);
        match field.kind {
            Kind::Int => {
                w.table(type_hole, [Value::I32(64), Value::U8(1)]);
            }
            Kind::Float => {
                w.table(type_hole, [Value::I16(DOUBLE)]);
            }
            Kind::Text(_) => {
                w.table(type_hole, []);
                let [_, index] = w.table(dictionary_hole, [Value::I64(id as i64), Value::Offset]);
                w.table(index, [Value::I32(32), Value::U8(1)]);
            }
        }
        w.vector(children, 0);
    }
    w.finish()
}

fn dictionary_message(id: i64, texts: &[String]) -> (Vec<u8>, Vec<u8>) {
    let mut body = Vec::new();
    let mut end = 0_i32;
    let offsets = std::iter::once(0).chain(texts.iter().map(|text| {
        end += text.len() as i32;
        end
    }));
    let offsets: Vec<i32> = offsets.collect();
    let buffers = [
        (0, 0),
        put(&mut body, |body| {
            body.extend_from_slice(&le_bytes(&offsets, i32::to_le_bytes));
        }),
        put(&mut body, |body| {
            body.extend(texts.iter().flat_map(|text| text.as_bytes()));
        }),
    ];
    let (mut w, root) = Writer::new();
    let [_, _, header, _, _] = w.table(root, message(DICTIONARY_BATCH, body.len(), false));
    let [_, data] = w.table(header, [Value::I64(id), Value::Offset]);
    let rows = texts.len() as i64;
    let [_, nodes, buffer_vector] = w.table(data, [Value::I64(rows), Value::Offset, Value::Offset]);
    w.pairs(nodes, &[(rows, 0)]);
    w.pairs(buffer_vector, &buffers);
    (w.finish(), body)
}

/// Adds a buffer to a body, padded to 8 bytes; returns its offset and length.
fn put(body: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> (i64, i64) {
    let start = body.len();
    write(body);
    let length = body.len() - start;
    body.resize(body.len().next_multiple_of(8), 0);
    (start as i64, length as i64)
}

fn put_bits(body: &mut Vec<u8>, valid: &[bool]) {
    body.extend(valid.chunks(8).map(|eight| {
        let bits = eight.iter().enumerate();
        bits.fold(0, |byte, (i, &there)| byte | (u8::from(there) << i))
    }));
}

fn frame(out: &mut Vec<u8>, mut metadata: Vec<u8>, body: &[u8]) {
    metadata.resize(metadata.len().next_multiple_of(8), 0);
    out.extend(CONTINUATION);
    out.extend((metadata.len() as u32).to_le_bytes());
    out.extend(metadata);
    out.extend(body);
}

fn width(data: &Data) -> usize {
    match data {
        Data::Int(_) | Data::Float(_) => 8,
        Data::Text(_) => 4,
    }
}

fn body_length(rows: usize, columns: &[Column]) -> usize {
    let column = |column: &Column| {
        let bits = column.valid.as_ref().map_or(0, |_| rows.div_ceil(8));
        bits.next_multiple_of(8) + (rows * width(&column.data)).next_multiple_of(8)
    };
    columns.iter().map(column).sum()
}

/// Reads a live file batch by batch, up to the last that is whole.
#[derive(Debug)]
pub(crate) struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    schema: Schema,
    /// Start of the next batch.
    position: u64,
    length: u64,
    ended: bool,
}

impl Reader {
    /// Opens a live file; `None` if it does not exist.
    pub(crate) fn open(path: &Path, schema: Schema) -> Result<Option<Reader>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", path)(error)),
        };
        let length = file.metadata().map_err(Error::io("read", path))?.len();
        Ok(Some(Reader {
            path: path.to_owned(),
            file: BufReader::with_capacity(1 << 16, file),
            schema,
            position: 0,
            length,
            ended: false,
        }))
    }

    /// Continues after the end with batches that were written since. Returns false if the file is
    /// now shorter than what was read.
    pub(crate) fn refresh(&mut self) -> Result<bool> {
        let io = |error| Error::io("read", &self.path)(error);
        self.length = self.file.get_ref().metadata().map_err(io)?.len();
        if self.length < self.position {
            return Ok(false);
        }
        if self.ended {
            self.file.seek(SeekFrom::Start(self.position)).map_err(io)?;
            self.ended = false;
        }
        Ok(true)
    }

    /// Start of the next batch; at the end, the end of the last complete batch.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next batch; `None` at the end, or where what follows is not a whole batch.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Batch>> {
        if self.ended {
            return Ok(None);
        }
        let batch = self.read_batch()?;
        self.ended = batch.is_none();
        Ok(batch)
    }

    fn read_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            let Some((metadata, body)) = self.read_frame()? else {
                return Ok(None);
            };
            let Some(message) = Table::root(&metadata) else {
                return Ok(None);
            };
            let size = (8 + metadata.len() + body.len()) as u64;
            match message.u8(1) {
                // A batch whose kind was changed to one of these still has its checksum.
                Some(SCHEMA | DICTIONARY_BATCH) if message.first(4).is_none() => {
                    self.position += size;
                }
                Some(RECORD_BATCH) => {
                    let batch = decode(&self.schema, message, &body);
                    if batch.is_some() {
                        self.position += size;
                    }
                    return Ok(batch);
                }
                _ => return Ok(None),
            }
        }
    }

    /// The metadata and the body of the next message, if they are all there.
    fn read_frame(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let left = self.length - self.position;
        let mut prefix = [0; 8];
        if left < 8 || !self.fill(&mut prefix)? {
            return Ok(None);
        }
        let [marker, length] = [0, 4].map(|at| prefix[at..].first_chunk::<4>().copied());
        let length = u32::from_le_bytes(length.unwrap_or_default()) as u64;
        if marker != Some(CONTINUATION) || length == 0 || length > left - 8 {
            return Ok(None);
        }
        let mut metadata = vec![0; length as usize];
        if !self.fill(&mut metadata)? {
            return Ok(None);
        }
        let body = Table::root(&metadata).map_or(Some(0), |message| message.i64(3));
        let body = match body.map(u64::try_from) {
            Some(Ok(body)) if body <= left - 8 - length => body,
            // A message without a body leaves its length at the default.
            None => 0,
            _ => return Ok(None),
        };
        let mut bytes = vec![0; body as usize];
        Ok(self.fill(&mut bytes)?.then_some((metadata, bytes)))
    }

    /// Fills the buffer; returns false if the file ends first.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<bool> {
        match self.file.read_exact(bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(Error::io("read", &self.path)(error)),
        }
    }
}

/// The rows of a message, if they are what was written.
fn decode(schema: &Schema, message: Table<'_>, body: &[u8]) -> Option<Batch> {
    let rows = usize::try_from(message.table(2)?.i64(0)?).ok()?;
    let checksum = u64::from_str_radix(message.first(4)?.text(1)?, 16).ok()?;
    if XxHash3_64::oneshot_with_seed(rows as u64, body) != checksum {
        return None;
    }
    let mut rest = body;
    let mut columns = Vec::with_capacity(schema.fields.len());
    for field in &schema.fields {
        columns.push(decode_column(field, rows, &mut rest)?);
    }
    rest.is_empty().then_some(Batch { rows, columns })
}

fn decode_column(field: &Field, rows: usize, rest: &mut &[u8]) -> Option<Column> {
    let mut take = |length: usize| {
        let (taken, left) = rest.split_at_checked(length.checked_next_multiple_of(8)?)?;
        *rest = left;
        taken.get(..length)
    };
    let valid = if field.nullable {
        let bits = take(rows.div_ceil(8))?;
        let bit = |row: usize| bits[row / 8] >> (row % 8) & 1 == 1;
        Some((0..rows).map(bit).collect())
    } else {
        None
    };
    let data = match field.kind {
        Kind::Int => {
            let (chunks, _) = take(rows.checked_mul(8)?)?.as_chunks();
            Data::Int(chunks.iter().map(|b| i64::from_le_bytes(*b)).collect())
        }
        Kind::Float => {
            let (chunks, _) = take(rows.checked_mul(8)?)?.as_chunks();
            Data::Float(chunks.iter().map(|b| f64::from_le_bytes(*b)).collect())
        }
        Kind::Text(_) => {
            let (chunks, _) = take(rows.checked_mul(4)?)?.as_chunks();
            Data::Text(chunks.iter().map(|b| i32::from_le_bytes(*b)).collect())
        }
    };
    Some(Column { data, valid })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tests::{layer_schema, random_batch};
    use super::*;

    /// A batch so that NaN equals NaN.
    fn bits(batch: &Batch) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&mut bytes, batch);
        bytes
    }

    fn read_all(path: &Path) -> (Vec<Batch>, u64) {
        let mut reader = Reader::open(path, layer_schema()).unwrap().unwrap();
        let mut batches = Vec::new();
        while let Some(batch) = reader.next_batch().unwrap() {
            batches.push(batch);
        }
        (batches, reader.position())
    }

    /// A stream of batches, and where each ends; the first end is that of the preamble.
    fn sample() -> (Vec<u8>, Vec<Batch>, Vec<usize>) {
        let schema = layer_schema();
        let batches: Vec<Batch> = [3, 1, 0, 9].map(|rows| random_batch(&schema, rows)).into();
        let mut bytes = preamble(&schema);
        let mut ends = vec![bytes.len()];
        for batch in &batches {
            encode(&mut bytes, batch);
            ends.push(bytes.len());
        }
        (bytes, batches, ends)
    }

    #[test]
    fn batches_are_read_back_to_the_bit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (bytes, batches, _) = sample();
        fs::write(file.path(), &bytes).unwrap();
        let (read, position) = read_all(file.path());
        assert_eq!(format!("{read:?}"), format!("{batches:?}"));
        assert_eq!(position, bytes.len() as u64);
        assert_eq!(bytes.len() % 8, 0);
    }

    #[test]
    fn a_stream_cut_anywhere_gives_its_whole_batches() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (bytes, batches, ends) = sample();
        for cut in 0..=bytes.len() {
            fs::write(file.path(), &bytes[..cut]).unwrap();
            let (read, position) = read_all(file.path());
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            assert_eq!(read.len(), whole.saturating_sub(1), "cut at {cut}");
            for (read, written) in read.iter().zip(&batches) {
                assert_eq!(bits(read), bits(written), "cut at {cut}");
            }
            assert!(position <= cut as u64);
            if whole > 0 {
                assert_eq!(position, ends[whole - 1] as u64);
            }
        }
    }

    #[test]
    fn a_batch_with_a_changed_byte_ends_the_stream_or_reads_the_same() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (bytes, batches, _) = sample();
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= [0x01, 0x80, 0xff][at % 3];
            fs::write(file.path(), &bytes).unwrap();
            let (read, _) = read_all(file.path());
            assert!(read.len() <= batches.len());
            for (read, written) in read.iter().zip(&batches) {
                assert_eq!(bits(read), bits(written), "changed at {at}");
            }
        }
    }

    #[test]
    fn zeros_after_the_last_batch_are_not_a_batch() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (mut bytes, batches, _) = sample();
        bytes.extend([0; 4096]);
        fs::write(file.path(), &bytes).unwrap();
        assert_eq!(read_all(file.path()).0.len(), batches.len());
    }

    #[test]
    fn no_file_is_no_stream() {
        let nowhere = Path::new("/nowhere/observations.arrows");
        assert!(Reader::open(nowhere, layer_schema()).unwrap().is_none());
    }
}
