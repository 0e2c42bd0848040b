//! Tests of missing values and outliers, from files of each kind to the parts.

use std::collections::BTreeMap;
use std::fs;

use ::parquet::basic::Compression;
use surefoot_plan::{SplitFractions, Task};

use super::*;
use crate::parquet::tests::Values;

/// The features of each sample by its number in the file, whatever its part.
type ById = BTreeMap<u64, Vec<f32>>;

fn by_id(set: &Dataset) -> ById {
    let width = set.input_shape.iter().product();
    [&set.train, &set.validation, &set.test]
        .into_iter()
        .flat_map(|part| part.ids.iter().copied().zip(part.features.chunks(width)))
        .map(|(id, features)| (id, features.to_vec()))
        .collect()
}

/// The mean of the only feature over those samples of the training part that have it.
fn mean(set: &Dataset, gaps: &[u64]) -> f32 {
    let (ids, features) = (&set.train.ids, &set.train.features);
    let known: Vec<f32> = (ids.iter().zip(features))
        .filter(|(id, _)| !gaps.contains(id))
        .map(|(_, &value)| value)
        .collect();
    known.iter().sum::<f32>() / known.len() as f32
}

fn data(source: Source, missing: Missing) -> Data {
    Data { missing, split: SplitFractions { validation: 0.25, test: 0.0 }, ..Data::new(source) }
}

/// Loads files that a source finds in its folder.
fn load_files(files: &[(&str, Vec<u8>)], data: &Data) -> Result<Dataset, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    load(data, 42, folder.path()).map_err(|error| {
        let message = error.to_string();
        message.replace(&format!("{}/", folder.path().display()), "")
    })
}

fn table() -> Source {
    Source::csv("t.csv")
}

fn csv(text: &str, missing: Missing) -> Result<Dataset, String> {
    load_files(&[("t.csv", text.into())], &data(table(), missing))
}

fn npy(features: &[f32], labels: &[f32], missing: Missing) -> Result<Dataset, String> {
    let file = |values: &[f32]| {
        let shape = format!("({},)", values.len());
        npy::tests::file("'<f4'", false, &shape, &npy::tests::floats(values))
    };
    let source = Source::Npy { features: "x.npy".into(), labels: "y.npy".into() };
    let files = [("x.npy", file(features)), ("y.npy", file(labels))];
    load_files(&files, &data(source, missing))
}

fn parquet(schema: &str, columns: Vec<Values>, missing: Missing) -> Result<Dataset, String> {
    let bytes = parquet::tests::file(schema, &[columns], Compression::UNCOMPRESSED);
    let source = Source::Parquet { path: "t.parquet".into(), label: None };
    load_files(&[("t.parquet", bytes)], &data(source, missing))
}

fn ints(values: [Option<i32>; 5]) -> Values {
    Values::Ints(values.into())
}

const GAPS: &str = "a,y\n1,u\n,v\n3,u\nNaN,v\n5,v\n6,u\n";

#[test]
fn a_gap_is_refused_unless_the_plan_says_more() {
    let advice = "correct it, or set data.missing = \"drop\" to leave out such samples, or \
                  \"impute\" to fill in the mean";
    assert_eq!(
        csv(GAPS, Missing::Refuse).unwrap_err(),
        format!("t.csv, line 3, column \"a\": the value is missing (an empty cell); {advice}")
    );
    let error = npy(&[1.0, f32::INFINITY], &[0.0, 1.0], Missing::Refuse).unwrap_err();
    assert_eq!(
        error,
        format!("x.npy, element 1: inf is infinite or too large (the limit is 3.4e38); {advice}")
    );
}

#[test]
fn samples_of_a_table_with_gaps_are_dropped() {
    let set = csv(GAPS, Missing::Drop).unwrap();
    assert_eq!(
        by_id(&set),
        ById::from([(0, vec![1.0]), (2, vec![3.0]), (4, vec![5.0]), (5, vec![6.0])])
    );
    assert!(
        set.notes[0].ends_with("left out because a value is missing: 2 of 6"),
        "{:?}",
        set.notes
    );
}

#[test]
fn gaps_of_a_table_are_filled_with_the_mean_of_the_training_part() {
    let set = csv(GAPS, Missing::Impute).unwrap();
    let (found, mean) = (by_id(&set), mean(&set, &[1, 3]));
    assert_eq!((found[&1][0], found[&3][0]), (mean, mean));
    assert_eq!((found[&0][0], found[&5][0]), (1.0, 6.0));
    assert_eq!(set.notes, ["missing features replaced by the mean of the training part: 2"]);
}

#[test]
fn every_word_for_nothing_is_a_gap() {
    for word in ["", "NaN", "nan", "NA", "null", "inf", "-inf", "1e39"] {
        let text = format!("a,b,y\n1,1,u\n{word},2,v\n3,3,u\n4,4,v\n");
        assert_eq!(csv(&text, Missing::Drop).unwrap().train.len, 2, "{word}");
        let set = csv(&text, Missing::Impute).unwrap();
        assert!(by_id(&set)[&1][0].is_finite(), "{word}");
    }
}

#[test]
fn a_name_among_features_is_no_gap() {
    for missing in [Missing::Drop, Missing::Impute] {
        let error = csv("a,y\n1,u\nred,v\n3,u\n", missing).unwrap_err();
        assert!(error.contains("\"red\" is not a number"), "{error}");
    }
}

#[test]
fn samples_of_an_array_with_gaps_are_dropped() {
    let features = [1.0, f32::NAN, 3.0, f32::INFINITY, 5.0];
    let set = npy(&features, &[0.5; 5], Missing::Drop).unwrap();
    assert_eq!(by_id(&set), ById::from([(0, vec![1.0]), (2, vec![3.0]), (4, vec![5.0])]));
}

#[test]
fn gaps_of_an_array_are_filled() {
    let features = [1.0, f32::NAN, 3.0, f32::NEG_INFINITY, 5.0];
    let set = npy(&features, &[0.5; 5], Missing::Impute).unwrap();
    let (found, mean) = (by_id(&set), mean(&set, &[1, 3]));
    assert_eq!((found[&1][0], found[&3][0]), (mean, mean));
}

#[test]
fn nulls_of_parquet_are_dropped_or_filled() {
    let read = |missing| {
        let schema = "optional int32 a; required double b; optional int32 y;";
        let columns = vec![
            ints([Some(1), None, Some(3), Some(4), Some(5)]),
            Values::Doubles([1.0, 2.0, 3.0, f64::NAN, 5.0].map(Some).into()),
            ints([Some(0), Some(1), Some(0), Some(1), Some(1)]),
        ];
        parquet(schema, columns, missing)
    };
    assert!(read(Missing::Refuse).unwrap_err().contains("row 2, column \"a\""));
    let dropped = read(Missing::Drop).unwrap();
    assert_eq!(
        by_id(&dropped),
        ById::from([(0, vec![1.0; 2]), (2, vec![3.0; 2]), (4, vec![5.0; 2])])
    );
    let filled = by_id(&read(Missing::Impute).unwrap());
    assert_eq!((filled[&1][1], filled[&3][0]), (2.0, 4.0));
    assert!(filled.values().flatten().all(|value| value.is_finite()));
}

#[test]
fn samples_without_a_label_are_dropped() {
    let ids = |set: Dataset| by_id(&set).into_keys().collect::<Vec<_>>();
    let numbers = csv("a,y\n1,0\n2,\n3,1\n4,NA\n5,inf\n6,0\n", Missing::Drop).unwrap();
    assert_eq!(ids(numbers), [0, 2, 5]);
    let names = csv("a,y\n1,u\n2,\n3,v\n4,nan\n5,\n6,\n", Missing::Drop).unwrap();
    assert_eq!(names.class_names, ["u", "v"]);
    assert_eq!(ids(names), [0, 2]);
    let floats = npy(&[1.0, 2.0, 3.0], &[0.5, f32::NAN, 1.5], Missing::Drop).unwrap();
    assert_eq!(ids(floats), [0, 2]);
    let texts = vec![
        ints([1, 2, 3, 4, 5].map(Some)),
        Values::Texts(vec![Some("u"), None, Some("v"), Some(""), Some("u")]),
    ];
    let schema = "required int32 a; optional binary y (UTF8);";
    assert_eq!(ids(parquet(schema, texts, Missing::Drop).unwrap()), [0, 2, 4]);
}

#[test]
fn a_label_is_never_made_up() {
    assert_eq!(
        csv("a,y\n1,0\n2,\n3,1\n", Missing::Impute).unwrap_err(),
        "t.csv, line 3, column \"y\": the value is missing (an empty cell); correct it, or set \
         data.missing = \"drop\" to leave out such samples"
    );
    assert!(npy(&[1.0, 2.0], &[0.5, f32::NAN], Missing::Impute).is_err());
    let columns =
        vec![ints([1, 2, 3, 4, 5].map(Some)), ints([Some(0), Some(1), None, Some(0), Some(1)])];
    let schema = "required int32 a; optional int32 y;";
    let error = parquet(schema, columns, Missing::Impute).unwrap_err();
    assert!(error.contains("row 3, column \"y\": the value is missing (null)"), "{error}");
}

#[test]
fn a_word_for_nothing_among_names_of_classes_is_a_class() {
    let set = csv("a,y\n1,u\n2,NA\n3,NA\n4,u\n", Missing::Drop).unwrap();
    assert_eq!(set.class_names, ["NA", "u"]);
}

#[test]
fn a_class_that_was_dropped_altogether_is_none() {
    let set = csv("a,y\n1,u\n2,v\n,w\n4,u\n", Missing::Drop).unwrap();
    assert_eq!((set.task, set.class_names), (Task::Binary, vec!["u".into(), "v".into()]));
}

#[test]
fn a_column_without_any_value_becomes_zero() {
    let set = csv("a,b,y\n,1,u\n,2,v\n,3,u\n,4,v\n", Missing::Impute).unwrap();
    assert!(by_id(&set).values().all(|features| features[0] == 0.0));
}

#[test]
fn at_least_two_samples_must_be_complete() {
    assert_eq!(
        csv("a,y\n,u\n,v\n", Missing::Drop).unwrap_err(),
        "t.csv without 2 incomplete samples is empty; it must hold at least two samples"
    );
    assert_eq!(
        csv("a,y\n1,u\n,v\n", Missing::Drop).unwrap_err(),
        "t.csv without 1 incomplete sample has a single sample; it must hold at least two, one to \
         learn from and one to judge by"
    );
}

#[test]
fn whole_numbers_stay_symbols_unless_a_value_was_made_up() {
    assert_eq!(csv(GAPS, Missing::Drop).unwrap().symbols, 7);
    assert!(!csv(GAPS, Missing::Impute).unwrap().integer_input);
    let whole = "a,y\n1,u\n2,v\n3,u\n4,v\n";
    assert_eq!(csv(whole, Missing::Impute).unwrap().symbols, 5);
}

fn clipping(missing: Missing) -> Data {
    Data { outliers: Outliers::Clip, ..data(table(), missing) }
}

#[test]
fn outliers_of_a_file_are_cut_before_scaling() {
    let text = "a,y\n1,u\n2,v\n3,u\n4,v\n5,u\n6,v\n7,u\n1e9,v\n";
    let files = [("t.csv", text.into())];
    let plan = clipping(Missing::Refuse);
    let set = load_files(&files, &plan).unwrap();
    assert_eq!(set.notes[0], "features cut off as outliers: 1");
    assert!(by_id(&set)[&7][0] < 30.0);
    assert!(!set.integer_input);
    let scaled = Data { scale: Scale::MinMax, ..plan };
    let scaled = load_files(&files, &scaled).unwrap();
    assert_eq!(
        scaled.preprocessing.scaling,
        Scaling::fit(Scale::MinMax, &set.train.features, &[1])
    );
}

#[test]
fn samples_with_outliers_are_dropped_from_the_training_split_only() {
    let text = "a,y\n1,u\n2,v\n3,u\n4,v\n5,u\n6,v\n7,u\n1e9,v\n8,v\n-1e9,u\n9,u\n-1e9,v\n";
    let files = [("t.csv", text.into())];
    let kept = load_files(&files, &data(table(), Missing::Refuse)).unwrap();
    let plan = Data { outliers: Outliers::Drop, ..data(table(), Missing::Refuse) };
    let set = load_files(&files, &plan).unwrap();
    let usual = |part: &Part| part.features.iter().filter(|value| value.abs() < 1e6).count();
    assert_eq!(set.train.len, usual(&kept.train));
    assert!(set.train.len < kept.train.len);
    assert_eq!(set.validation, kept.validation);
    let dropped = kept.train.len - set.train.len;
    assert_eq!(set.notes[0], format!("training samples left out for outliers: {dropped}"));
}

#[test]
fn a_mean_is_taken_without_outliers() {
    let text = "a,y\n1,u\n2,v\n3,u\n4,v\n5,u\n,v\n6,u\n7,v\n1e9,v\n-1e9,u\n";
    let set = load_files(&[("t.csv", text.into())], &clipping(Missing::Impute)).unwrap();
    assert!((-10.0..20.0).contains(&by_id(&set)[&5][0]), "{:?}", by_id(&set));
    assert_eq!(set.notes.len(), 2);
}

#[test]
fn a_complete_source_is_the_same_whatever_is_done_about_gaps() {
    let moons = |missing| {
        let source = Source::Moons { samples: 40, noise: 0.1 };
        load(&data(source, missing), 42, Path::new("")).unwrap()
    };
    let plain = moons(Missing::Refuse);
    for missing in [Missing::Drop, Missing::Impute] {
        let set = moons(missing);
        assert_eq!((set.digest, set.notes), (plain.digest, Vec::new()));
        assert_eq!(set.train.ids, plain.train.ids);
    }
}

#[test]
fn symbols_are_not_computed_with() {
    let error = |change: fn(&mut Data)| {
        let source = Source::Parity { samples: 40, length: 5 };
        let mut plan = data(source, Missing::Refuse);
        change(&mut plan);
        load(&plan, 42, Path::new("")).unwrap_err().to_string()
    };
    let imputed = error(|plan| plan.missing = Missing::Impute);
    assert!(imputed.ends_with("not measured; set missing = \"refuse\""), "{imputed}");
    let clipped = error(|plan| plan.outliers = Outliers::Clip);
    assert!(clipped.ends_with("not measured; set outliers = \"keep\""), "{clipped}");
}
