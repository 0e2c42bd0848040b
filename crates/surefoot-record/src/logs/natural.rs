//! Natural order of names: `layer2` before `layer10`.

/// A part of a name: a number, or text between numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Number(u64),
    Text(String),
}

/// A key that sorts names with numbers by the numbers.
pub(crate) fn key(name: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.starts_with(|c: char| c.is_ascii_digit());
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(match part.parse() {
            Ok(number) if digits => Part::Number(number),
            _ => Part::Text(part.to_owned()),
        });
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_comes_before_ten() {
        let mut names = ["h.10.w", "h.2.w", "h.2.b", "a"];
        names.sort_by_key(|name| key(name));
        assert_eq!(names, ["a", "h.2.b", "h.2.w", "h.10.w"]);
    }
}
