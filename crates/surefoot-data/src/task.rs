//! Derives the task and the targets from the labels, as stated in the plan or inferred.

use surefoot_plan::Task;

use crate::dataset::Targets;
use crate::error::{DataError, Origin, Place, Position, shortened};
use crate::samples::{Form, Labels};

/// Maximum number of distinct whole numbers that are taken for classes.
const FEW: usize = 20;

/// More classes than this are labels misread: a last layer of 65,536 units is as large as any
/// classifier of single samples has.
const MOST_CLASSES: usize = 1 << 16;

/// The targets of a task.
#[derive(Debug)]
pub(crate) struct Learnt {
    pub(crate) task: Task,
    pub(crate) targets: Targets,
    /// Columns of the targets of a position, 1 for classes.
    pub(crate) width: usize,
    /// The names of the classes or labels, none for a regression.
    pub(crate) classes: Vec<String>,
    pub(crate) notes: Vec<String>,
}

/// The targets of labels, for the task that the plan states or that the labels suggest. `columns` are
/// the names of the label columns, where the source has names.
pub(crate) fn learnt(
    labels: Labels,
    columns: &[String],
    positions: usize,
    stated: Option<Task>,
    origin: &Origin,
) -> Result<Learnt, DataError> {
    let (values, width, form) = match labels {
        Labels::Classes { ids, names } => return named(ids, names, stated, origin),
        Labels::Numbers { values, width, form } => (values, width / positions, form),
    };
    numbers(values, width, form, columns, stated, &origin.of_rows(positions))
        .map_err(|error| error.at_position(positions))
}

/// The targets of numbers, `width` at each position.
fn numbers(
    values: Vec<f64>,
    width: usize,
    form: Form,
    columns: &[String],
    stated: Option<Task>,
    origin: &Origin,
) -> Result<Learnt, DataError> {
    // The names of several classes or labels.
    let names = || match columns.len() == width {
        true => columns.to_vec(),
        false => (0..width).map(|id| id.to_string()).collect(),
    };
    let is_hot = || values.chunks(width).all(|row| hot(row).is_some());
    match (form, stated) {
        (_, Some(Task::Regression)) | (Form::Amounts, None) => Ok(amounts(&values, width)),
        (Form::Amounts, Some(task)) => {
            let advice = "say task = \"regression\"";
            Err(DataError::wrong_task(task, origin, "amounts, not classes", advice))
        }
        (_, Some(Task::MultiLabel)) => multi_label(&values, names(), origin),
        (_, Some(_)) if width > 1 => one_hot(&values, names(), stated, origin),
        (_, None) if width > 1 && is_hot() => {
            let mut learnt = one_hot(&values, names(), stated, origin)?;
            if form != Form::Integers {
                learnt.notes.push(format!(
                    "each sample in {origin} has a single 1 in {width} columns, which are taken as \
                     classes; if they are amounts, say task = \"regression\""
                ));
            }
            Ok(learnt)
        }
        (_, None) if width > 1 && values.iter().all(|&value| is_label(value)) => {
            let mut learnt = multi_label(&values, names(), origin)?;
            learnt.notes.push(format!(
                "the {width} columns of labels in {origin} are all 0 or 1 and taken as \
                 multi-label; if they are amounts, say task = \"regression\""
            ));
            Ok(learnt)
        }
        (Form::Column, Some(_)) => distinct(&values, stated, origin),
        (Form::Column, None) if width == 1 => suggested_by_column(&values, origin),
        (Form::Integers | Form::Floats, Some(_)) | (Form::Integers, None) if width == 1 => {
            numbered(&values, stated, origin)
        }
        _ => Ok(amounts(&values, width)),
    }
}

/// Each number of a row says if the sample has the label of that column.
fn multi_label(values: &[f64], names: Vec<String>, origin: &Origin) -> Result<Learnt, DataError> {
    let width = names.len();
    limit(width as f64, origin)?;
    if let Some(at) = values.iter().position(|&value| !is_label(value)) {
        return Err(not_a_class(
            origin,
            at / width,
            shortened(&values[at].to_string()),
            "every label of a multi-label task is 0 or 1",
        ));
    }
    let first = &values[..width];
    if values.chunks(width).all(|row| row == first) {
        return Err(DataError::one_class(origin, &format!("{first:?}")));
    }
    Ok(Learnt { task: Task::MultiLabel, classes: names, ..amounts(values, width) })
}

fn is_label(value: f64) -> bool {
    value == 0.0 || value == 1.0
}

/// The labels of a column: few different whole numbers are classes, anything else is amounts.
fn suggested_by_column(values: &[f64], origin: &Origin) -> Result<Learnt, DataError> {
    let few = values.iter().all(|value| value.fract() == 0.0) && levels(values).len() <= FEW;
    if !few {
        return Ok(amounts(values, 1));
    }
    let mut learnt = distinct(values, None, origin)?;
    learnt.notes.push(format!(
        "the labels in {origin} are {} different whole numbers and taken as classes; if they are \
         amounts, say task = \"regression\"",
        learnt.classes.len()
    ));
    Ok(learnt)
}

/// Each different number is a class, in ascending order.
fn distinct(values: &[f64], stated: Option<Task>, origin: &Origin) -> Result<Learnt, DataError> {
    let levels = levels(values);
    let ids = values
        .iter()
        .filter_map(|value| levels.binary_search_by(|level| level.total_cmp(&(value + 0.0))).ok())
        .map(|id| id as u32)
        .collect();
    let names = levels.iter().map(f64::to_string).collect();
    named(ids, names, stated, origin)
}

/// Each number is the number of a class, from 0.
fn numbered(values: &[f64], stated: Option<Task>, origin: &Origin) -> Result<Learnt, DataError> {
    let wrong = |value: f64| value < 0.0 || value.fract() != 0.0;
    if let Some(sample) = values.iter().position(|&value| wrong(value)) {
        return Err(not_a_class(
            origin,
            sample,
            shortened(&values[sample].to_string()),
            "classes are numbered 0, 1, 2, ... (amounts need task = \"regression\")",
        ));
    }
    let last = values.iter().copied().fold(0.0, f64::max);
    limit(last + 1.0, origin)?;
    let ids = values.iter().map(|&value| value as u32).collect();
    let names = (0..=last as usize).map(|id| id.to_string()).collect();
    named(ids, names, stated, origin)
}

/// Each row is 1 at its class and 0 elsewhere.
fn one_hot(
    values: &[f64],
    names: Vec<String>,
    stated: Option<Task>,
    origin: &Origin,
) -> Result<Learnt, DataError> {
    let width = names.len();
    let mut ids = Vec::with_capacity(values.len() / width);
    for (sample, row) in values.chunks(width).enumerate() {
        ids.push(hot(row).ok_or_else(|| {
            not_a_class(
                origin,
                sample,
                shortened(&format!("{row:?}")),
                "a row of several labels must be 1 at one place and 0 elsewhere (rows with any \
                 number of ones need task = \"multi_label\")",
            )
        })?);
    }
    named(ids, names, stated, origin)
}

/// Index of the 1 in a one-hot row.
fn hot(row: &[f64]) -> Option<u32> {
    let place = row.iter().position(|&value| value == 1.0)?;
    let zeros = row.iter().filter(|&&value| value == 0.0).count();
    (zeros + 1 == row.len()).then_some(place as u32)
}

fn named(
    ids: Vec<u32>,
    names: Vec<String>,
    stated: Option<Task>,
    origin: &Origin,
) -> Result<Learnt, DataError> {
    limit(names.len() as f64, origin)?;
    let mut notes = Vec::new();
    let mut counts = vec![0_usize; names.len()];
    for &id in &ids {
        counts[id as usize] += 1;
    }
    let seen = counts.iter().filter(|&&count| count > 0).count();
    if seen < 2 {
        let class = ids.first().map_or("none", |&id| &names[id as usize]);
        return Err(DataError::one_class(origin, class));
    }
    let task = match stated {
        None if names.len() == 2 => Task::Binary,
        None => Task::MultiClass,
        Some(Task::Binary) if names.len() != 2 => {
            let found = format!("{} classes", names.len());
            let advice = "say task = \"multi_class\", or number the two classes 0 and 1";
            return Err(DataError::wrong_task(Task::Binary, origin, &found, advice));
        }
        Some(task @ (Task::Regression | Task::MultiLabel)) => {
            let found = format!("classes such as {:?}", shortened(&names[0]));
            let advice = "leave task out, or give labels that are numbers";
            return Err(DataError::wrong_task(task, origin, &found, advice));
        }
        Some(task) => task,
    };
    if names.len() > FEW && 2 * names.len() > ids.len() {
        notes.push(format!(
            "{origin} has {} classes for {} samples; are the labels what is to be learnt?",
            names.len(),
            ids.len()
        ));
    }
    if seen < names.len() {
        let absent: Vec<&str> = names
            .iter()
            .zip(&counts)
            .filter(|(_, count)| **count == 0)
            .map(|(name, _)| name.as_str())
            .take(5)
            .collect();
        notes.push(format!(
            "{} of {} classes have no samples in {origin}, such as {}",
            names.len() - seen,
            names.len(),
            absent.join(", ")
        ));
    }
    Ok(Learnt { task, targets: Targets::Classes(ids), width: 1, classes: names, notes })
}

fn amounts(values: &[f64], width: usize) -> Learnt {
    Learnt {
        task: Task::Regression,
        targets: Targets::Values(values.iter().map(|&value| value as f32).collect()),
        width,
        classes: Vec::new(),
        notes: Vec::new(),
    }
}

/// The different values in ascending order, with a single zero.
fn levels(values: &[f64]) -> Vec<f64> {
    let mut levels: Vec<f64> = values.iter().map(|value| value + 0.0).collect();
    levels.sort_unstable_by(f64::total_cmp);
    levels.dedup();
    levels
}

fn limit(classes: f64, origin: &Origin) -> Result<(), DataError> {
    if classes <= MOST_CLASSES as f64 {
        return Ok(());
    }
    Err(DataError::new(format!(
        "{origin} has {classes} classes, and at most {MOST_CLASSES} are allowed; if the labels are amounts, say task = \"regression\""
    )))
}

fn not_a_class(origin: &Origin, sample: usize, value: String, expected: &'static str) -> DataError {
    let (origin, sample) = origin.of_sample(sample);
    let position = Position::Element { sample, index: Vec::new() };
    let place = Box::new(Place { file: origin.to_string().into(), position });
    DataError::value(place, format!("{value} is not a class; {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(
        values: &[f64],
        width: usize,
        form: Form,
        stated: Option<Task>,
    ) -> Result<Learnt, String> {
        let labels = Labels::Numbers { values: values.to_vec(), width, form };
        learnt(labels, &[], 1, stated, &Origin::File("y".into())).map_err(|error| error.to_string())
    }

    fn ids(learnt: &Learnt) -> &[u32] {
        match &learnt.targets {
            Targets::Classes(ids) => ids,
            Targets::Values(_) => panic!("classes expected"),
        }
    }

    #[test]
    fn a_column_of_few_whole_numbers_is_classes() {
        let learnt = from(&[3.0, -1.0, 3.0, 7.0], 1, Form::Column, None).unwrap();
        assert_eq!(learnt.task, Task::MultiClass);
        assert_eq!(learnt.classes, ["-1", "3", "7"]);
        assert_eq!(ids(&learnt), [1, 0, 1, 2]);
    }

    #[test]
    fn two_classes_are_binary() {
        let learnt = from(&[0.0, 1.0, -0.0], 1, Form::Column, None).unwrap();
        assert_eq!(learnt.task, Task::Binary);
        assert_eq!(ids(&learnt), [0, 1, 0]);
    }

    #[test]
    fn a_column_of_fractions_or_of_many_numbers_is_amounts() {
        let many: Vec<f64> = (0..21).map(f64::from).collect();
        for values in [&many[..], &[0.5, 1.0]] {
            let learnt = from(values, 1, Form::Column, None).unwrap();
            assert_eq!(learnt.task, Task::Regression);
            assert!(learnt.classes.is_empty());
        }
        let few = from(&many[..20], 1, Form::Column, None).unwrap();
        assert_eq!(few.task, Task::MultiClass);
    }

    #[test]
    fn a_stated_task_beats_what_the_column_suggests() {
        let whole = from(&[0.0, 1.0], 1, Form::Column, Some(Task::Regression)).unwrap();
        assert_eq!(whole.targets, Targets::Values(vec![0.0, 1.0]));
        let broken = from(&[0.5, 1.5], 1, Form::Column, Some(Task::MultiClass)).unwrap();
        assert_eq!(broken.classes, ["0.5", "1.5"]);
    }

    #[test]
    fn integers_of_an_array_number_the_classes() {
        let learnt = from(&[0.0, 3.0], 1, Form::Integers, None).unwrap();
        assert_eq!(learnt.classes.len(), 4);
        assert!(learnt.notes[0].contains("2 of 4 classes have no samples"));
    }

    #[test]
    fn a_negative_class_is_refused() {
        let error = from(&[0.0, -1.0], 1, Form::Integers, None).unwrap_err();
        assert!(error.starts_with("y, element 1: -1 is not a class"), "{error}");
    }

    #[test]
    fn floats_of_an_array_are_amounts_unless_stated() {
        let learnt = from(&[0.0, 1.0], 1, Form::Floats, None).unwrap();
        assert_eq!(learnt.task, Task::Regression);
        let learnt = from(&[0.0, 1.0], 1, Form::Floats, Some(Task::Binary)).unwrap();
        assert_eq!(ids(&learnt), [0, 1]);
        assert!(from(&[0.0, 0.5], 1, Form::Floats, Some(Task::Binary)).is_err());
    }

    #[test]
    fn rows_with_a_single_one_are_classes() {
        let rows = [0.0, 1.0, 0.0, 1.0, 0.0, 0.0];
        let learnt = from(&rows, 3, Form::Integers, None).unwrap();
        assert_eq!(ids(&learnt), [1, 0]);
        let learnt = from(&rows, 3, Form::Floats, None).unwrap();
        assert_eq!((learnt.task, learnt.width), (Task::MultiClass, 1));
        assert!(learnt.notes.iter().any(|note| note.contains("a single 1 in 3 columns")));
        let error = from(&[1.0, 1.0], 2, Form::Floats, Some(Task::MultiClass)).unwrap_err();
        assert!(error.contains("[1.0, 1.0] is not a class"), "{error}");
    }

    #[test]
    fn rows_of_zeros_and_ones_are_labels() {
        let rows = [0.0, 1.0, 1.0, 0.0, 0.0, 0.0];
        for form in [Form::Integers, Form::Floats, Form::Column] {
            let learnt = from(&rows, 3, form, None).unwrap();
            assert_eq!((learnt.task, learnt.width), (Task::MultiLabel, 3));
            assert_eq!(learnt.classes, ["0", "1", "2"]);
            assert_eq!(learnt.targets, Targets::Values(rows.map(|value| value as f32).to_vec()));
            assert!(learnt.notes[0].contains("say task = \"regression\""));
        }
        let learnt = from(&[0.0, 1.0, 1.0, 2.0], 2, Form::Integers, None).unwrap();
        assert_eq!((learnt.task, learnt.width), (Task::Regression, 2));
    }

    #[test]
    fn a_stated_multi_label_task_needs_zeros_and_ones() {
        let one_hot = [0.0, 1.0, 1.0, 0.0];
        let learnt = from(&one_hot, 2, Form::Integers, Some(Task::MultiLabel)).unwrap();
        assert_eq!(learnt.task, Task::MultiLabel);
        let error = from(&[0.0, 1.0, 0.5, 0.0], 2, Form::Floats, Some(Task::MultiLabel));
        let error = error.unwrap_err();
        assert!(error.starts_with("y, element 1: 0.5 is not a class"), "{error}");
        let error = from(&[0.0, 1.0, 0.0, 1.0], 2, Form::Integers, Some(Task::MultiLabel));
        assert_eq!(error.unwrap_err(), "only one class ([0.0, 1.0]) in y; nothing to learn");
    }

    #[test]
    fn every_position_of_a_sequence_has_a_target() {
        let sequences = |values: &[f64], width| {
            let labels = Labels::Numbers { values: values.to_vec(), width, form: Form::Integers };
            learnt(labels, &[], 2, None, &Origin::File("y".into())).map_err(|it| it.to_string())
        };
        let classes = sequences(&[0.0, 2.0, 1.0, 0.0], 2).unwrap();
        assert_eq!((classes.task, ids(&classes)), (Task::MultiClass, &[0, 2, 1, 0][..]));
        let one_hot = sequences(&[0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0], 4).unwrap();
        assert_eq!((one_hot.task, ids(&one_hot)), (Task::Binary, &[1, 0, 1, 1][..]));
        let amounts = sequences(&[0.0, 1.0, 5.0, 0.0, 0.0, 1.0, 0.0, 1.0], 4).unwrap();
        assert_eq!((amounts.task, amounts.width), (Task::Regression, 2));
        let error = sequences(&[0.0, 1.0, 1.0, -1.0], 2).unwrap_err();
        assert!(error.starts_with("y, element [1, 1]: -1 is not a class"), "{error}");
    }

    #[test]
    fn one_class_is_nothing_to_learn() {
        for form in [Form::Column, Form::Integers] {
            let error = from(&[2.0, 2.0], 1, form, None).unwrap_err();
            assert_eq!(error, "only one class (2) in y; nothing to learn");
        }
    }

    #[test]
    fn binary_needs_two_classes() {
        let error = from(&[0.0, 1.0, 2.0], 1, Form::Column, Some(Task::Binary)).unwrap_err();
        assert!(error.contains("has 3 classes"), "{error}");
    }

    #[test]
    fn named_classes_are_no_amounts() {
        let labels = Labels::Classes { ids: vec![0, 1], names: vec!["cat".into(), "dog".into()] };
        let origin = Origin::File("pets".into());
        let error = learnt(labels, &[], 1, Some(Task::Regression), &origin).unwrap_err();
        assert!(error.to_string().contains("\"cat\""), "{error}");
    }

    #[test]
    fn labels_beyond_all_classes_are_refused() {
        let error = from(&[0.0, 1e18], 1, Form::Integers, None).unwrap_err();
        assert!(error.contains("say task = \"regression\""), "{error}");
    }
}
