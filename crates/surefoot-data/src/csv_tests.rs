//! Tests of CSV files, each a file in a few lines.

use super::*;

fn selected(labels: &[String]) -> Selection<'_> {
    Selection { labels, exclude: &[], categorical: &[], columns: None }
}

fn names(samples: &Samples) -> Vec<&str> {
    samples.columns.iter().map(|column| column.name.as_str()).collect()
}

fn read_as(text: &[u8], labels: &[&str], task: Option<Task>) -> Result<Samples, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, text).unwrap();
    let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
    csv(&path, selected(&labels), task, Missing::Refuse).map_err(|error| {
        let message = error.to_string();
        message.replace(&path.display().to_string(), "t.csv")
    })
}

fn read(text: &str) -> Result<Samples, String> {
    read_as(text.as_bytes(), &[], None)
}

fn error(text: &str) -> String {
    read(text).unwrap_err()
}

#[test]
fn numbers_are_features_and_the_last_column_is_the_label() {
    let samples = read("a,b,y\n1,2.5,0\n-3,4e1,1\n").unwrap();
    assert_eq!(samples.features, [1.0, 2.5, -3.0, 40.0]);
    assert_eq!(names(&samples), ["a", "b"]);
    assert!(matches!(
        samples.labels,
        Labels::Numbers { values, width: 1, form: Form::Column } if values == [0.0, 1.0]
    ));
}

#[test]
fn the_label_column_can_be_any() {
    let samples = read_as(b"y,a\n0,5\n1,6\n", &["y"], None).unwrap();
    assert_eq!(samples.features, [5.0, 6.0]);
    assert_eq!(names(&samples), ["a"]);
}

#[test]
fn several_label_columns_are_rows_of_labels() {
    let samples = read_as(b"rain,a,snow\n0,5,1\n1,6,1\n", &["snow", "rain"], None).unwrap();
    assert_eq!(samples.features, [5.0, 6.0]);
    assert_eq!(samples.label_columns, ["snow", "rain"]);
    assert!(matches!(
        samples.labels,
        Labels::Numbers { values, width: 2, .. } if values == [1.0, 0.0, 1.0, 1.0]
    ));
    let error = read_as(b"rain,a,snow\n0,5,much\n", &["snow", "rain"], None).unwrap_err();
    assert!(error.starts_with("t.csv, line 2, column \"snow\": \"much\""), "{error}");
    assert!(error.contains("several label columns have to be numbers"), "{error}");
}

#[test]
fn a_label_column_of_names_is_classes() {
    let samples = read("a,kind\n1,rose\n2,lily\n3,rose\n").unwrap();
    assert!(matches!(
        samples.labels,
        Labels::Classes { ids, names } if ids == [1, 0, 1] && names == ["lily", "rose"]
    ));
}

#[test]
fn quotes_spaces_blank_lines_and_other_line_ends_are_understood() {
    let samples = read("\u{feff}\"a, b\" , y\r\n\" 1 \", 2\r\n\r\n3,4\r\n").unwrap();
    assert_eq!(names(&samples), ["a, b"]);
    assert_eq!(samples.features, [1.0, 3.0]);
}

#[test]
fn semicolons_and_tabs_separate_too() {
    for text in ["a;y\n1;2\n3;4\n", "a\ty\n1\t2\n3\t4\n"] {
        assert_eq!(read(text).unwrap().features, [1.0, 3.0]);
    }
}

#[test]
fn truth_is_a_number_among_features_and_a_name_as_label() {
    let samples = read("a,y\nTrue,True\nfalse,False\n").unwrap();
    assert_eq!(samples.features, [1.0, 0.0]);
    assert!(matches!(samples.labels, Labels::Classes { .. }));
}

#[test]
fn small_whole_numbers_may_be_symbols() {
    assert_eq!(read("a,y\n1,0\n2,1\n").unwrap().measure, Measure::Whole);
    assert_eq!(read("a,y\n-1,0\n2,1\n").unwrap().measure, Measure::Amounts);
    assert_eq!(read("a,y\n1.5,0\n2,1\n").unwrap().measure, Measure::Amounts);
}

#[test]
fn nan_names_line_and_column() {
    assert_eq!(
        error("a,b,y\n1,2,0\n3,NaN,1\n"),
        "t.csv, line 3, column \"b\": the value is missing (NaN); correct it, or set \
         data.missing = \"drop\" to leave out such samples, or \"impute\" to fill in the mean"
    );
}

#[test]
fn empty_cells_and_words_for_nothing_are_missing() {
    assert!(
        error("a,y\n1,0\n,1\n")
            .starts_with("t.csv, line 3, column \"a\": the value is missing (an empty cell)")
    );
    for word in ["NA", "n/a", "null", "None", "?"] {
        let error = error(&format!("a,y\n1,0\n{word},1\n"));
        assert!(error.contains(&format!("missing ({word})")), "{error}");
    }
    assert!(error("a,y\n1,0\n2,\n").contains("line 3, column \"y\": the value is missing"));
    assert!(error("a,y\n1,0\n2,nan\n").contains("line 3, column \"y\": the value is missing"));
}

#[test]
fn infinity_and_what_overflows_are_refused() {
    for word in ["inf", "-Infinity", "1e39"] {
        let error = error(&format!("a,y\n1,0\n{word},1\n"));
        assert!(
            error.starts_with(&format!("t.csv, line 3, column \"a\": {word} is infinite")),
            "{error}"
        );
    }
}

#[test]
fn a_name_among_features_is_shown() {
    assert_eq!(
        error("a,colour,y\n1,red,0\n"),
        "t.csv, line 2, column \"colour\": \"red\" is not a number; correct it, or list the \
         column in data.source.categorical, or leave it out with data.source.exclude"
    );
}

#[test]
fn lines_are_those_of_the_file() {
    let error = error("a,\"two\nlines\",y\n\n1,2,0\n\n\n3,x,1\n");
    assert!(error.starts_with("t.csv, line 7, column \"two\\nlines\""), "{error}");
}

#[test]
fn lines_that_end_as_on_windows_are_counted_once() {
    let error = error("a,y\r\n1,0\r\n\r\nx,1\r\n");
    assert!(error.starts_with("t.csv, line 4, "), "{error}");
}

#[test]
fn a_missing_header_is_noticed() {
    assert_eq!(
        error("5.1,3.5,0\n4.9,3.0,1\n"),
        "t.csv has no header: every cell of its first line is a number (the first is \"5.1\"); \
         add a line with the names of the columns"
    );
}

#[test]
fn files_without_samples_are_refused() {
    assert_eq!(error(""), "t.csv is empty; it must hold at least two samples");
    assert_eq!(error("\n\n"), "t.csv is empty; it must hold at least two samples");
    assert_eq!(error("a,b,y\n"), "t.csv has a header but no samples; it must hold at least two");
}

#[test]
fn a_ragged_line_is_named() {
    assert_eq!(
        error("a,b,y\n1,2,0\n3,4\n"),
        "t.csv, line 3: 2 cells where the header has 3; add or remove cells (a cell with a comma \
         needs quotes)"
    );
}

#[test]
fn another_encoding_is_named() {
    let error = read_as(b"a,y\n1,caf\xe9\n", &[], None).unwrap_err();
    assert_eq!(
        error,
        "t.csv is not a valid CSV file: line 2 is not UTF-8; save it in that encoding"
    );
}

#[test]
fn a_name_among_numeric_labels_is_a_mistake_unless_they_are_classes() {
    let text = "a,y\n1,1\n2,2\n3,oops\n";
    assert!(error(text).starts_with("t.csv, line 4, column \"y\": \"oops\" is not a number"));
    let stated = read_as(text.as_bytes(), &[], Some(Task::MultiClass)).unwrap();
    assert!(matches!(stated.labels, Labels::Classes { names, .. } if names == ["1", "2", "oops"]));
}

#[test]
fn a_regression_needs_numbers() {
    let error = read_as(b"a,y\n1,red\n", &[], Some(Task::Regression)).unwrap_err();
    assert!(error.ends_with("the labels of a regression are numbers"), "{error}");
}

#[test]
fn a_saved_index_is_remarked_on() {
    let samples = read(",a,y\n0,5,1\n1,6,0\n").unwrap();
    assert!(samples.notes[0].contains("index=False"));
}

#[test]
fn a_missing_file_is_named() {
    let error = csv(Path::new("nowhere/t.csv"), selected(&[]), None, Missing::Refuse).unwrap_err();
    assert!(error.to_string().starts_with("cannot read nowhere/t.csv: "), "{error}");
}

/// The features and inputs of a file with two columns of categories and an excluded one.
fn encoded(text: &str, missing: Missing) -> Result<(Vec<f32>, Vec<String>), String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, text).unwrap();
    let (exclude, categorical) = (["id".to_owned()], ["color".to_owned(), "size".to_owned()]);
    let selection =
        Selection { labels: &[], exclude: &exclude, categorical: &categorical, columns: None };
    let samples = csv(&path, selection, None, missing).map_err(|error| error.to_string())?;
    let inputs = samples.columns.iter().flat_map(Column::inputs).collect();
    Ok((samples.features, inputs))
}

#[test]
fn categories_are_encoded_and_excluded_columns_left_out() {
    let text = "id,color,x,size,y\nA,red,1,L,0\nB,blue,2,NA,1\nC,red,3,L,1\n";
    let (features, inputs) = encoded(text, Missing::Refuse).unwrap();
    assert_eq!(inputs, ["color=blue", "color=red", "x", "size=L", "size=NA"]);
    assert_eq!(features[..5], [0.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!(features[5..10], [1.0, 0.0, 2.0, 0.0, 1.0]);
}

#[test]
fn an_empty_category_is_a_missing_value() {
    let text = "id,color,x,size,y\nA,red,1,L,0\nB,,2,L,1\n";
    let error = encoded(text, Missing::Refuse).unwrap_err();
    assert!(error.contains("line 3, column \"color\": the value is missing"), "{error}");
    let (features, _) = encoded(text, Missing::Impute).unwrap();
    assert!(features[3].is_nan());
}

#[test]
fn a_named_column_must_exist() {
    let error = encoded("id,x,size,y\nA,1,L,0\n", Missing::Refuse).unwrap_err();
    let expected = "has no column \"color\", which data.source.categorical names";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_column_of_identifiers_is_not_encoded() {
    let mut text = "id,color,x,size,y\n".to_owned();
    for row in 0..1001 {
        text.push_str(&format!("A,c{row},1,L,{}\n", row % 2));
    }
    let error = encoded(&text, Missing::Refuse).unwrap_err();
    assert!(error.contains("column \"color\" has more than 1000 categories"), "{error}");
}

#[test]
fn a_file_larger_than_memory_is_refused_by_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.csv");
    // Sparse: it takes no room on the disk.
    std::fs::File::create(&path).unwrap().set_len(1 << 42).unwrap();
    let error = super::read(&path).unwrap_err().to_string();
    assert!(error.contains("needs 4398046511104 bytes of memory"), "{error}");
}

#[test]
fn categories_larger_than_memory_are_refused_before_they_are_encoded() {
    let bytes = ["a,b\n".to_owned(), "\n".repeat((1 << 20) - 1)].concat();
    let mut file = Text::open(Path::new("x.csv"), bytes.as_bytes(), Missing::Refuse).unwrap();
    let categories = Some(vec![String::new(); 1 << 20]);
    file.features = vec![(0, Column { name: "a".to_owned(), categories })];
    let error = file.rows().err().unwrap().to_string();
    assert!(error.contains("needs 4398046511104 bytes of memory"), "{error}");
}
