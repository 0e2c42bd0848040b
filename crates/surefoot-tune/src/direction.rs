//! Direction of optimization.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Direction of optimization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The lowest: a loss.
    #[default]
    Minimize,
    /// The highest: an accuracy.
    Maximize,
}

impl Direction {
    /// Converts a value to a cost, which is always minimized.
    pub fn cost(self, value: f64) -> f64 {
        match self {
            Direction::Minimize => value,
            Direction::Maximize => -value,
        }
    }

    /// Converts a cost back to a value.
    pub fn value(self, cost: f64) -> f64 {
        self.cost(cost)
    }

    /// Name in studies.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Minimize => "minimize",
            Direction::Maximize => "maximize",
        }
    }

    /// The direction of a name.
    pub fn named(name: &str) -> Option<Direction> {
        let all = [Direction::Minimize, Direction::Maximize];
        all.into_iter().find(|direction| direction.name() == name)
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_values_cost_less_in_both_directions() {
        assert!(Direction::Minimize.cost(0.1) < Direction::Minimize.cost(0.2));
        assert!(Direction::Maximize.cost(0.2) < Direction::Maximize.cost(0.1));
    }

    #[test]
    fn costs_and_names_round_trip() {
        for direction in [Direction::Minimize, Direction::Maximize] {
            assert_eq!(direction.value(direction.cost(0.3)), 0.3);
            assert_eq!(Direction::named(direction.name()), Some(direction));
        }
        assert_eq!(Direction::named("both"), None);
    }
}
