//! Constraints on values beyond their types.

/// Checks a value; the error completes the sentence "`key` must ...".
pub(crate) type Rule<T> = fn(&T) -> Result<(), &'static str>;

/// Accepts every value of the type.
pub(crate) fn any<T>(_: &T) -> Result<(), &'static str> {
    Ok(())
}

pub(crate) fn positive(value: &f64) -> Result<(), &'static str> {
    ensure(*value > 0.0, "be above 0")
}

pub(crate) fn non_negative(value: &f64) -> Result<(), &'static str> {
    ensure(*value >= 0.0, "be at least 0")
}

/// A fraction in `[0, 1)`.
pub(crate) fn share(value: &f64) -> Result<(), &'static str> {
    ensure((0.0..1.0).contains(value), "be at least 0 and below 1")
}

pub(crate) fn unit_interval(value: &f64) -> Result<(), &'static str> {
    ensure((0.0..=1.0).contains(value), "be from 0 to 1")
}

pub(crate) fn at_least_one(value: &u64) -> Result<(), &'static str> {
    ensure(*value >= 1, "be at least 1")
}

pub(crate) fn at_least_two(value: &usize) -> Result<(), &'static str> {
    ensure(*value >= 2, "be at least 2")
}

/// A layer name; it becomes part of the paths of the layer's weights.
#[expect(clippy::ptr_arg, reason = "a rule takes a reference to its exact type")]
pub(crate) fn name(value: &String) -> Result<(), &'static str> {
    ensure(
        !value.is_empty() && !value.contains('/') && !value.contains(char::is_control),
        "not be empty or contain `/`",
    )
}

fn ensure(holds: bool, what: &'static str) -> Result<(), &'static str> {
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
    fn a_share_is_below_one() {
        assert!(share(&0.0).is_ok());
        assert!(share(&1.0).is_err());
        assert!(unit_interval(&1.0).is_ok());
    }

    #[test]
    fn names_contain_no_slash() {
        assert!(name(&"block 1".to_owned()).is_ok());
        assert!(name(&"a/b".to_owned()).is_err());
        assert!(name(&String::new()).is_err());
    }
}
