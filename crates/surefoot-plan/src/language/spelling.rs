//! Suggestions for misspelt names.

use strsim::osa_distance;

/// The candidate closest to `written`, if one is close enough to be what was meant.
///
/// ```
/// use surefoot_plan::nearest;
///
/// assert_eq!(nearest("unit", ["units", "use_bias"]), Some("units"));
/// assert_eq!(nearest("momentum", ["units", "use_bias"]), None);
/// ```
pub fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written = squashed(written);
    let begun = |candidate: &str| written.len() >= 3 && squashed(candidate).starts_with(&written);
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(&written, &squashed(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.len() / 3) || begun(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Compares two names, ignoring case and underscores (`Conv2D` and `conv2d`).
pub(super) fn same(a: &str, b: &str) -> bool {
    squashed(a) == squashed(b)
}

fn squashed(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distant_names_are_not_suggested() {
        let keys = ["units", "use_bias", "name"];
        assert_eq!(nearest("unit", keys), Some("units"));
        assert_eq!(nearest("usebias", keys), Some("use_bias"));
        assert_eq!(nearest("momentum", keys), None);
        assert_eq!(nearest("train", ["name", "training"]), Some("training"));
    }

    #[test]
    fn case_and_underscores_are_ignored() {
        assert!(same("MaxPooling2D", "max_pooling2d"));
        assert!(!same("conv1d", "conv2d"));
    }
}
