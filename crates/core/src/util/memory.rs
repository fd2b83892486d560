//! Memory of the large arrays: loads begun before their values are needed, and huge pages.
//!
//! The maps of a device are far larger than the caches and are read at random, so most of a request's
//! time is waiting for memory. Nothing here changes a value.

/// Arrays from this size on ask for huge pages: below it, the rounding up of what is never written would
/// show in the peak of memory.
const HUGE_BYTES: usize = 64 << 20;

/// Begins to load an element, if there is one, so that reading it a little later need not wait.
#[inline(always)]
pub fn fetch<T>(array: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = array.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads no value, and the address is that of an element.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (array, index);
}

/// An array of `len` equal values, all of which are written now, in huge pages where it is large.
pub fn filled(value: u32, len: usize) -> Vec<u32> {
    let mut array = Vec::with_capacity(len);
    prefer_huge_pages(&mut array);
    array.resize(len, value);
    array
}

/// Asks for huge pages below an array that is still empty; a refusal costs only speed.
#[cfg(target_os = "linux")]
fn prefer_huge_pages(array: &mut Vec<u32>) {
    const PAGE_BYTES: usize = 4096;
    let bytes = array.capacity() * size_of::<u32>();
    if bytes < HUGE_BYTES {
        return;
    }
    let first = array.as_mut_ptr().cast::<u8>();
    let skipped = first.align_offset(PAGE_BYTES);
    let whole = (bytes - skipped) / PAGE_BYTES * PAGE_BYTES;
    // SAFETY: the pages lie within the array's own memory, and the advice leaves their content alone.
    unsafe { libc::madvise(first.add(skipped).cast(), whole, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn prefer_huge_pages(_array: &mut Vec<u32>) {
    const _: usize = HUGE_BYTES;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_filled_whatever_its_size() {
        for len in [0, 1, 1000, HUGE_BYTES / 4 + 5] {
            let array = filled(7, len);
            assert!(array.len() == len && array.iter().all(|&value| value == 7));
            fetch(&array, len);
            fetch(&array, 0);
        }
    }
}
