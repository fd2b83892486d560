//! Closed forms of write amplification, which the simulator is tested against.
//!
//! Everywhere `a` is the ratio of physical to logical pages and `b` is the number of pages per block; the result is the
//! number of programs per host write in the steady state of uniform random writes, for many blocks. For a device with a
//! reserve and a frontier, take `a` from [`effective_ratio`], or use [`shared_frontier`].
//!
//! Sources: Bux and Iliadis 2010 (greedy); Desnoyers, SYSTOR 2012, and Xiang and Kurkoski 2012
//! (FIFO); Van Houdt, SIGMETRICS 2013 (d-choices).

/// Returns the ratio of physical to logical pages: of the `blocks` blocks, `reserve` are kept erased, and `frontiers`
/// are open; the open blocks share the writes evenly, and each is half empty on average.
pub fn effective_ratio(blocks: u32, reserve: u32, frontiers: u32, b: u32, logical_pages: f64) -> f64 {
    (f64::from(blocks) - f64::from(reserve) - f64::from(frontiers) / 2.0) * f64::from(b) / logical_pages
}

/// Returns the write amplification that `form`, a closed form as a function of `a`, gives for one frontier that takes
/// copies and host writes, with garbage collection when it is full, as in ftlab.
///
/// Such a frontier is not half empty: the copies of a victim immediately fill it up to the last `b / A` pages, and
/// while the host writes these pages, half of them are empty on average. So `1 / 2A` of a block has to be subtracted
/// instead of a half, which matters on small devices: with 256 blocks at `a` = 1.07, `A` differs by 2 %.
pub fn shared_frontier(
    blocks: u32,
    reserve: u32,
    b: u32,
    logical_pages: f64,
    form: impl Fn(f64) -> f64,
) -> f64 {
    let blocks = f64::from(blocks) - f64::from(reserve);
    let mut amplification = form(effective_ratio(blocks as u32, 0, 1, b, logical_pages));
    // Each step shrinks the error a hundredfold.
    for _ in 0..6 {
        amplification = form((blocks - 0.5 / amplification) * f64::from(b) / logical_pages);
    }
    amplification
}

/// Returns the zero of a function that changes its sign between `low` and `high`.
fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let rising = f(high) > 0.0;
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if (f(middle) > 0.0) == rising {
            high = middle;
        } else {
            low = middle;
        }
    }
    0.5 * (low + high)
}

/// Returns the write amplification of greedy with blocks of `b` pages: `A rho = (b rho - m) / (b - m - m (H_b - H_m))`
/// for the only `m` at which the resulting share of blocks with `m` valid pages is possible.
///
/// # Panics
/// If `a` is not above 1.
pub fn greedy(a: f64, b: u32) -> f64 {
    let (pages, rho) = (f64::from(b), 1.0 / a);
    let mut tail = (1..=b).map(|k| 1.0 / f64::from(k)).sum::<f64>();
    for whole in 1..b {
        let m = f64::from(whole);
        tail -= 1.0 / m;
        let a_rho = (pages * rho - m) / (pages - m - m * tail);
        if a_rho > 0.0 && (0.0..=a_rho / m).contains(&(1.0 - a_rho * tail)) {
            return a_rho / rho;
        }
    }
    panic!("no solution for a = {a}, b = {b}");
}

/// Returns the write amplification of FIFO: `A = a / (a + W0(-a exp(-a)))`, in the form `1 = y / (1 - exp(-a y))`, `A =
/// 1 / y`.
pub fn fifo(a: f64) -> f64 {
    fifo_hot_cold(a, 0.5, 0.5)
}

/// Returns the write amplification of FIFO with hot and cold data mixed in the blocks: a share `writes` of the writes
/// goes to a share `data` of the pages: `1 = sum of r y / (1 - exp(-r a y / f))` over both groups, `A = 1 / y`.
pub fn fifo_hot_cold(a: f64, writes: f64, data: f64) -> f64 {
    let group = |y: f64, r: f64, f: f64| r * y / (1.0 - (-r * a * y / f).exp());
    1.0 / bisect(1e-9, 1.0, |y| group(y, writes, data) + group(y, 1.0 - writes, 1.0 - data) - 1.0)
}

/// Returns the write amplification of d-choices, which takes the best of `d` random blocks: `1 - s_k^d = k (s_k -
/// s_(k+1)) / (A rho)`, where `s_k` is the share of blocks with at least `k` valid pages and the sum of all `s_k` is `b
/// rho`.
pub fn d_choices(a: f64, b: u32, d: u32) -> f64 {
    let rho = 1.0 / a;
    let mean = |amplification: f64| {
        let (mut above, mut sum) = (0.0, 0.0);
        for k in (1..=b).rev() {
            let factor = f64::from(k) / (amplification * rho);
            above = bisect(above, 1.0, |s| factor * (s - above) - 1.0 + s.powi(d as i32));
            sum += above;
        }
        sum
    };
    bisect(1.0, 1.0 / (1.0 - rho) + 1.0, |x| mean(x) - f64::from(b) * rho)
}

/// Returns the share of the logical pages in use if each request is a trim of a random page in use with probability
/// `q`, else a write: the ratio to use in a closed form is then `a` divided by this share.
pub fn in_use(q: f64) -> f64 {
    (1.0 - 2.0 * q) / (1.0 - q)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that were computed independently, by other means (the specification's table): b, a, and the value for
    /// greedy, for FIFO, and for d-choices with d = 2, 5 and 10.
    const TABLE: [(u32, f64, [f64; 5]); 6] = [
        (64, 1.07, [7.0099, 7.8172, 10.2772, 7.8746, 7.3230]),
        (64, 1.15, [3.8005, 4.0160, 5.3123, 4.1846, 3.9304]),
        (64, 1.28, [2.4028, 2.4814, 3.2453, 2.6122, 2.4711]),
        (256, 1.07, [7.5969, 7.8172, 10.5835, 8.3272, 7.8280]),
        (256, 1.15, [3.9596, 4.0160, 5.3938, 4.3048, 4.0659]),
        (256, 1.28, [2.4610, 2.4814, 3.2742, 2.6552, 2.5202]),
    ];

    #[test]
    fn the_closed_forms_give_the_table() {
        for (b, a, expected) in TABLE {
            let found = [greedy(a, b), fifo(a), d_choices(a, b, 2), d_choices(a, b, 5), d_choices(a, b, 10)];
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-4, "b = {b}, a = {a}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn known_special_cases() {
        assert!((fifo(1.3) - 2.3642).abs() < 1e-4);
        assert!((fifo_hot_cold(1.15, 0.8, 0.2) - 4.370).abs() < 1e-3);
        assert!((fifo_hot_cold(1.15, 0.9, 0.1) - 4.957).abs() < 1e-3);
        assert!((d_choices(1.15, 64, 1) - 1.0 / (1.0 - 1.0 / 1.15)).abs() < 1e-6);
        assert!((in_use(0.1) - 8.0 / 9.0).abs() < 1e-12);
        // With two frontiers and 8 erased blocks out of 512, a simulation gave 4.236.
        let a = effective_ratio(512, 8, 2, 64, 512.0 * 64.0 / 1.15);
        assert!((greedy(a, 64) / 4.236 - 1.0).abs() < 0.01);
    }
}
