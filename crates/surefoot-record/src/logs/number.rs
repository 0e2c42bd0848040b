//! Numbers as programs write them.

/// Parses a number, also in the spellings of NaN and infinity that `f64` does not know: `nan(ind)` and
/// `1.#QNAN` of the C library of Windows, `nanxxx` of Paddle, `tensor(0.5)` of PyTorch.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let text = unwrapped(text.trim());
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let lower = text.to_ascii_lowercase();
    let (sign, digits) = match lower.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, lower.strip_prefix('+').unwrap_or(&lower)),
    };
    let is_nan = |rest: &str| rest.starts_with('(') || rest.trim_matches('x').is_empty();
    if digits.strip_prefix("nan").is_some_and(is_nan) {
        return Some(f64::NAN);
    }
    match digits.strip_prefix("1.#")?.trim_end_matches('0') {
        "inf" => Some(sign * f64::INFINITY),
        "qnan" | "snan" | "ind" | "nan" => Some(f64::NAN),
        _ => None,
    }
}

/// The number inside `tensor(0.5, device='cuda:0')` or `np.float64(0.5)`.
fn unwrapped(text: &str) -> &str {
    const WRAPPERS: &[&str] = &["tensor", "array", "np.float64", "np.float32", "float"];
    let inside = text.split_once('(').filter(|(wrapper, _)| WRAPPERS.contains(wrapper));
    inside.map_or(text, |(_, inside)| inside.split([',', ')']).next().unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_nan_and_infinity_is_known() {
        let nan = "nan NaN NAN -nan nan(ind) -nan(ind) nan(snan) NaN(0x7ff) nanxxx 1.#QNAN 1.#IND00 \
                   -1.#IND tensor(nan) tensor(nan,device='cuda:0')";
        for text in nan.split(' ').filter(|text| !text.is_empty()) {
            assert!(parse(text).is_some_and(f64::is_nan), "{text}");
        }
        for text in ["inf", "Infinity", "+inf", "1.#INF", "1.#INF00", "tensor(inf)"] {
            assert_eq!(parse(text), Some(f64::INFINITY), "{text}");
        }
        assert_eq!(parse("-1.#INF"), Some(f64::NEG_INFINITY));
        assert_eq!(parse("np.float64(0.5)"), Some(0.5));
        for text in ["", "nancy", "nano", "info", "1.#", "tensor", "array()"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
