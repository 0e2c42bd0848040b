//! Tests of whole data sets, from the plan to the parts.

use std::fs;

use surefoot_plan::{SplitFractions, Task};

use super::*;

fn data(source: Source) -> Data {
    Data { split: SplitFractions { validation: 0.25, test: 0.25 }, ..Data::new(source) }
}

fn parity() -> Data {
    data(Source::Parity { samples: 40, length: 5 })
}

fn blobs() -> Data {
    data(Source::Blobs { samples: 40, centers: 3, features: 2, spread: 1.0 })
}

fn load(data: &Data) -> Result<Dataset, DataError> {
    super::load(data, 42, Path::new(""))
}

fn from_csv(text: &str) -> Result<Dataset, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), text).unwrap();
    let data = data(Source::csv("t.csv"));
    super::load(&data, 42, folder.path()).map_err(|error| {
        let message = error.to_string();
        message.replace(&format!("{}/", folder.path().display()), "")
    })
}

#[test]
fn a_data_set_knows_what_it_holds() {
    let set = load(&blobs()).unwrap();
    assert_eq!((set.train.len, set.validation.len, set.test.len), (20, 10, 10));
    assert_eq!(set.train.features.len(), 20 * 2);
    assert_eq!((set.input_shape, set.target_width), (vec![2], 1));
    assert_eq!((set.task, set.classes), (Task::MultiClass, 3));
    assert_eq!(set.class_names, ["0", "1", "2"]);
    assert!(!set.integer_input && set.preprocessing.scaling.is_none());
}

#[test]
fn a_part_holds_the_samples_of_its_ids() {
    let (set, all) =
        (load(&blobs()).unwrap(), read(&blobs().source, &blobs(), 42, Path::new("")).unwrap());
    for part in [&set.train, &set.validation, &set.test] {
        for (&id, features) in part.ids.iter().zip(part.features.chunks(2)) {
            assert_eq!(features, &all.features[id as usize * 2..][..2]);
        }
    }
}

/// The digest of the whole way, split included: a change means that no recorded run replays.
#[test]
fn the_digest_never_changes() {
    assert_eq!(load(&blobs()).unwrap().digest, 0x812702d54ae5d6050c357da8ab170fa7);
    assert_ne!(
        load(&blobs()).unwrap().digest,
        super::load(&blobs(), 43, Path::new("")).unwrap().digest
    );
}

#[test]
fn scaling_is_fitted_on_the_training_part() {
    let plan = Data { scale: Scale::Standardise, ..blobs() };
    let (plain, set) = (load(&blobs()).unwrap(), load(&plan).unwrap());
    assert_eq!(
        set.preprocessing.scaling,
        Scaling::fit(Scale::Standardise, &plain.train.features, &[2])
    );
    let mean = |part: &Part| part.features.iter().sum::<f32>() / part.features.len() as f32;
    assert!(mean(&set.train).abs() < 1e-6);
    assert!(mean(&set.test).abs() > 1e-3);
    assert_ne!(plain.digest, set.digest);
}

#[test]
fn symbols_are_integers_and_not_scaled() {
    let set = load(&parity()).unwrap();
    assert!(set.integer_input);
    assert_eq!((set.symbols, set.input_shape), (2, vec![5]));
    let error = load(&Data { scale: Scale::MinMax, ..parity() });
    assert_eq!(
        error.unwrap_err().to_string(),
        "the generator parity gives symbols, which are numbered and not measured; set scale = \
         \"none\""
    );
}

#[test]
fn a_stated_task_must_fit() {
    let error = load(&Data { task: Some(Task::Binary), ..blobs() });
    assert!(error.unwrap_err().to_string().contains("the generator blobs has 3 classes"));
    let error = load(&Data { task: Some(Task::Regression), ..parity() });
    assert!(error.unwrap_err().to_string().contains("classes such as \"even\""));
}

#[test]
fn a_file_is_looked_for_beside_the_plan() {
    let set = from_csv("a,b,y\n1,2,u\n3,4,v\n5,6,v\n7,8,u\n").unwrap();
    assert_eq!(set.feature_names, ["a", "b"]);
    assert_eq!(set.class_names, ["u", "v"]);
    assert_eq!((set.train.len, set.symbols), (2, 9));
}

#[test]
fn one_sample_and_one_class_are_not_enough() {
    assert_eq!(
        from_csv("a,y\n1,2\n").unwrap_err(),
        "t.csv has a single sample; it must hold at least two, one to learn from and one to judge by"
    );
    assert_eq!(
        from_csv("a,y\n1,red\n2,red\n3,red\n").unwrap_err(),
        "only one class (red) in t.csv; nothing to learn"
    );
}

#[test]
fn a_class_that_cannot_be_learnt_is_remarked_on() {
    let set = from_csv("a,y\n1,0\n2,1\n3,2\n4,3\n5,4\n6,5\n7,6\n8,7\n").unwrap();
    assert!(
        set.notes
            .iter()
            .any(|note| note.contains("4 classes have no samples in the training part")),
        "{:?}",
        set.notes
    );
}

#[test]
fn a_regression_has_values() {
    let set = load(&data(Source::Linear { samples: 20, features: 3, noise: 0.0 })).unwrap();
    assert_eq!((set.task, set.classes), (Task::Regression, 0));
    assert!(matches!(set.train.targets, Targets::Values(values) if values.len() == 10));
}

/// Loads a plan's data from two CSV files.
fn load_files(
    training: &str,
    validation: &str,
    change: impl Fn(&mut Data),
) -> Result<Dataset, String> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.csv"), training).unwrap();
    std::fs::write(dir.path().join("b.csv"), validation).unwrap();
    let mut data = Data::new(Source::csv("a.csv"));
    data.validation = Some(Source::csv("b.csv"));
    change(&mut data);
    let folder = format!("{}/", dir.path().display());
    super::load(&data, 1, dir.path()).map_err(|error| error.to_string().replace(&folder, ""))
}

#[test]
fn a_validation_file_is_the_validation_part() {
    let training = "x,kind,y\n0,a,no\n2,b,yes\n4,a,no\n";
    let set = load_files(training, "y,extra,kind,x\nyes,9,b,6\nmaybe,9,a,8\n", |data| {
        data.scale = Scale::MinMax;
        let Source::Csv { categorical, .. } = &mut data.source else { panic!("a table") };
        categorical.push("kind".to_owned());
    });
    let set = set.unwrap();
    assert_eq!((set.train.len, set.validation.len, set.test.len), (3, 2, 0));
    assert_eq!(set.class_names, ["maybe", "no", "yes"]);
    // Scaled by the range of the training file, categories in its order.
    assert_eq!(set.validation.features, [1.5, 0.0, 1.0, 2.0, 1.0, 0.0]);
    assert_eq!(set.validation.targets, Targets::Classes(vec![2, 0]));
    assert_eq!(set.validation.ids, [3, 4]);
    assert!(set.notes.iter().any(|note| note.contains("such as maybe")), "{:?}", set.notes);
}

#[test]
fn incomplete_samples_of_either_file_are_dropped() {
    let drop = |data: &mut Data| data.missing = Missing::Drop;
    let set = load_files("x,y\n0,0\n,1\n2,1\n", "x,y\n,0\n4,1\n", drop).unwrap();
    assert_eq!((set.train.ids, set.validation.ids), (vec![0, 2], vec![4]));
    let error = load_files("x,y\n0,0\n2,1\n", "x,y\n,0\n", drop).unwrap_err();
    assert!(error.contains("b.csv"), "{error}");
}

#[test]
fn a_validation_file_must_have_the_layout_of_the_training_file() {
    let training = "x,z,y\n0,1,0\n2,3,1\n";
    let error = load_files(training, "x,y\n0,0\n", |_| ()).unwrap_err();
    assert!(
        error.starts_with("b.csv has no column \"z\", which the training data have"),
        "{error}"
    );
    let error = load_files(training, "x,z,y\n0,1,no\n", |_| ()).unwrap_err();
    assert_eq!(error, "a.csv has labels that are numbers and b.csv names; both need the same");
}
