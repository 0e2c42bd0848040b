//! Durations.

use std::time::Duration;

/// Reads `90s`, `30m`, `2h`, `1h30m`, `1d`; a bare number is seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("invalid duration `{text}`; write 90s, 30m, 2h or 1h30m");
    let mut rest = text.trim();
    if let Ok(seconds) = rest.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| wrong());
    }
    let mut total = Duration::ZERO;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, tail) = rest.split_at(digits.ok_or_else(wrong)?);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let unit = tail.find(|c: char| !c.is_alphabetic());
        let (unit, tail) = tail.split_at(unit.unwrap_or(tail.len()));
        let seconds = match unit {
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return Err(wrong()),
        };
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        parts += 1;
        rest = tail.trim_start();
    }
    if parts == 0 { Err(wrong()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        for (text, seconds) in [
            ("90s", 90.0),
            ("30m", 1800.0),
            ("1h30m", 5400.0),
            ("1.5h", 5400.0),
            ("2d", 172_800.0),
            ("45", 45.0),
            ("1h 5s", 3605.0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_rejected() {
        for text in ["", "h", "5y", "1h30", "-5s", "nan", "1e999", "9999999999999999999999d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
