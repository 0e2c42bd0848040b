//! Number formatting.

use std::time::Duration;

/// Formats a count with commas between thousands.
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

/// Formats a count with its noun: `1 step`, `2 steps`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(count))
}

/// Formats a number of bytes.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB", "EB"];
    let mut size = count as f64;
    let mut unit = "bytes";
    for larger in units {
        if size < 1000.0 {
            break;
        }
        size /= 1000.0;
        unit = larger;
    }
    match unit {
        "bytes" => format!("{count} bytes"),
        _ => format!("{size:.1} {unit}"),
    }
}

/// Formats a metric: accuracy in percent, others with four decimals.
pub(crate) fn metric(name: &str, value: Option<f64>) -> String {
    match value {
        None => "undefined".to_owned(),
        Some(value) if name == "accuracy" => format!("{:.1}%", value * 100.0),
        Some(value) => format!("{value:.4}"),
    }
}

/// Formats a loss with four decimals, or in scientific notation.
pub(crate) fn loss(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => value.to_string(),
        size if size != 0.0 && !(1e-3..1e4).contains(&size) => format!("{value:.2e}"),
        _ => format!("{value:.4}"),
    }
}

/// Formats a number like [`loss`], without trailing zeros.
pub(crate) fn short(value: f64) -> String {
    let text = loss(value);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Formats a setting with six significant digits, so that it can be typed again.
pub(crate) fn significant(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    match rounded.abs() {
        size if size != 0.0 && !(1e-4..1e7).contains(&size) => format!("{rounded:e}"),
        _ => rounded.to_string(),
    }
}

/// Formats a duration.
pub(crate) fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.2} s"),
        10..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats an estimated duration.
pub(crate) fn rough_time(time: Duration) -> String {
    let whole = time.as_secs_f64().ceil() as u64;
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats an interval in steps.
pub(crate) fn interval(every: Option<u64>) -> String {
    match every {
        None => "never".to_owned(),
        Some(1) => "every step".to_owned(),
        Some(steps) => format!("every {} steps", grouped(steps)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_keep_the_digits_that_matter() {
        let numbers = [0.006_532_894_712, 1e-5, 2.0, 0.1 + 0.2, 123_456.789, 0.0];
        let texts = numbers.map(significant);
        assert_eq!(texts, ["0.00653289", "1e-5", "2", "0.3", "123457", "0"]);
    }

    #[test]
    fn thousands_are_grouped() {
        let texts = [0, 12, 999, 1000, 61_706, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "12", "999", "1,000", "61,706", "1,234,567"]);
        assert_eq!(counted(1, "step"), "1 step");
        assert_eq!(counted(1250, "step"), "1,250 steps");
    }

    #[test]
    fn bytes_have_decimal_units() {
        let texts = [999, 1000, 12_345_678, u64::MAX].map(bytes);
        assert_eq!(texts, ["999 bytes", "1.0 kB", "12.3 MB", "18.4 EB"]);
    }

    #[test]
    fn metrics_are_shown_by_their_kind() {
        assert_eq!(metric("accuracy", Some(0.985)), "98.5%");
        assert_eq!(metric("r2", Some(0.912_34)), "0.9123");
        assert_eq!(metric("r2", None), "undefined");
    }

    #[test]
    fn losses_keep_the_digits_that_matter() {
        assert_eq!(loss(0.31234), "0.3123");
        assert_eq!(loss(0.000_012_34), "1.23e-5");
        assert_eq!(loss(0.0), "0.0000");
        assert_eq!(loss(f64::NAN), "NaN");
        assert_eq!(loss(1.5e9), "1.50e9");
    }

    #[test]
    fn zeros_that_say_nothing_are_left_out() {
        let texts = [0.0, 70.0, 0.25, 1e-5, f64::INFINITY].map(short);
        assert_eq!(texts, ["0", "70", "0.25", "1.00e-5", "inf"]);
    }

    #[test]
    fn times_have_the_unit_that_suits_them() {
        assert_eq!([0.123, 9.25, 12.34].map(time), ["0.12 s", "9.25 s", "12.3 s"]);
        assert_eq!([61.0, 7260.0].map(time), ["1 min 01 s", "2 h 01 min"]);
        assert_eq!(rough_time(Duration::from_millis(1200)), "2s");
        assert_eq!(rough_time(Duration::from_secs(75)), "1m15s");
    }
}
