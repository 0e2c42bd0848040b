//! Names that are nearly right.

/// The candidate a person probably meant, if one is near.
pub fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written = squashed(written);
    let begun = |candidate: &str| written.len() >= 3 && squashed(candidate).starts_with(&written);
    candidates
        .into_iter()
        .map(|candidate| (distance(&written, &squashed(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.len() / 3) || begun(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether two names are the same but for case and underscores (`Conv2D` and `conv2d`).
pub(super) fn same(a: &str, b: &str) -> bool {
    squashed(a) == squashed(b)
}

fn squashed(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Insertions, deletions, substitutions and swaps of neighbours between two words (the optimal
/// string alignment distance).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substitution = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = substitution.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("units", "units"), 0);
        assert_eq!(distance("unit", "units"), 1);
        assert_eq!(distance("untis", "units"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn nearest_ignores_what_is_far() {
        let keys = ["units", "use_bias", "name"];
        assert_eq!(nearest("unit", keys), Some("units"));
        assert_eq!(nearest("usebias", keys), Some("use_bias"));
        assert_eq!(nearest("momentum", keys), None);
        assert_eq!(nearest("train", ["name", "training"]), Some("training"));
    }

    #[test]
    fn names_are_the_same_but_for_case_and_underscores() {
        assert!(same("MaxPooling2D", "max_pooling2d"));
        assert!(!same("conv1d", "conv2d"));
    }
}
