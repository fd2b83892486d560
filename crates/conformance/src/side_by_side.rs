//! Many cases of one test on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Calls `check` once for each case, on as many threads as there are processors: a test of every registered part is one
/// test, and would keep one processor busy while the others wait for it.
///
/// # Panics
/// If `check` panics for a case, once the other threads have ended.
pub fn side_by_side<T: Sync>(cases: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(case);
        }
    };
    thread::scope(|scope| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        (1..processors.min(cases.len())).for_each(|_| _ = scope.spawn(work));
        work();
    });
}
