//! The number formats a tensor may hold.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::block::{self, BLOCK};
use crate::moments::Moments;
use crate::quantile::{Neighbours, radix, sift};
use crate::simd::Isa;

/// A number format that statistics can be taken of: `f32`, `f64`, [`half::f16`] or
/// [`half::bf16`].
///
/// The trait is sealed: the promise of equal bits is kept for these four formats.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The value as an `f64`, exactly.
    fn to_f64(self) -> f64;
}

pub(crate) mod sealed {
    use super::{Isa, Moments, Neighbours};

    /// Operations of an element beyond its value.
    pub trait Sealed: Sized {
        /// An unsigned integer as wide as the element.
        type Key: Copy + Ord + Default + Into<u64>;

        /// Number of bits.
        const KEY_BITS: u32;

        /// An integer that orders as the value does, with -0 just below +0. Selecting among
        /// integers is faster than among floats.
        fn key(self) -> Self::Key;

        /// The value that [`key`](Sealed::key) was taken of.
        fn from_key(key: u64) -> Self;

        /// Neither NaN nor infinite.
        fn finite(self) -> bool;

        /// The moments of at most [`BLOCK`](crate::BLOCK) values.
        fn block(isa: Isa, values: &[Self]) -> Moments;

        /// The values around each quartile of a slice that is too large to gather, `None` if none
        /// of them is finite.
        fn neighbours(isa: Isa, parts: &[&[Self]]) -> Option<Neighbours<Self>>;
    }
}

/// Implements [`Element`] for a float, with the key of its width.
macro_rules! element {
    ($type:ty, $key:ty, $block:expr, $neighbours:expr) => {
        impl Element for $type {
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
        }

        impl sealed::Sealed for $type {
            type Key = $key;

            const KEY_BITS: u32 = <$key>::BITS;

            #[inline]
            fn key(self) -> $key {
                const SIGN: $key = 1 << (<$key>::BITS - 1);
                let bits = self.to_bits();
                if bits & SIGN == 0 { bits | SIGN } else { !bits }
            }

            #[inline]
            fn from_key(key: u64) -> $type {
                const SIGN: $key = 1 << (<$key>::BITS - 1);
                let key = key as $key;
                <$type>::from_bits(if key & SIGN != 0 { key & !SIGN } else { !key })
            }

            #[inline]
            fn finite(self) -> bool {
                self.is_finite()
            }

            #[inline]
            fn block(isa: Isa, values: &[$type]) -> Moments {
                $block(isa, values)
            }

            fn neighbours(isa: Isa, parts: &[&[$type]]) -> Option<Neighbours<$type>> {
                $neighbours(isa, parts)
            }
        }
    };
}

element!(f32, u32, block::moments, sift::neighbours);
element!(f64, u64, block::moments, sift::neighbours);
element!(f16, u16, f16_block, |_, parts| radix::neighbours(parts));
element!(bf16, u16, bf16_block, |_, parts| radix::neighbours(parts));

fn f16_block(isa: Isa, values: &[f16]) -> Moments {
    widened_block(isa, values, |narrow, wide| narrow.convert_to_f32_slice(wide))
}

fn bf16_block(isa: Isa, values: &[bf16]) -> Moments {
    widened_block(isa, values, |narrow, wide| {
        // `half` converts these one at a time with a branch for NaN, which hinders SIMD; a
        // bf16 is the upper half of an f32.
        for (wide, narrow) in wide.iter_mut().zip(narrow) {
            *wide = f32::from_bits(u32::from(narrow.to_bits()) << 16);
        }
    })
}

/// The moments of a block of 16-bit floats, which are exact as `f32`.
fn widened_block<T: Copy>(isa: Isa, values: &[T], widen: impl Fn(&[T], &mut [f32])) -> Moments {
    /// Clearing the room for a whole block would cost more than a toy layer's statistics.
    const FEW: usize = 128;

    if values.len() <= FEW {
        let wide = &mut [0.0; FEW][..values.len()];
        widen(values, wide);
        block::moments(isa, wide)
    } else {
        let mut wide = [0.0; BLOCK];
        let wide = &mut wide[..values.len()];
        widen(values, wide);
        block::moments(isa, wide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_keys_order<T: Element + PartialOrd + std::fmt::Debug>(ascending: &[T]) {
        for pair in ascending.windows(2) {
            assert!(pair[0].key() < pair[1].key(), "{pair:?}");
        }
        for &value in ascending {
            assert!(T::from_key(value.key().into()) == value, "{value:?}");
        }
    }

    #[test]
    fn keys_order_as_the_values_do_and_lead_back_to_them() {
        let ascending = [-65504.0, -1.0, -6e-8, -0.0, 0.0, 6e-8, 1.0, 65504.0];
        assert_keys_order(&ascending);
        assert_keys_order(&ascending.map(|x| x as f32));
        assert_keys_order(&ascending.map(f16::from_f64));
        assert_keys_order(&ascending.map(bf16::from_f64));
    }

    #[test]
    fn every_bf16_widens_to_the_f32_that_half_says() {
        for bits in 0..=u16::MAX {
            let value = bf16::from_bits(bits);
            if value.is_finite() {
                assert_eq!(f32::from_bits(u32::from(bits) << 16), value.to_f32());
            }
        }
    }
}
