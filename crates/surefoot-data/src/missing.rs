//! Values that are missing: where they are let through and what is said where they are not.

use std::fmt::Display;

use surefoot_plan::Missing;

use crate::error::{DataError, Place, shortened};

/// Whether the numbers of a column or an array may be missing, that is NaN or infinite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps {
    allowed: bool,
    /// What to do about one that is not allowed.
    advice: &'static str,
}

impl Gaps {
    /// Those among features.
    pub(crate) fn in_features(missing: Missing) -> Gaps {
        Gaps {
            allowed: missing != Missing::Refuse,
            advice: "correct it, or set data.missing = \"drop\" to leave out such samples, or \
                     \"impute\" to fill in the mean",
        }
    }

    /// Those among labels: nobody should be taught what was made up.
    pub(crate) fn in_labels(missing: Missing) -> Gaps {
        Gaps {
            allowed: missing == Missing::Drop,
            advice: "correct it, or set data.missing = \"drop\" to leave out such samples",
        }
    }

    /// A number that a model can compute with, or NaN for a gap that is allowed.
    ///
    /// `written` is how the number stands in the file, `place` where.
    pub(crate) fn check(
        self,
        number: f64,
        written: impl Display,
        place: impl FnOnce() -> Box<Place>,
    ) -> Result<f64, DataError> {
        if (number as f32).is_finite() {
            Ok(number)
        } else if number.is_nan() || self.allowed {
            self.fill(written, place)
        } else {
            Err(DataError::Infinite {
                place: place(),
                value: shortened(&written.to_string()),
                advice: self.advice,
            })
        }
    }

    /// NaN for a value that is not there, if that is allowed.
    pub(crate) fn fill(
        self,
        written: impl Display,
        place: impl FnOnce() -> Box<Place>,
    ) -> Result<f64, DataError> {
        if self.allowed {
            return Ok(f64::NAN);
        }
        Err(DataError::Missing {
            place: place(),
            value: shortened(&written.to_string()),
            advice: self.advice,
        })
    }
}
