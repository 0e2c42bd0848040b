//! Formatting of numbers, lists and names.

/// A number with thousands separators.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 step`, `2 steps`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(count))
}

/// A count in words at the start of a sentence: `Three remedies`.
pub(crate) fn spelled(count: usize, one: &str, many: &str) -> String {
    const WORDS: [&str; 13] = [
        "No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten",
        "Eleven", "Twelve",
    ];
    let thing = if count == 1 { one } else { many };
    match WORDS.get(count) {
        Some(word) => format!("{word} {thing}"),
        None => format!("{} {thing}", grouped(count as u64)),
    }
}

/// Joins items for a sentence: `a, b and c`.
pub(crate) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

/// Display name of a metric or loss.
pub(crate) fn metric_name(id: &str) -> String {
    match id {
        "r2" => "R²".to_owned(),
        other => other.replace('_', " "),
    }
}

/// A value of a metric: accuracy in percent, others as numbers.
pub(crate) fn metric(name: &str, value: Option<f64>) -> String {
    match value {
        None => "undefined".to_owned(),
        Some(value) if name == "accuracy" && value.is_finite() => format!("{:.1}%", value * 100.0),
        Some(value) => number(value),
    }
}

/// A number with three or four significant digits.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    let sign = if value < 0.0 { "−" } else { "" };
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if size.is_infinite() {
        return format!("{sign}∞");
    }
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e6).contains(&size) {
        let text = format!("{size:.2e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{sign}{} × 10{}", trimmed(digits), superscript(power));
    }
    let decimals = match size {
        size if size >= 1000.0 => 1,
        size if size >= 100.0 => 2,
        size if size >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{size:.decimals$}");
    format!("{sign}{}", trimmed(&text))
}

/// A power of ten: written out (`0.001`) or as a power (`10⁻³`).
pub(crate) fn power_of_ten(exponent: i32, is_written_out: bool) -> String {
    let digits = exponent.unsigned_abs();
    match exponent {
        0.. if is_written_out => grouped(10_u64.saturating_pow(digits)),
        _ if is_written_out => format!("{:.*}", digits as usize, 10_f64.powi(exponent)),
        _ => format!("10{}", superscript(&exponent.to_string())),
    }
}

/// Returns true if powers of ten in this range are short enough to be written out. All ticks of an
/// axis use the same notation.
pub(crate) fn are_short(least: i32, most: i32) -> bool {
    least >= -4 && most <= 5
}

/// Removes trailing zeros of a decimal fraction.
pub(crate) fn trimmed(digits: &str) -> &str {
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    }
}

fn superscript(number: &str) -> String {
    let raised = number.chars().map(|digit| match digit {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        _ => '⁹',
    });
    raised.collect()
}

/// A duration in seconds, minutes or hours.
pub(crate) fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.2} s"),
        10..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Capitalizes the first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        None => String::new(),
        Some(first) => first.to_uppercase().chain(chars).collect(),
    }
}

/// An argument of a shell command, quoted if needed.
pub(crate) fn argument(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_or_spelled_out() {
        assert_eq!(counted(1, "step"), "1 step");
        assert_eq!(counted(1_234_567, "step"), "1,234,567 steps");
        assert_eq!(spelled(3, "remedy", "remedies"), "Three remedies");
        assert_eq!(spelled(1, "remedy", "remedies"), "One remedy");
        assert_eq!(spelled(40, "remedy", "remedies"), "40 remedies");
    }

    #[test]
    fn lists_end_with_and() {
        let items = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&items), "a, b and c");
        assert_eq!(listed(&items[..1]), "a");
    }

    #[test]
    fn accuracy_is_a_percentage() {
        assert_eq!(metric("accuracy", Some(0.4975)), "49.8%");
        assert_eq!(metric("accuracy", Some(f64::NAN)), "NaN");
        assert_eq!(metric("r2", Some(-0.25)), "−0.25");
        assert_eq!(metric("r2", None), "undefined");
    }

    #[test]
    fn numbers_keep_significant_digits() {
        let shown = [0.0, 0.7, 12.3456, 1234.56, 3.2e-9, -4e7].map(number);
        let expected = ["0", "0.7", "12.346", "1234.6", "3.2 × 10⁻⁹", "−4 × 10⁷"];
        assert_eq!(shown, expected);
        assert_eq!(number(f64::NEG_INFINITY), "−∞");
        assert_eq!([-3, 0, 3].map(|power| power_of_ten(power, true)), ["0.001", "1", "1,000"]);
        assert_eq!([-8, 0].map(|power| power_of_ten(power, false)), ["10⁻⁸", "10⁰"]);
    }

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(argument("runs/circles-001"), "runs/circles-001");
        assert_eq!(argument("my runs/it's"), r"'my runs/it'\''s'");
    }
}
