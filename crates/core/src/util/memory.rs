//! Memory of the large arrays: loads that begin before their values are needed, and huge pages.
//!
//! The maps of a device are far larger than the processor's caches and are read at random, so most of a
//! request's time is spent waiting for memory. Nothing here changes a value.

/// Arrays of at least this size get huge pages; for smaller ones, rounding up memory that is never written would show
/// in the peak memory use.
const HUGE_BYTES: usize = 64 << 20;

/// Begins to load an element, so that reading it a little later need not wait; an index without an element does
/// nothing.
#[inline(always)]
pub fn fetch<T>(array: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads no value, and of an address that is not there it does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(array.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (array, index);
}

/// Returns a copy of an array, in huge pages if the array is large.
pub fn copied(of: &[u32]) -> Vec<u32> {
    let mut array = vec![0; of.len()];
    prepare(&mut array, false);
    array.copy_from_slice(of);
    array
}

/// Requests huge pages for a large array that will be written completely. If the array is read before that, the
/// memory itself is also requested at once, since a page of zeros that is read and then written faults twice. A
/// refusal costs only speed.
#[cfg(target_os = "linux")]
pub fn prepare(array: &mut [u32], is_read: bool) {
    const PAGE_BYTES: usize = 4096;
    let first = array.as_mut_ptr().cast::<u8>();
    let (bytes, skipped) = (size_of_val(array), first.align_offset(PAGE_BYTES));
    let whole = bytes.saturating_sub(skipped) / PAGE_BYTES * PAGE_BYTES;
    // SAFETY: the pages, if there are any, belong to the array, and the advice leaves their content alone.
    let advise = |advice| unsafe { libc::madvise(first.wrapping_add(skipped).cast(), whole, advice) };
    if bytes >= HUGE_BYTES {
        advise(libc::MADV_HUGEPAGE);
    }
    if is_read {
        advise(libc::MADV_POPULATE_WRITE);
    }
}

/// Does nothing: other systems are not asked for huge pages.
#[cfg(not(target_os = "linux"))]
pub fn prepare(_array: &mut [u32], _is_read: bool) {
    const _: usize = HUGE_BYTES;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_every_word_whatever_its_size() {
        for len in [0, 1, 1000, HUGE_BYTES / 4 + 5] {
            let mut array = vec![0; len];
            prepare(&mut array, true);
            array.iter_mut().step_by(999).for_each(|word| *word = 7);
            assert!(copied(&array) == array);
            fetch(&array, len);
            fetch(&array, 0);
        }
    }
}
