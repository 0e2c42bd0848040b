//! Missing values: where they are allowed, and the errors where they are not.

use std::fmt::Display;

use surefoot_plan::Missing;

use crate::error::{DataError, Place, shortened};

/// Policy for missing (NaN or infinite) numbers of a column or an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps {
    allowed: bool,
    /// Advice for the error message.
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

    /// Missing labels are never filled in.
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
            let (value, advice) = (shortened(&written.to_string()), self.advice);
            let fault = format!("{value} is infinite or too large (the limit is 3.4e38); {advice}");
            Err(DataError::value(place(), fault))
        }
    }

    /// Returns NaN for a missing value if that is allowed.
    pub(crate) fn fill(
        self,
        written: impl Display,
        place: impl FnOnce() -> Box<Place>,
    ) -> Result<f64, DataError> {
        if self.allowed {
            return Ok(f64::NAN);
        }
        let value = shortened(&written.to_string());
        Err(DataError::value(place(), format!("the value is missing ({value}); {}", self.advice)))
    }
}
