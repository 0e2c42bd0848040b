//! Folders of images, a folder a class.

use std::path::{Path, PathBuf};

use crate::error::{DataError, Origin};
use crate::picture::Picture;
use crate::samples::{Labels, Measure, Samples, room};

/// Reads the PNG and JPEG files in the subfolders of a folder. Classes and files are sorted by name.
pub(crate) fn images(
    path: &Path,
    size: Option<[usize; 2]>,
    channels: usize,
) -> Result<Samples, DataError> {
    let setting = |key: &str, value: String, need: &str| {
        DataError::new(format!("data.source (images): {key} = {value}; {need}"))
    };
    if channels != 1 && channels != 3 {
        let need = "it must be 1 (grey) or 3 (colour)";
        return Err(setting("channels", channels.to_string(), need));
    }
    if let Some(size) = size.filter(|size| size.iter().any(|side| !(1..=1 << 13).contains(side))) {
        let need = "height and width must be 1 to 8192";
        return Err(setting("size", format!("{size:?}"), need));
    }
    let (files, names, notes) = listing(path)?;
    let decode = |file: &Path| {
        let bytes = std::fs::read(file).map_err(|cause| unreadable(file, cause))?;
        Picture::decode(&bytes, channels)
            .map_err(|what| DataError::malformed(file, "PNG or JPEG", what))
    };
    let [height, width] = match size {
        Some(size) => size,
        None => {
            let first = decode(&files[0].0)?;
            [first.height, first.width]
        }
    };
    let origin = Origin::File(path.to_owned());
    let mut features = room(&origin, files.len(), height * width * channels)?;
    for (file, _) in &files {
        features.extend(decode(file)?.resized(height, width).values);
    }
    Ok(Samples {
        label_origin: origin.clone(),
        origin,
        shape: vec![height, width, channels],
        features,
        columns: Vec::new(),
        label_columns: Vec::new(),
        measure: Measure::Amounts,
        labels: Labels::Classes { ids: files.iter().map(|&(_, class)| class).collect(), names },
        positions: 1,
        notes,
    })
}

/// Images with their classes, the class names, and notes about skipped files.
type Listing = (Vec<(PathBuf, u32)>, Vec<String>, Vec<String>);

fn listing(path: &Path) -> Result<Listing, DataError> {
    let (classes, strays) = entries(path)?;
    let mut others = strays.len();
    if classes.is_empty() {
        return Err(DataError::new(format!(
            "{} has no folders in it; put the images of each class into a folder of its own",
            path.display()
        )));
    }
    let mut files = Vec::new();
    for (class, folder) in (0..).zip(&classes) {
        let before = files.len();
        for file in entries(folder)?.1 {
            if is_image(&file) {
                files.push((file, class));
            } else {
                others += 1;
            }
        }
        if files.len() == before {
            return Err(DataError::new(format!(
                "{} has no PNG or JPEG images in it; remove the folder or add images",
                folder.display()
            )));
        }
    }
    let names = classes
        .iter()
        .filter_map(|folder| folder.file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let notes = match others {
        0 => Vec::new(),
        _ => vec![format!(
            "{others} files in {} are not PNG or JPEG images in the folder of a class, and are \
             left out",
            path.display()
        )],
    };
    Ok((files, names, notes))
}

/// The folders and the files in a folder, each in the order of their names, without hidden ones.
fn entries(path: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), DataError> {
    let failed = |cause| unreadable(path, cause);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            entries.push(entry.path());
        }
    }
    entries.sort_unstable();
    Ok(entries.into_iter().partition(|entry| entry.is_dir()))
}

fn is_image(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["png", "jpg", "jpeg"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

fn unreadable(path: &Path, cause: std::io::Error) -> DataError {
    DataError::unreadable(path, &cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::{COLOUR, png};
    use ::png::ColorType;
    use std::fs;

    /// Two classes: a grey PNG and a JPEG of colour, a grey PNG.
    fn pets() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let [cats, dogs] = ["cats", "dogs"].map(|class| folder.path().join(class));
        fs::create_dir(&dogs).unwrap();
        fs::create_dir(&cats).unwrap();
        fs::write(cats.join("b.JPG"), COLOUR).unwrap();
        fs::write(cats.join("a.png"), png(2, 1, ColorType::Grayscale, &[0, 255])).unwrap();
        fs::write(dogs.join("c.png"), png(2, 1, ColorType::Grayscale, &[255, 0])).unwrap();
        folder
    }

    fn error(folder: &tempfile::TempDir) -> String {
        let error = images(folder.path(), None, 1).unwrap_err().to_string();
        error.replace(&folder.path().display().to_string(), "pets")
    }

    #[test]
    fn a_folder_is_a_class() {
        let samples = images(pets().path(), None, 1).unwrap();
        assert_eq!(samples.shape, [1, 2, 1]);
        assert_eq!(samples.features[..2], [0.0, 1.0]);
        assert_eq!(samples.features[4..], [1.0, 0.0]);
        assert!(matches!(
            samples.labels,
            Labels::Classes { ids, names } if ids == [0, 0, 1] && names == ["cats", "dogs"]
        ));
    }

    #[test]
    fn images_are_brought_to_the_size_asked_for() {
        let samples = images(pets().path(), Some([4, 6]), 3).unwrap();
        assert_eq!(samples.shape, [4, 6, 3]);
        assert_eq!(samples.features.len(), 3 * 4 * 6 * 3);
    }

    #[test]
    fn other_files_are_left_out_and_hidden_ones_not_mentioned() {
        let folder = pets();
        fs::write(folder.path().join("README.md"), "pets").unwrap();
        fs::write(folder.path().join("cats/notes.txt"), "cats").unwrap();
        fs::write(folder.path().join("cats/.DS_Store"), "").unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        let samples = images(folder.path(), None, 1).unwrap();
        assert_eq!(samples.len(), 3);
        assert!(samples.notes[0].starts_with("2 files in"), "{:?}", samples.notes);
    }

    #[test]
    fn a_damaged_image_is_named() {
        let folder = pets();
        fs::write(folder.path().join("dogs/d.png"), "not an image").unwrap();
        assert_eq!(
            error(&folder),
            "pets/dogs/d.png is not a valid PNG or JPEG file: it does not begin as one"
        );
    }

    #[test]
    fn a_class_without_images_is_named() {
        let folder = pets();
        fs::create_dir(folder.path().join("eels")).unwrap();
        assert!(error(&folder).starts_with("pets/eels has no PNG or JPEG images"));
    }

    #[test]
    fn a_folder_without_classes_is_refused() {
        assert!(error(&tempfile::tempdir().unwrap()).starts_with("pets has no folders in it"));
        assert!(images(Path::new("nowhere"), None, 1).is_err());
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let folder = pets();
        let error = images(folder.path(), None, 2).unwrap_err().to_string();
        assert!(error.contains("channels = 2"), "{error}");
        let error = images(folder.path(), Some([0, 4]), 1).unwrap_err().to_string();
        assert!(error.contains("size = [0, 4]"), "{error}");
    }
}
