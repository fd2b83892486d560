//! Division by a number fixed at start: geometries are not powers of two.

use serde::{Deserialize, Serialize};

/// Divides `u32` by a constant with one multiplication.
///
/// Lemire, Kaser, Kurz, "Faster remainder by direct computation" (2019): with
/// `m = ceil(2^64 / d)`, `n / d = (m * n) >> 64` for all 32-bit `n` and `d >= 2`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Divider {
    divisor: u32,
    magic: u64,
}

impl Divider {
    /// A divider by `divisor`.
    ///
    /// # Panics
    /// If `divisor` is 0.
    pub fn new(divisor: u32) -> Divider {
        assert!(divisor > 0, "division by zero");
        // For 1 the magic wraps to 0 and is not used.
        Divider { divisor, magic: (u64::MAX / u64::from(divisor)).wrapping_add(1) }
    }

    /// The divisor.
    #[inline]
    pub fn get(&self) -> u32 {
        self.divisor
    }

    /// `n / divisor`.
    #[inline]
    pub fn div(&self, n: u32) -> u32 {
        if self.divisor == 1 {
            return n;
        }
        ((u128::from(self.magic) * u128::from(n)) >> 64) as u32
    }

    /// `n % divisor`.
    #[inline]
    pub fn rem(&self, n: u32) -> u32 {
        n - self.div(n) * self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_hardware(n: u32, d in 1u32..) {
            let divider = Divider::new(d);
            prop_assert_eq!(divider.div(n), n / d);
            prop_assert_eq!(divider.rem(n), n % d);
        }
    }

    #[test]
    fn extremes() {
        for d in [1, 2, 3, u32::MAX - 1, u32::MAX] {
            for n in [0, 1, d - 1, d, u32::MAX - 1, u32::MAX] {
                assert_eq!(Divider::new(d).div(n), n / d, "{n} / {d}");
            }
        }
    }
}
