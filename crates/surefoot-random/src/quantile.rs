//! The normal distribution by inversion: from random bits to a quantile.
//!
//! The quantile function is algorithm AS 241, PPND16 (Wichura, *The Percentage Points of the Normal
//! Distribution*, Applied Statistics 37, 1988), accurate to about one part in 10¹⁶. It needs a
//! logarithm in the tails. That of the system's mathematical library is rounded differently from
//! one platform to the next, so the logarithm is computed here: with it a draw consists of
//! operations for which IEEE 754 knows one result only.

#![expect(clippy::excessive_precision, reason = "coefficients are given as they were published")]

/// Φ(−2): how much of the standard normal distribution lies below −2.
const BELOW_MINUS_TWO: f64 = 0.022_750_131_948_179_207;

/// A standard normal number from 64 random bits.
#[inline(always)]
pub(crate) fn normal_from_bits(bits: u64) -> f64 {
    with_sign(bits, distance(lower_half(bits)))
}

/// A standard normal number truncated to ±2, from 64 random bits.
#[inline(always)]
pub(crate) fn truncated_normal_from_bits(bits: u64) -> f64 {
    let p = BELOW_MINUS_TWO + lower_half(bits) * (1.0 - 2.0 * BELOW_MINUS_TWO);
    with_sign(bits, distance(p).min(2.0))
}

/// A uniform number strictly between 0 and ½ from the upper 52 bits: an odd multiple of 2⁻⁵⁴.
///
/// A draw is the quantile of such a number with a separate sign, because floating-point numbers are
/// dense near 0 and not near 1: this makes both tails equally long and equally fine.
#[inline(always)]
fn lower_half(bits: u64) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    ((bits >> 12) as f64 + 0.5) * STEP
}

/// The magnitude, with the lowest of the bits for a sign.
#[inline(always)]
fn with_sign(bits: u64, magnitude: f64) -> f64 {
    f64::from_bits(magnitude.to_bits() | bits << 63)
}

/// Distance below 0 of the quantile of `p`, for `p` in (0, ½].
///
/// Six draws in seven fall into the centre, which needs no logarithm.
#[inline(always)]
fn distance(p: f64) -> f64 {
    let q = 0.5 - p;
    if q <= 0.425 {
        return q * CENTRE.at(0.180625 - q * q);
    }
    let r = (-ln(p)).sqrt();
    if r <= 5.0 { TAIL.at(r - 1.6) } else { FAR_TAIL.at(r - 5.0) }
}

/// The ratio of two polynomials, by their coefficients from the constant upwards.
struct Ratio {
    above: [f64; 8],
    below: [f64; 8],
}

impl Ratio {
    #[inline(always)]
    fn at(&self, x: f64) -> f64 {
        let polynomial = |[a, b, c, d, e, f, g, h]: [f64; 8]| {
            ((((((h * x + g) * x + f) * x + e) * x + d) * x + c) * x + b) * x + a
        };
        polynomial(self.above) / polynomial(self.below)
    }
}

/// For |q| up to 0.425, in 0.425² − q².
const CENTRE: Ratio = Ratio {
    above: [
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ],
    below: [
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ],
};

/// For r up to 5, in r − 1.6.
const TAIL: Ratio = Ratio {
    above: [
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ],
    below: [
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ],
};

/// For r above 5, which is a probability below 1.4 × 10⁻¹¹, in r − 5.
const FAR_TAIL: Ratio = Ratio {
    above: [
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ],
    below: [
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ],
};

/// The natural logarithm of a positive normal number, to less than one unit in the last place.
///
/// As in FreeBSD's `e_log.c`: x = 2ᵏ (1 + f) with 1 + f in [√½, √2], and an odd polynomial in
/// f / (2 + f) for ln(1 + f).
#[inline(always)]
fn ln(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.93147180369123816490e-01;
    const LN2_LOW: f64 = 1.90821492927058770002e-10;
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const ROOT_HALF: u64 = 0x3fe6_a09e_0000_0000;
    let shifted = x.to_bits() + (ONE - ROOT_HALF);
    let k = ((shifted >> 52) as i32 - 1023) as f64;
    let f = f64::from_bits((shifted & (u64::MAX >> 12)) + ROOT_HALF) - 1.0;

    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w
        * (3.999999999940941908e-01
            + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    let odd = z
        * (6.666666666666735130e-01
            + w * (2.857142874366239149e-01
                + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    let half_square = 0.5 * f * f;
    s * (half_square + (even + odd)) + k * LN2_LOW - half_square + f + k * LN2_HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles computed with 60 digits, several in each branch of [`distance`].
    #[test]
    fn distances_agree_with_exact_quantiles() {
        let table = [
            (0.4999, 0.00025066283008800747),
            (0.4, 0.2533471031357997),
            (0.25, 0.6744897501960817),
            (0.1, 1.2815515655446004),
            (0.075, 1.439531470938456),
            (0.0749, 1.4402382675279637),
            (0.05, 1.6448536269514726),
            (0.01, 2.326347874040841),
            (0.0001, 3.7190164854556804),
            (1e-08, 5.612001244174789),
            (1.5e-11, 6.646570887477113),
            (1e-11, 6.706023155495136),
            (1e-13, 7.348796102800677),
            (5.551115123125783e-17, 8.292361075813595),
        ];
        for (p, expected) in table {
            let relative = (distance(p) - expected).abs() / expected;
            assert!(relative < 5e-16, "{p}: {} for {expected}", distance(p));
        }
        assert_eq!(distance(0.5), 0.0);
    }

    #[test]
    fn distance_falls_as_probability_rises() {
        let steps = || (1..=50_000).map(|i| f64::from(i) * 1e-5);
        for (a, b) in steps().zip(steps().skip(1)) {
            assert!(distance(a) > distance(b), "at {a}");
        }
    }

    #[test]
    fn logarithms_agree_with_the_standard_library() {
        for k in 1..=54 {
            for m in [1.0, 1.3, 1.4, 1.42, 1.9] {
                let x = m * 0.5f64.powi(k);
                let (ours, theirs) = (ln(x), x.ln());
                assert!((ours - theirs).abs() <= theirs.abs() * f64::EPSILON, "{x}");
            }
        }
    }

    #[test]
    fn the_extremes_are_finite_and_symmetric() {
        assert!((normal_from_bits(0) - 8.292361075813595).abs() < 1e-14);
        assert_eq!(normal_from_bits(1), -normal_from_bits(0));
        assert!(normal_from_bits(u64::MAX - 1) > 0.0);
        assert!(normal_from_bits(u64::MAX - 1) < 1e-15);
    }

    #[test]
    fn truncation_reaches_two_and_no_further() {
        assert!((truncated_normal_from_bits(0) - 2.0).abs() < 1e-14);
        assert_eq!(truncated_normal_from_bits(1), -truncated_normal_from_bits(0));
        for bits in 0..100_000 {
            assert!(truncated_normal_from_bits(bits << 12).abs() <= 2.0);
        }
    }
}
