//! Division by a number that is fixed at the start: the numbers of a geometry need not be powers of two.

/// Divides `u32` by a constant with one multiplication, without a branch.
///
/// The round-down method (Robison, "N-bit unsigned division via N-bit multiply-add", 2005): with
/// `m = floor((2^64 - 1) / d)`, `n / d = (m * (n + 1)) >> 64` for all 32-bit `n` and `d >= 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divider {
    divisor: u32,
    magic: u64,
}

impl Divider {
    /// Makes a divider by `divisor`.
    ///
    /// # Panics
    /// If `divisor` is 0.
    pub fn new(divisor: u32) -> Divider {
        assert!(divisor > 0, "division by zero");
        Divider { divisor, magic: u64::MAX / u64::from(divisor) }
    }

    /// Returns the divisor.
    #[inline]
    pub fn get(&self) -> u32 {
        self.divisor
    }

    /// Returns `n / divisor`.
    #[inline]
    pub fn div(&self, n: u32) -> u32 {
        ((u128::from(self.magic) * (u128::from(n) + 1)) >> 64) as u32
    }

    /// Returns `n % divisor`.
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
