//! Tables of any file format: named columns, one of them the label.

use std::collections::HashMap;
use std::path::Path;

use crate::error::{DataError, list, shortened};
use crate::samples::Labels;

/// Returns the indices of the label columns: those in the plan, or the last.
///
/// # Errors
///
/// If one is missing, if there are no other columns, or if two columns share a name.
pub(crate) fn label_columns(
    path: &Path,
    columns: &[String],
    labels: &[String],
) -> Result<Vec<usize>, DataError> {
    let mut seen = HashMap::new();
    for (number, column) in (1..).zip(columns) {
        if let Some(first) = seen.insert(column, number) {
            return Err(DataError::new(format!(
                "{} has two columns named {:?} (numbers {first} and {number}); rename or remove one",
                path.display(),
                shortened(column)
            )));
        }
    }
    let mut found = Vec::new();
    for label in labels {
        match columns.iter().position(|column| column == label) {
            Some(at) => found.push(at),
            None => {
                return Err(DataError::new(format!(
                    "{} has no column {label:?} to take the label from; its columns are {}",
                    path.display(),
                    list(columns)
                )));
            }
        }
    }
    if labels.is_empty() {
        found.extend(columns.len().checked_sub(1));
    }
    match found.len() == columns.len() {
        true => Err(DataError::no_features(path, columns.first().map_or("", String::as_str))),
        false => Ok(found),
    }
}

/// Classes by name, in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<String, u32>,
    ids: Vec<u32>,
}

impl Names {
    /// Adds the class of the next sample.
    pub(crate) fn push(&mut self, name: &str) {
        let id = match self.known.get(name) {
            Some(&id) => id,
            None => {
                let id = self.known.len() as u32;
                self.known.insert(name.to_owned(), id);
                id
            }
        };
        self.ids.push(id);
    }

    /// The labels, with the classes in the order of their names.
    pub(crate) fn labels(self) -> Labels {
        let mut sorted: Vec<(String, u32)> = self.known.into_iter().collect();
        sorted.sort_unstable();
        let mut places = vec![0; sorted.len()];
        for (place, (_, id)) in (0..).zip(&sorted) {
            places[*id as usize] = place;
        }
        Labels::Classes {
            ids: self.ids.iter().map(|&id| places[id as usize]).collect(),
            names: sorted.into_iter().map(|(name, _)| name).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(columns: &[&str], label: &[&str]) -> Result<Vec<usize>, String> {
        let owned = |names: &[&str]| -> Vec<String> { names.iter().map(|&n| n.into()).collect() };
        label_columns(Path::new("t.csv"), &owned(columns), &owned(label))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_label_is_the_column_named_or_the_last() {
        assert_eq!(label(&["a", "b", "c"], &["b"]), Ok(vec![1]));
        assert_eq!(label(&["a", "b", "c"], &[]), Ok(vec![2]));
        assert_eq!(label(&["a", "b", "c"], &["c", "a"]), Ok(vec![2, 0]));
    }

    #[test]
    fn a_missing_label_lists_the_columns() {
        assert_eq!(
            label(&["a", "b"], &["y"]).unwrap_err(),
            "t.csv has no column \"y\" to take the label from; its columns are \"a\", \"b\""
        );
    }

    #[test]
    fn columns_need_names_of_their_own() {
        assert_eq!(
            label(&["a", "b", "a"], &[]).unwrap_err(),
            "t.csv has two columns named \"a\" (numbers 1 and 3); rename or remove one"
        );
    }

    #[test]
    fn a_label_alone_is_not_enough() {
        assert!(label(&["y"], &[]).unwrap_err().contains("nothing to learn it from"));
    }

    #[test]
    fn classes_are_in_the_order_of_their_names() {
        let mut names = Names::default();
        for name in ["pear", "apple", "pear", "fig"] {
            names.push(name);
        }
        let Labels::Classes { ids, names } = names.labels() else {
            panic!("classes expected");
        };
        assert_eq!(names, ["apple", "fig", "pear"]);
        assert_eq!(ids, [2, 0, 2, 1]);
    }
}
