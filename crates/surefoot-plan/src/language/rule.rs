//! What a value must satisfy beyond its type.

/// Says what a value must do, if it does not.
pub(crate) type Rule<T> = fn(&T) -> Result<(), &'static str>;

/// No more than the type.
pub(crate) fn any<T>(_: &T) -> Result<(), &'static str> {
    Ok(())
}

pub(crate) fn positive(value: &f64) -> Result<(), &'static str> {
    said(*value > 0.0, "be above 0")
}

pub(crate) fn non_negative(value: &f64) -> Result<(), &'static str> {
    said(*value >= 0.0, "be at least 0")
}

/// A part that may be nothing but not everything.
pub(crate) fn share(value: &f64) -> Result<(), &'static str> {
    said((0.0..1.0).contains(value), "be at least 0 and below 1")
}

pub(crate) fn unit_interval(value: &f64) -> Result<(), &'static str> {
    said((0.0..=1.0).contains(value), "be from 0 to 1")
}

pub(crate) fn at_least_one(value: &u64) -> Result<(), &'static str> {
    said(*value >= 1, "be at least 1")
}

pub(crate) fn at_least_two(value: &usize) -> Result<(), &'static str> {
    said(*value >= 2, "be at least 2")
}

/// A layer's name is a part of the paths of its weights.
#[expect(clippy::ptr_arg, reason = "a rule is of the type it is for")]
pub(crate) fn name(value: &String) -> Result<(), &'static str> {
    said(
        !value.is_empty() && !value.contains('/') && !value.contains(char::is_control),
        "not be empty or contain `/`",
    )
}

fn said(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_refuse_nan() {
        for rule in [positive, non_negative, share, unit_interval] {
            assert!(rule(&f64::NAN).is_err());
        }
    }

    #[test]
    fn a_share_is_never_everything() {
        assert!(share(&0.0).is_ok());
        assert!(share(&1.0).is_err());
        assert!(unit_interval(&1.0).is_ok());
    }

    #[test]
    fn names_do_not_look_like_paths() {
        assert!(name(&"block 1".to_owned()).is_ok());
        assert!(name(&"a/b".to_owned()).is_err());
        assert!(name(&String::new()).is_err());
    }
}
