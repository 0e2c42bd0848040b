//! A study for tests.

use super::NewStudy;
use crate::Direction;
use crate::space::Space;

/// A study without parameters.
pub(super) fn digits() -> NewStudy {
    NewStudy {
        name: "digits".to_owned(),
        fingerprint: String::new(),
        document: String::new(),
        space: Space::new(Vec::new()).expect("a space"),
        direction: Direction::Minimize,
        seed: 1,
    }
}
