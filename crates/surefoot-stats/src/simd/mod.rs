//! The two inner loops, for every instruction set: summing a block and sifting it for quartiles.
//!
//! All of them keep the same eight lanes: the value at index `i` goes to lane `i % 8` as an `f64`,
//! every product is rounded before it is added, and the lanes are added up by [`add_lanes`]. A sum
//! therefore does not tell which instruction set made it.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use crate::element::Element;
use crate::quantile::sift::Sieve;

/// Number of parallel sums. Eight hide the latency of additions, and nearly all their accumulators
/// fit into the registers of AVX2.
pub(crate) const LANES: usize = 8;

/// An instruction set that this machine has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Isa(Kind);

/// Private to this module, so that an [`Isa`] is created by detection only: calling into a missing
/// instruction set is undefined behaviour.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The widest instruction set there is. The standard library detects once and remembers.
    #[inline]
    pub(crate) fn best() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                if is_x86_feature_detected!("avx512f") {
                    return Isa(Kind::Avx512);
                }
                return Isa(Kind::Avx2);
            }
        }
        Isa(Kind::Portable)
    }

    /// Every instruction set there is.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Isa> {
        let mut all = vec![Isa(Kind::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            let best = Isa::best();
            if best != Isa(Kind::Portable) {
                all.push(Isa(Kind::Avx2));
            }
            if best == Isa(Kind::Avx512) {
                all.push(best);
            }
        }
        all
    }
}

/// The sums over a block, about a pivot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sums {
    /// In each lane, the sums of the first to fourth powers of the distance from the pivot.
    powers: [[f64; LANES]; 4],
    /// In each lane, the sum of absolute values.
    absolute: [f64; LANES],
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) zeros: u64,
}

impl Sums {
    /// Adds the values after the last eight that fill all lanes.
    #[inline(always)]
    fn push_rest<T: Lane>(&mut self, rest: &[T], pivot: f64) {
        for (lane, value) in rest.iter().take(LANES).enumerate() {
            let value = value.to_f64();
            let distance = value - pivot;
            let square = distance * distance;
            self.powers[0][lane] += distance;
            self.powers[1][lane] += square;
            self.powers[2][lane] += square * distance;
            self.powers[3][lane] += square * square;
            self.absolute[lane] += value.abs();
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.zeros += u64::from(value == 0.0);
        }
    }

    /// The sums of the first to fourth powers of the distance from the pivot.
    #[inline]
    pub(crate) fn powers(&self) -> [f64; 4] {
        [0, 1, 2, 3].map(|power| add_lanes(&self.powers[power]))
    }

    /// The sum of absolute values.
    #[inline]
    pub(crate) fn absolute(&self) -> f64 {
        add_lanes(&self.absolute)
    }

    /// False if a value was NaN or infinite, or if a power left the range of `f64`.
    #[inline]
    pub(crate) fn are_finite(&self) -> bool {
        // Sums of even powers only grow: what is not finite once stays so.
        (self.absolute() + add_lanes(&self.powers[3])).is_finite()
    }
}

/// Adds up the lanes, in the one order that all instruction sets share.
#[inline]
pub(crate) fn add_lanes(lanes: &[f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// An element that the inner loops work on as it lies in memory.
pub(crate) trait Lane: Element + PartialOrd {
    const ZERO: Self;

    /// Sums a block about a pivot.
    fn sums(isa: Isa, values: &[Self], pivot: f64) -> Sums;

    /// Offers values to the sieves, and returns the number of finite ones.
    fn sift(isa: Isa, values: &[Self], sieves: &mut [Sieve<Self>; 3]) -> u64;
}

impl Lane for f32 {
    const ZERO: f32 = 0.0;

    #[inline]
    fn sums(isa: Isa, values: &[f32], pivot: f64) -> Sums {
        match isa.0 {
            Kind::Portable => portable::sums(values, pivot),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa` of this kind is made only where AVX2 and POPCNT were detected.
            Kind::Avx2 => unsafe { avx2::sums_f32(values, pivot) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa` of this kind is made only where these features were detected.
            Kind::Avx512 => unsafe { avx512::sums_f32(values, pivot) },
        }
    }

    fn sift(isa: Isa, values: &[f32], sieves: &mut [Sieve<f32>; 3]) -> u64 {
        match isa.0 {
            Kind::Portable => portable::sift(values, sieves),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa` of this kind is made only where AVX2 and POPCNT were detected.
            Kind::Avx2 => unsafe { avx2::sift_f32(values, sieves) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa` of this kind is made only where these features were detected.
            Kind::Avx512 => unsafe { avx512::sift_f32(values, sieves) },
        }
    }
}

impl Lane for f64 {
    const ZERO: f64 = 0.0;

    #[inline]
    fn sums(isa: Isa, values: &[f64], pivot: f64) -> Sums {
        match isa.0 {
            Kind::Portable => portable::sums(values, pivot),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa` of this kind is made only where AVX2 and POPCNT were detected.
            Kind::Avx2 => unsafe { avx2::sums_f64(values, pivot) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa` of this kind is made only where these features were detected.
            Kind::Avx512 => unsafe { avx512::sums_f64(values, pivot) },
        }
    }

    fn sift(isa: Isa, values: &[f64], sieves: &mut [Sieve<f64>; 3]) -> u64 {
        match isa.0 {
            Kind::Portable => portable::sift(values, sieves),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Isa` of these kinds is made only where AVX2 and POPCNT were detected.
            Kind::Avx2 | Kind::Avx512 => unsafe { avx2::sift_f64(values, sieves) },
        }
    }
}
