//! NPY files: a NumPy array, its header a Python dictionary.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use surefoot_plan::Missing;

use crate::array::{Array, Number, damaged, paired};
use crate::error::{DataError, shortened};
use crate::missing::Gaps;
use crate::samples::Samples;

const FORMAT: &str = "NPY";

/// NumPy is limited to 64 dimensions, whose header is shorter than this.
const LONGEST_HEADER: usize = 1 << 16;

/// Files written by `np.save`, one for features and one for labels.
pub(crate) fn npy(features: &Path, labels: &Path, missing: Missing) -> Result<Samples, DataError> {
    paired(open(features)?, open(labels)?, missing)
}

/// Samples of the given shape from a file, without labels.
pub(crate) fn features(
    path: &Path,
    shape: &[usize],
    missing: Missing,
) -> Result<Vec<f32>, DataError> {
    let array = open(path)?;
    let found = match &array.shape[1..] {
        [] => &[1],
        found => found,
    };
    if found != shape {
        let samples = |shape: &[usize]| format!("samples of shape {shape:?}");
        return Err(DataError::width(path, &samples(found), &samples(shape)));
    }
    array.numbers(Gaps::in_features(missing), |number| number as f32)
}

fn open(path: &Path) -> Result<Array, DataError> {
    let file = File::open(path).map_err(|cause| DataError::unreadable(path, &cause))?;
    array(BufReader::new(file), path)
}

/// Reads an array; `file` is what messages call it.
pub(crate) fn array(mut reader: impl Read, file: &Path) -> Result<Array, DataError> {
    let failed = |error| damaged(file, FORMAT, error);
    let malformed = |what: String| DataError::malformed(file, FORMAT, what);
    let mut start = Vec::new();
    reader.by_ref().take(8).read_to_end(&mut start).map_err(failed)?;
    if start.is_empty() {
        return Err(DataError::empty(file.display()));
    }
    let [0x93, b'N', b'U', b'M', b'P', b'Y', version, _] = start[..] else {
        return Err(malformed("it does not begin as one".into()));
    };
    let length = match version {
        1 => {
            let mut length = [0; 2];
            reader.read_exact(&mut length).map_err(failed)?;
            usize::from(u16::from_le_bytes(length))
        }
        2 | 3 => {
            let mut length = [0; 4];
            reader.read_exact(&mut length).map_err(failed)?;
            u32::from_le_bytes(length) as usize
        }
        _ => return Err(malformed(format!("version {version} is unknown"))),
    };
    if length > LONGEST_HEADER {
        return Err(malformed(format!("its header claims {length} bytes")));
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text).map_err(failed)?;
    let text = String::from_utf8_lossy(&text);
    let header = Header::parse(&text).ok_or_else(|| {
        malformed(format!(
            "its header is {:?}, not the dictionary of a plain array",
            shortened(&text)
        ))
    })?;
    let (number, big_endian) = number(&header.descr).ok_or_else(|| {
        let what = format!("numbers of type {:?} are not read", shortened(&header.descr));
        let instead = "save whole numbers, booleans, float32 or float64, for example with \
                       array.astype(\"float32\")";
        DataError::unsupported(file, what, instead)
    })?;
    let array = Array::read(reader, file, FORMAT, number, big_endian, header.shape)?;
    Ok(if header.fortran_order { array.transposed() } else { array })
}

/// The kind of number that a NumPy type is, and whether it is big-endian.
fn number(descr: &str) -> Option<(Number, bool)> {
    let (big_endian, name) = match descr.split_at_checked(1)? {
        (">", name) => (true, name),
        ("<" | "|" | "=", name) => (false, name),
        _ => return None,
    };
    let number = match name {
        "b1" => Number::Bool,
        "u1" => Number::U8,
        "i1" => Number::I8,
        "u2" => Number::U16,
        "i2" => Number::I16,
        "u4" => Number::U32,
        "i4" => Number::I32,
        "u8" => Number::U64,
        "i8" => Number::I64,
        "f4" => Number::F32,
        "f8" => Number::F64,
        _ => return None,
    };
    Some((number, big_endian))
}

/// Content of a header such as `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
#[derive(Debug, PartialEq)]
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(text: &str) -> Option<Header> {
        let mut text = Text(text);
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        text.take("{")?;
        while text.take("}").is_none() {
            let key = text.quoted()?;
            text.take(":")?;
            match key {
                "descr" => descr = Some(text.descr()?),
                "fortran_order" => fortran_order = Some(text.boolean()?),
                "shape" => shape = Some(text.tuple()?),
                _ => return None,
            }
            if text.take(",").is_none() {
                text.take("}")?;
                break;
            }
        }
        Some(Header { descr: descr?, fortran_order: fortran_order?, shape: shape? })
    }
}

/// Rest of a header. Each method consumes a token from its front, or nothing.
struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    fn take(&mut self, token: &str) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(token)?;
        Some(())
    }

    fn quoted(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (inside, rest) = text[1..].split_once(quote)?;
        self.0 = rest;
        Some(inside)
    }

    /// A type's name, or the list that a structured type has, for a message to show.
    fn descr(&mut self) -> Option<String> {
        if let Some(name) = self.quoted() {
            return Some(name.to_owned());
        }
        let text = self.0.trim_start();
        let end = text.starts_with('[').then(|| text.find(']'))?? + 1;
        self.0 = &text[end..];
        Some(text[..end].to_owned())
    }

    fn boolean(&mut self) -> Option<bool> {
        let yes = self.take("True").is_some();
        (yes || self.take("False").is_some()).then_some(yes)
    }

    fn tuple(&mut self) -> Option<Vec<usize>> {
        self.take("(")?;
        let (inside, rest) = self.0.split_once(')')?;
        self.0 = rest;
        inside
            .split(',')
            .map(|length| length.trim().trim_end_matches('L'))
            .filter(|length| !length.is_empty())
            .map(|length| length.parse().ok())
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::samples::{Form, Labels};

    /// A file of version 1 as NumPy writes it.
    pub(crate) fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let fortran = if fortran { "True" } else { "False" };
        let mut header =
            format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}");
        while (header.len() + 11) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(data);
        bytes
    }

    pub(crate) fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn read(bytes: &[u8]) -> Result<Array, String> {
        array(bytes, Path::new("x.npy")).map_err(|error| error.to_string())
    }

    #[test]
    fn features_and_labels_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (x, y) = (folder.path().join("x.npy"), folder.path().join("y.npy"));
        let values = [1.0, 2.0, 3.0, 4.0];
        std::fs::write(&x, file("'<f4'", false, "(2, 2)", &floats(&values))).unwrap();
        std::fs::write(&y, file("'|u1'", false, "(2,)", &[1, 0])).unwrap();
        let samples = npy(&x, &y, Missing::Refuse).unwrap();
        assert_eq!(samples.features, values);
        assert_eq!(samples.shape, [2]);
        assert!(matches!(
            samples.labels,
            Labels::Numbers { values, width: 1, form: Form::Integers } if values == [1.0, 0.0]
        ));
    }

    #[test]
    fn the_order_of_fortran_is_turned() {
        let stored = floats(&[1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        let array = read(&file("'<f4'", true, "(3, 2)", &stored)).unwrap();
        assert_eq!(array.bytes, floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    }

    #[test]
    fn headers_of_other_versions_and_writers_are_read() {
        let expected = Header { descr: "<f8".into(), fortran_order: false, shape: vec![3, 4] };
        for text in [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n",
            "{\"shape\":(3L,4L),\"descr\":\"<f8\",\"fortran_order\":False}",
        ] {
            assert_eq!(Header::parse(text).as_ref(), Some(&expected));
        }
        let mut second = b"\x93NUMPY\x02\x00".to_vec();
        let header = b"{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}";
        second.extend((header.len() as u32).to_le_bytes());
        second.extend(header);
        second.push(1);
        assert_eq!(read(&second).unwrap().number, Number::Bool);
    }

    #[test]
    fn types_that_are_no_numbers_are_refused() {
        for descr in ["'|O'", "'<U5'", "'<c8'", "'<f2'", "[('a', '<f4'), ('b', '<i4')]"] {
            let error = read(&file(descr, false, "(2,)", &[0; 64])).unwrap_err();
            assert!(error.contains("are not read; save"), "{error}");
        }
    }

    #[test]
    fn a_header_that_claims_too_much_is_an_error() {
        let error = read(&file("'<f4'", false, "(1152921504606846976,)", &[0; 8])).unwrap_err();
        assert!(error.contains("needs 4611686018427387904 bytes of memory"), "{error}");
        let error = read(&file("'<f4'", false, "(99999999999999999999999,)", &[])).unwrap_err();
        assert!(error.contains("its header is"), "{error}");
    }

    #[test]
    fn other_files_are_refused() {
        assert!(read(b"").unwrap_err().contains("is empty"));
        assert!(read(b"PK\x03\x04....").unwrap_err().contains("does not begin as one"));
        assert!(read(b"\x93NUMPY\x07\x00").unwrap_err().contains("version 7"));
        assert!(read(&file("'<f4'", false, "()", &[0; 4])).unwrap_err().contains("single number"));
        assert!(read(&file("'<f4'", false, "(0, 3)", &[])).unwrap_err().contains("is empty"));
        let whole = file("'<f4'", false, "(2, 2)", &[0; 16]);
        assert!(read(&whole[..whole.len() - 1]).unwrap_err().contains("15 of the 16 bytes"));
        assert!(read(&whole[..20]).unwrap_err().contains("cut short"));
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = npy(Path::new("no/x.npy"), Path::new("no/y.npy"), Missing::Refuse).unwrap_err();
        assert!(error.to_string().starts_with("cannot read no/x.npy: "), "{error}");
    }
}
