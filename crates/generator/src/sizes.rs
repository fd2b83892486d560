//! How large requests are.

use crate::ALL;
use ftlab_core::config::SizeMix;
use ftlab_core::settings::{Arrival, Synthetic};
use ftlab_core::util::below;
use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The sizes of one kind of requests: reads, or all others.
///
/// Two requests of a burst, k apart within their kind, have sizes with the correlation p + (1 - p) c^k, where p is
/// `size_persistence` and c `size_correlation`: either no size was drawn between them (c^k), or both take the size of
/// their burst, each with the probability sqrt(p). Every single size has the distribution of the mix.
#[derive(Clone, Debug)]
pub(super) struct SizeProcess {
    sizes: Sizes,
    correlation_ppm: u64,
    /// Share of the sizes drawn that are the burst's.
    of_burst_ppm: u64,
    burst_correlation_ppm: u64,
    /// The size drawn last in this burst.
    last: Option<u64>,
    /// The size of this burst or, before its first request of this kind, of an earlier one.
    burst: Option<u64>,
}

impl SizeProcess {
    pub fn new(mix: &SizeMix, synthetic: &Synthetic) -> SizeProcess {
        let persists = synthetic.arrival == Arrival::Bursts;
        SizeProcess {
            sizes: Sizes::new(mix),
            correlation_ppm: synthetic.size_correlation_ppm,
            of_burst_ppm: if persists { (synthetic.size_persistence_ppm * ALL).isqrt() } else { 0 },
            burst_correlation_ppm: synthetic.burst_size_correlation_ppm,
            last: None,
            burst: None,
        }
    }

    pub fn begin_burst(&mut self) {
        self.last = None;
    }

    #[inline]
    pub fn draw(&mut self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        // Without correlation, no number is drawn.
        if let (Some(last), 1..) = (self.last, self.correlation_ppm)
            && below(rng.next_u64(), ALL) < self.correlation_ppm
        {
            return last;
        }
        let of_burst = if self.of_burst_ppm > 0 { self.of_burst(rng) } else { None };
        let size = of_burst.unwrap_or_else(|| self.sizes.draw(rng));
        self.last = Some(size);
        size
    }

    /// Returns the burst's size for the share of requests that have it, else `None`; the first request of a burst
    /// settles it.
    fn of_burst(&mut self, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
        if self.last.is_none() {
            let kept =
                self.burst_correlation_ppm > 0 && below(rng.next_u64(), ALL) < self.burst_correlation_ppm;
            self.burst = self.burst.filter(|_| kept).or_else(|| Some(self.sizes.draw(rng)));
        }
        self.burst.filter(|_| below(rng.next_u64(), ALL) < self.of_burst_ppm)
    }
}

/// A [`SizeMix`] in a form from which sizes can be drawn.
#[derive(Clone, Debug)]
struct Sizes {
    /// For each size, its bytes and the cumulative weight.
    parts: Vec<(u64, u64)>,
    total: u64,
}

impl Sizes {
    fn new(mix: &SizeMix) -> Sizes {
        let mut total = 0;
        let parts = mix.parts().iter().map(|&(bytes, weight)| {
            total += u64::from(weight);
            (bytes, total)
        });
        Sizes { parts: parts.collect(), total }
    }

    #[inline]
    fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        if let [(bytes, _)] = self.parts[..] {
            return bytes;
        }
        let at = below(rng.next_u64(), self.total);
        self.parts.iter().find(|part| at < part.1).expect("below the total").0
    }
}
