//! SVG elements shared by charts.

use maud::{Markup, html};

use crate::scale::Scale;

/// A position from 0 to 1 in percent.
pub(crate) fn percent(place: f64) -> String {
    format!("{}%", short(100.0 * place))
}

/// A number with at most two decimals.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    match crate::format::trimmed(&text) {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// Drops items that are closer than `gap` to the previous one.
pub(crate) fn apart<T>(places: impl Iterator<Item = (f64, T)>, gap: f64) -> Vec<(f64, T)> {
    let mut kept: Vec<(f64, T)> = Vec::new();
    for (place, what) in places {
        if kept.last().is_none_or(|(last, _)| place - last >= gap) {
            kept.push((place, what));
        }
    }
    kept
}

/// Draws the ticks and the label of a horizontal axis.
pub(crate) fn x_axis(scale: &Scale, name: &str) -> Markup {
    let mut ticks = scale.ticks(5);
    // Steps and epochs are whole numbers.
    ticks.retain(|tick| tick.value.fract() == 0.0);
    html! {
        @for tick in &ticks {
            @let x = percent(tick.place);
            line.tick x1=(x) x2=(x) y1="100%" y2="100%" {}
            text x=(x) y="100%" dy="20" text-anchor="middle" { (scale.label(tick)) }
        }
        text.name x="50%" y="100%" dy="38" text-anchor="middle" { (name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, -0.001, 0.125, 1.0].map(percent), ["0%", "-0.1%", "12.5%", "100%"]);
        assert_eq!(short(-0.0001), "0");
    }

    #[test]
    fn items_that_are_too_close_are_dropped() {
        let places = [0.1, 0.11, 0.2, 0.21].map(|place| (place, ()));
        assert_eq!(apart(places.into_iter(), 0.05).len(), 2);
    }
}
