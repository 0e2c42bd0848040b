//! Elementary functions that the compiler can vectorise.
//!
//! The standard library's are scalar calls whose bits depend on the system's C library. These are
//! the classic Cephes reductions and polynomials, without branches, within 2 units in the last
//! place. Results below the smallest normal number are zero.

const LOG2_E: f32 = std::f32::consts::LOG2_E;
// ln 2 split so that `n * LN2_HIGH` is exact for every exponent of an f32.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
// Adding and subtracting 1.5 * 2^23 rounds to the nearest whole number.
const ROUND: f32 = 12_582_912.0;

// The logarithm of the largest f32.
const LARGEST: f32 = 88.722_83;

/// `e^x`; 0 and infinity beyond the range of an f32, NaN for NaN.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Comparisons that are false for NaN, which so passes through to the end.
    let bounded = if x > LARGEST { LARGEST } else { x };
    let bounded = if bounded < -87.3 { -87.3 } else { bounded };
    let shifted = bounded * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (bounded - n * LN2_HIGH) - n * LN2_LOW;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 0.5;
    let y = (p * r * r + r) + 1.0;
    // After the shift the whole number stands in the low bits. Two factors of 2^(n/2), since 2^128
    // alone is not an f32 while the result below it is.
    let whole = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let half = whole >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) << 23) as u32);
    let y = y * power(half) * power(whole.wrapping_sub(half));
    let y = if x > LARGEST { f32::INFINITY } else { y };
    if x < -87.3 { 0.0 } else { y }
}

/// `1 / (1 + e^-x)`
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let z = x * x;
    let mut p = -5.704_988_7e-3;
    p = p * z + 2.063_909e-2;
    p = p * z - 5.373_971e-2;
    p = p * z + 1.333_144_2e-1;
    p = p * z - 3.333_328e-1;
    let near = p * z * x + x;
    let far = (1.0 - 2.0 / (exp(2.0 * x.abs()) + 1.0)).copysign(x);
    if x.abs() < 0.625 { near } else { far }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees(ours: fn(f32) -> f32, exact: fn(f64) -> f64, range: f32) {
        let mut x = -range;
        while x <= range {
            let want = exact(f64::from(x));
            let got = f64::from(ours(x));
            assert!(
                (got - want).abs() <= 2.5e-7 * want.abs().max(1e-37),
                "at {x}: {got} instead of {want}"
            );
            x += range / 40_000.0;
        }
    }

    #[test]
    fn functions_agree_with_double_precision() {
        agrees(exp, f64::exp, 87.0);
        agrees(tanh, f64::tanh, 12.0);
        agrees(sigmoid, |x| 1.0 / (1.0 + (-x).exp()), 80.0);
    }

    #[test]
    fn exponentials_are_right_up_to_the_largest_number() {
        for x in [88.0_f32, 88.7, 88.71, 88.722, LARGEST] {
            let want = f64::from(x).exp();
            assert!((f64::from(exp(x)) / want - 1.0).abs() < 5e-7, "at {x}: {}", exp(x));
        }
        assert_eq!(exp(88.73), f32::INFINITY);
    }

    #[test]
    fn limits_are_those_of_the_functions() {
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(sigmoid(-200.0), 0.0);
        assert_eq!(sigmoid(200.0), 1.0);
        assert_eq!(tanh(50.0), 1.0);
        assert_eq!(tanh(-50.0), -1.0);
        assert!(tanh(f32::NAN).is_nan());
        assert!(sigmoid(f32::NAN).is_nan());
    }
}
