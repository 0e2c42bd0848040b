//! The delivered model: `model.safetensors`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use atomic_write_file::AtomicWriteFile;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::array::{Array, Kind, Values};
use crate::error::{Error, Result};
use crate::layout::read_if_there;

/// Writes the arrays as safetensors. The same arrays give the same bytes: there is no metadata,
/// whose order is random, and the arrays are sorted.
pub(crate) fn write(path: &Path, arrays: &[Array]) -> Result<()> {
    let mut names = BTreeSet::new();
    let mut parts = Vec::with_capacity(arrays.len());
    for array in arrays {
        array.check()?;
        if !names.insert(&array.name) {
            return Err(unrecordable(format!("`{}` is in it twice", array.name)));
        }
        parts.push((array, array.data.to_bytes()));
    }
    let mut views = Vec::with_capacity(arrays.len());
    for (array, bytes) in &parts {
        let kind = match array.data.kind() {
            Kind::F32 => Dtype::F32,
            Kind::F64 => Dtype::F64,
            Kind::U64 => Dtype::U64,
        };
        let view = TensorView::new(kind, array.shape.clone(), bytes);
        views.push((&array.name, view.map_err(unrecordable)?));
    }
    let bytes = safetensors::serialize(views, None).map_err(unrecordable)?;
    write_atomically(path, &bytes)
}

/// Reads the arrays, sorted by name; `None` if there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<Array>>> {
    let Some(bytes) = read_if_there(path)? else {
        return Ok(None);
    };
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| Error::damaged(path, error))?;
    let mut arrays = Vec::with_capacity(tensors.len());
    for (name, view) in tensors.iter() {
        let kind = match view.dtype() {
            Dtype::F32 => Kind::F32,
            Dtype::F64 => Kind::F64,
            Dtype::U64 => Kind::U64,
            other => {
                let reason = format!("`{name}` is of type {other:?}, which models here are not");
                return Err(Error::damaged(path, reason));
            }
        };
        arrays.push(Array {
            name: name.to_owned(),
            shape: view.shape().to_vec(),
            data: Values::from_bytes(kind, view.data()),
        });
    }
    arrays.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Some(arrays))
}

fn unrecordable(reason: impl ToString) -> Error {
    Error::Unrecordable { what: "the model".to_owned(), reason: reason.to_string() }
}

/// Writes a file that is durable when this returns, and replaces another at once or not at all.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = AtomicWriteFile::open(path).map_err(Error::io("create", path))?;
    file.write_all(content).and_then(|()| file.commit()).map_err(Error::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_read_back_whatever_the_order_it_was_given_in() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        let mut arrays = vec![
            Array::new("a.bias", &[2], vec![1.0_f32, -0.0]),
            Array::new("a.weight", &[2, 1], vec![1e-30_f32, 5.0]),
            Array::new("b.running", &[1], vec![0.1_f64]),
            Array::new("c.count", &[], vec![3_u64]),
        ];
        write(&one, &arrays).unwrap();
        assert_eq!(read(&one).unwrap().unwrap(), arrays);
        arrays.reverse();
        write(&two, &arrays).unwrap();
        assert_eq!(std::fs::read(one).unwrap(), std::fs::read(two).unwrap());
    }

    #[test]
    fn a_name_that_is_there_twice_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let twice = [0, 1].map(|_| Array::new("x", &[1], vec![1.0_f32]));
        let error = write(&dir.path().join("m"), &twice).unwrap_err();
        assert!(error.to_string().contains("`x` is in it twice"), "{error}");
    }

    #[test]
    fn a_damaged_model_is_an_error_and_none_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.safetensors");
        assert!(read(&path).unwrap().is_none());
        write(&path, &[Array::new("x", &[3], vec![1.0_f32; 3])]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(read(&path).is_err(), "cut at {cut}");
        }
    }
}
