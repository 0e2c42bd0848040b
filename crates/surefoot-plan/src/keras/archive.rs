//! File formats: HDF5, Keras archives and JSON.

use std::collections::HashMap;
use std::io::{Cursor, Read};

use hdf5_pure::{AttrValue, Datatype, File, FormatError, Group};
use serde_json::Value;

use super::{KerasErrorKind, Result, Version};

/// The parts of a Keras file.
pub(super) struct Archive {
    /// The model: class and configuration.
    pub(super) model: Value,
    /// Arguments of `model.compile(..)`.
    pub(super) training: Option<Value>,
    pub(super) version: Version,
    /// The weights; `None` for a file without weights.
    pub(super) store: Option<Store>,
}

/// Storage of the weights.
pub(super) enum Store {
    /// `model_weights/<layer>/<weight name>`, with the names in attributes.
    Named(File),
    /// `layers/<class>_<n>/vars/<i>`.
    Numbered(File),
}

/// Opens a Keras file.
pub(super) fn open(bytes: Vec<u8>) -> Result<Archive> {
    if bytes.starts_with(b"\x89HDF\r\n\x1a\n") {
        open_hdf5(bytes)
    } else if bytes.starts_with(b"PK\x03\x04") {
        open_zip(bytes)
    } else if bytes.trim_ascii_start().starts_with(b"{") {
        open_json(&bytes)
    } else {
        Err(KerasErrorKind::NotKeras { found: describe(&bytes) })
    }
}

fn describe(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "an empty file".to_owned();
    }
    let start = bytes.get(..bytes.len().min(16)).unwrap_or(bytes);
    match std::str::from_utf8(start) {
        Ok(text) if !text.contains(|c: char| c.is_control() && !c.is_whitespace()) => {
            format!("text that starts with {text:?}")
        }
        _ => format!("bytes that start with {}", start.escape_ascii()),
    }
}

fn open_hdf5(bytes: Vec<u8>) -> Result<Archive> {
    let file = open_file(bytes, "the HDF5 file")?;
    let attributes = Attributes::of(&file.root(), "the HDF5 file")?;
    let Some(model) = attributes.text("model_config")? else {
        let mut found: Vec<String> = attributes.values.into_keys().collect();
        found.extend(file.root().groups().unwrap_or_default());
        found.sort();
        found.truncate(8);
        return Err(KerasErrorKind::NoModel {
            found: if found.is_empty() {
                "an empty HDF5 file".to_owned()
            } else {
                format!("`{}`", found.join("`, `"))
            },
        });
    };
    let model = parse(model.as_bytes(), "`model_config`")?;
    let training = attributes
        .text("training_config")?
        .map(|json| parse(json.as_bytes(), "`training_config`"))
        .transpose()?;
    Ok(Archive {
        version: version_of(attributes.text("keras_version")?, &model),
        model,
        training,
        store: Some(Store::Named(file)),
    })
}

fn open_zip(bytes: Vec<u8>) -> Result<Archive> {
    let mut zip = zip::ZipArchive::new(Cursor::new(bytes))
        .map_err(|error| KerasErrorKind::damaged("the archive", error))?;
    let Some(config) = member(&mut zip, "config.json")? else {
        return Err(KerasErrorKind::NotKeras {
            found: "a zip archive without `config.json`".to_owned(),
        });
    };
    let model = parse(&config, "`config.json`")?;
    let metadata = member(&mut zip, "metadata.json")?
        .map(|json| parse(&json, "`metadata.json`"))
        .transpose()?;
    let version = metadata
        .as_ref()
        .and_then(|metadata| metadata.get("keras_version"))
        .and_then(Value::as_str);
    let store = member(&mut zip, "model.weights.h5")?
        .map(|weights| open_file(weights, "`model.weights.h5`").map(Store::Numbered))
        .transpose()?;
    Ok(Archive {
        version: version_of(version, &model),
        training: model.get("compile_config").cloned(),
        model,
        store,
    })
}

fn open_json(bytes: &[u8]) -> Result<Archive> {
    let model = parse(bytes, "the JSON")?;
    if model.get("class_name").is_none() {
        return Err(KerasErrorKind::NotKeras { found: "JSON without `class_name`".to_owned() });
    }
    Ok(Archive {
        version: version_of(model.get("keras_version").and_then(Value::as_str), &model),
        training: model.get("compile_config").cloned(),
        model,
        store: None,
    })
}

/// Largest content of this many compressed bytes. Weights hardly compress, so more is a decompression
/// bomb.
fn largest(compressed: u64) -> u64 {
    compressed.saturating_mul(100).saturating_add(64 << 20)
}

fn member(zip: &mut zip::ZipArchive<Cursor<Vec<u8>>>, name: &str) -> Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    match zip.by_name(name) {
        Err(zip::result::ZipError::FileNotFound) => return Ok(None),
        Err(error) => Err(error.to_string()),
        Ok(member) => {
            let limit = largest(member.compressed_size());
            match member.take(limit + 1).read_to_end(&mut content) {
                Err(error) => Err(error.to_string()),
                Ok(read) if read as u64 > limit => {
                    Err(format!("it expands to more than {limit} bytes"))
                }
                Ok(_) => Ok(()),
            }
        }
    }
    .map_err(|error| KerasErrorKind::damaged(format!("`{name}`"), error))?;
    Ok(Some(content))
}

fn open_file(bytes: Vec<u8>, part: &str) -> Result<File> {
    let size = bytes.len() as u64;
    let file = File::from_bytes(bytes).map_err(|error| KerasErrorKind::damaged(part, error))?;
    let whole = file.superblock().eof_address;
    if size < whole {
        let reason = format!("it ends after {size} of {whole} bytes");
        return Err(KerasErrorKind::damaged(part, reason));
    }
    Ok(file)
}

/// The attributes of a group. An attribute that cannot be decoded is an error.
struct Attributes {
    part: String,
    values: HashMap<String, AttrValue>,
    types: HashMap<String, Datatype>,
}

impl Attributes {
    fn of(group: &Group, part: &str) -> Result<Self> {
        let damaged = |error| KerasErrorKind::damaged(part, error);
        Ok(Self {
            part: part.to_owned(),
            values: group.attrs().map_err(damaged)?,
            types: group.attr_datatypes().map_err(damaged)?,
        })
    }

    fn get(&self, name: &str) -> Result<Option<&AttrValue>> {
        match self.values.get(name) {
            None if self.types.contains_key(name) => Err(KerasErrorKind::damaged(
                &self.part,
                format!("the attribute `{name}` cannot be decoded"),
            )),
            value => Ok(value),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&str>> {
        Ok(self.get(name)?.and_then(AttrValue::as_str))
    }

    /// A list of strings; an empty one is stored as an empty array of numbers.
    fn list(&self, name: &str) -> Result<Option<&[String]>> {
        let value = self.get(name)?;
        Ok(value.map(|value| value.as_strings().unwrap_or_default()))
    }
}

fn parse(json: &[u8], part: &str) -> Result<Value> {
    serde_json::from_slice(json).map_err(|error| KerasErrorKind::damaged(part, error))
}

/// Version of the Keras that wrote a file. The JSON of Keras 3 has modules instead of a version.
fn version_of(stated: Option<&str>, model: &Value) -> Version {
    let major = stated.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    match major {
        Some(0..=2) => Version::Two,
        None if model.get("module").is_none() => Version::Two,
        _ => Version::Three,
    }
}

/// The strings of a group's attribute; Keras splits a long list into `name0`, `name1`, ...
pub(super) fn strings(file: &File, group: &str, attribute: &str) -> Result<Option<Vec<String>>> {
    let part = format!("group `{group}`");
    let group = match file.group(group) {
        Err(error) if is_absent(&error) => return Ok(None),
        other => other.map_err(|error| KerasErrorKind::damaged(&part, error))?,
    };
    let attributes = Attributes::of(&group, &part)?;
    if let Some(whole) = attributes.list(attribute)? {
        return Ok(Some(whole.to_vec()));
    }
    let mut pieces = Vec::new();
    while let Some(piece) = attributes.list(&format!("{attribute}{}", pieces.len()))? {
        pieces.push(piece);
    }
    Ok((!pieces.is_empty()).then(|| pieces.concat()))
}

/// Returns true if there is a group at a path.
pub(super) fn has_group(file: &File, group: &str) -> bool {
    file.group(group).is_ok()
}

/// An array's shape, and its values row-major.
pub(super) type Values = (Vec<usize>, Vec<f32>);

/// Reads an array; `None` if the path does not exist.
pub(super) fn array(file: &File, path: &str) -> std::result::Result<Option<Values>, String> {
    let dataset = match file.dataset(path) {
        Err(error) if is_absent(&error) => return Ok(None),
        other => other.map_err(|error| error.to_string())?,
    };
    let shape = dataset.shape().map_err(|error| error.to_string())?;
    let element = dataset.element_size().map_err(|error| error.to_string())?;
    let chunk = dataset.chunk_shape().map_err(|error| error.to_string())?.unwrap_or_default();
    let limit = largest(file.as_bytes().len() as u64);
    // The file states its sizes, and the library allocates them.
    for sizes in [&shape, &chunk] {
        let claimed = sizes.iter().fold(element, |product, &size| product.saturating_mul(size));
        if claimed > limit {
            return Err(format!(
                "an array of shape {sizes:?} needs {claimed} bytes, and a file of this size may hold \
                 at most {limit}"
            ));
        }
    }
    let values = dataset.read_f32().map_err(|error| error.to_string())?;
    let shape: Vec<usize> =
        shape.iter().map(|&size| usize::try_from(size).unwrap_or(usize::MAX)).collect();
    let count = shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size));
    if count != Some(values.len()) {
        return Err(format!("{} values for an array of shape {shape:?}", values.len()));
    }
    Ok(Some((shape, values)))
}

fn is_absent(error: &hdf5_pure::Error) -> bool {
    matches!(error, hdf5_pure::Error::Format(FormatError::PathNotFound(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn error(bytes: &[u8]) -> String {
        match open(bytes.to_vec()) {
            Ok(_) => "no error".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn other_content_is_described() {
        assert!(error(b"").ends_with("found an empty file"));
        assert!(error(b"a,b\n1,2\n").ends_with(r#"found text that starts with "a,b\n1,2\n""#));
        assert!(error(b"\x80\x02}q").ends_with(r"found bytes that start with \x80\x02}q"));
        assert!(error(b"{}").ends_with("found JSON without `class_name`"));
    }

    #[test]
    fn truncated_files_are_damaged() {
        assert!(error(b"\x89HDF\r\n\x1a\n\x00").starts_with("is damaged: the HDF5 file"));
        assert!(error(b"PK\x03\x04").starts_with("is damaged: the archive"));
        assert!(error(b"{\"class_name\":").starts_with("is damaged: the JSON"));
    }

    #[test]
    fn a_decompression_bomb_is_refused() {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file("config.json", zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(&vec![b' '; 80 << 20]).unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        assert!(bytes.len() < 1 << 20 && error(&bytes).contains("it expands to more than"));
    }

    #[test]
    fn an_array_beyond_the_size_of_its_file_is_refused() {
        let fixture = "tests/keras/fixtures/keras3_h5_nested.h5";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture);
        let mut bytes = std::fs::read(path).unwrap();
        // The dataspace of a matrix: version 1, two dimensions.
        let sizes = |bytes: &[u8]| {
            let starts = (8..bytes.len() - 16).filter(|&at| bytes[at - 8..at - 6] == [1, 2]);
            let zeros =
                |at: &usize| bytes[at - 5..*at] == [0; 5] && bytes[at + 1..at + 8] == [0; 7];
            starts.filter(zeros).collect::<Vec<usize>>()
        };
        for at in sizes(&bytes) {
            bytes[at + 5] = 1;
        }
        let error = crate::keras::read(bytes).unwrap_err().to_string();
        assert!(error.contains("bytes, and a file of this size may hold at most"), "{error}");
        assert!(error.contains("needs 17592186044464 bytes"), "{error}");
    }

    #[test]
    fn the_version_is_stated_or_follows_from_modules() {
        let bare = serde_json::json!({"class_name": "Sequential"});
        let module = serde_json::json!({"class_name": "Sequential", "module": "keras"});
        assert_eq!(version_of(Some("2.15.0"), &module), Version::Two);
        assert_eq!(version_of(Some("3.0.0-dev"), &bare), Version::Three);
        assert_eq!(version_of(None, &bare), Version::Two);
        assert_eq!(version_of(None, &module), Version::Three);
    }
}
