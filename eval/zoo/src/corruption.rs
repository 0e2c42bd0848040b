//! Writes corrupted data of a case to files.

use crate::fault::Corruption;
use std::io;
use std::path::Path;
use surefoot_data::Targets;
use surefoot_plan::{Plan, Source, SplitFractions};
use surefoot_random::{Key, Purpose};

/// Factor of an outlier.
const ABSURD: f32 = 1e4;

/// Returns the plan with corrupted data, written to files in `dir` whose names start with `name`.
pub(crate) fn corrupt(
    plan: &Plan,
    how: Corruption,
    dir: &Path,
    name: &str,
) -> Result<Plan, String> {
    let mut whole = plan.data.clone();
    whole.split = SplitFractions { validation: 0.0, test: 0.0 };
    let data = surefoot_data::load(&whole, plan.seed, dir).map_err(|error| error.to_string())?;
    let key = Key::new(plan.seed, Purpose::Noise);
    let mut features = data.train.features;
    for (i, value) in features.iter_mut().enumerate() {
        *value = (f64::from(*value) * how.factor + how.offset) as f32;
        if how.outliers > 0.0 && key.bernoulli(i as u64, how.outliers) {
            *value *= ABSURD;
        }
    }
    let mut shape = vec![data.train.len];
    shape.extend(&data.input_shape);
    let files = [format!("{name}-features.npy"), format!("{name}-labels.npy")];
    let bytes: Vec<u8> = features.iter().flat_map(|v| v.to_le_bytes()).collect();
    let labels = match &data.train.targets {
        Targets::Classes(ids) => {
            let bytes = ids.iter().flat_map(|&id| i64::from(id).to_le_bytes());
            ("<i8", bytes.collect::<Vec<u8>>())
        }
        Targets::Values(values) => {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            ("<f4", bytes.collect())
        }
    };
    write(&dir.join(&files[0]), "<f4", &shape, &bytes)
        .and_then(|()| write(&dir.join(&files[1]), labels.0, &[data.train.len], &labels.1))
        .map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut corrupted = plan.clone();
    corrupted.data.task = Some(data.task);
    corrupted.data.source =
        Source::Npy { features: files[0].clone().into(), labels: files[1].clone().into() };
    Ok(corrupted)
}

/// NumPy's format: a magic number, a header that is a Python literal, the values.
fn write(path: &Path, kind: &str, shape: &[usize], bytes: &[u8]) -> io::Result<()> {
    let dims: String = shape.iter().map(|dim| format!("{dim},")).collect();
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({dims}), }}");
    // With magic, length and the line's end a multiple of 64.
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    std::fs::write(path, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_plan::{Data, Loss, Training};

    #[test]
    fn corruption_scales_and_shifts_the_features() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan::new(Data::new(Source::circles()), Vec::new(), Training::new(1, Loss::Mse));
        let how = Corruption { factor: 100.0, offset: 7.0, outliers: 0.0 };
        let corrupted = corrupt(&plan, how, dir.path(), "a").unwrap();
        let before = surefoot_data::load(&plan.data, 0, dir.path()).unwrap();
        let after = surefoot_data::load(&corrupted.data, 0, dir.path()).unwrap();
        assert_eq!(before.train.targets, after.train.targets);
        let (x, y) = (before.train.features[3], after.train.features[3]);
        assert!((x * 100.0 + 7.0 - y).abs() < 1e-3, "{x} {y}");
    }
}
