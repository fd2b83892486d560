//! Addresses beyond the user capacity: refused, wrapped, or packed.

use crate::footprint::{Footprint, Ranks};
use crate::options::Options;
use ftlab_core::settings::OutOfRange;
use ftlab_core::workload::Record;

/// How a trace's addresses map to the device.
pub(crate) enum Range {
    /// Addresses stay as they are; there is no device that could be too small.
    Any,
    /// Addresses stay as they are, and must fit the device.
    Within { capacity_bytes: u64 },
    /// Page numbers are taken modulo the number of pages of the device.
    Wrap { capacity_bytes: u64, page_bytes: u64 },
    /// The touched pages are packed densely.
    Packed { ranks: Ranks, page_bytes: u64 },
}

impl Range {
    /// Makes any mapping except `compact`.
    pub(crate) fn new(options: &Options) -> Range {
        match (options.out_of_range, options.capacity_bytes) {
            (_, None) => Range::Any,
            (OutOfRange::Wrap, Some(capacity_bytes)) => {
                Range::Wrap { capacity_bytes, page_bytes: u64::from(options.page_bytes) }
            }
            (_, Some(capacity_bytes)) => Range::Within { capacity_bytes },
        }
    }

    /// Moves a request to its place on the device.
    ///
    /// # Errors
    /// A message if the request does not fit.
    #[inline]
    pub(crate) fn place(&self, record: &mut Record) -> Result<(), String> {
        if record.size == 0 {
            return Ok(());
        }
        match self {
            Range::Any => Ok(()),
            Range::Within { capacity_bytes } => {
                if record.offset + record.size <= *capacity_bytes {
                    Ok(())
                } else {
                    Err(beyond(record, *capacity_bytes))
                }
            }
            Range::Wrap { capacity_bytes, page_bytes } => {
                wrap(record, *capacity_bytes, *page_bytes);
                Ok(())
            }
            Range::Packed { ranks, page_bytes } => {
                // The pages between the first and the last are touched too, so they stay together.
                let rank = ranks.rank(record.offset / page_bytes);
                let rank =
                    rank.ok_or("the trace changed while it was read, so its pages cannot be packed")?;
                record.offset = rank * page_bytes + record.offset % page_bytes;
                Ok(())
            }
        }
    }
}

/// Wraps a request. One that would cross the end is shifted down by whole pages until it fits; one with more pages
/// than the device covers the whole device.
fn wrap(record: &mut Record, capacity_bytes: u64, page_bytes: u64) {
    let within = record.offset % page_bytes;
    let pages = pages_of(record, page_bytes);
    if pages >= capacity_bytes / page_bytes {
        record.offset = 0;
        record.size = record.size.min(capacity_bytes);
        return;
    }
    let first = record.offset / page_bytes % (capacity_bytes / page_bytes);
    let first = first.min(capacity_bytes / page_bytes - pages);
    record.offset = first * page_bytes + within;
}

/// Returns the number of pages that a request (of at least one byte) touches.
fn pages_of(record: &Record, page_bytes: u64) -> u64 {
    (record.offset + (record.size - 1)) / page_bytes - record.offset / page_bytes + 1
}

#[cold]
fn beyond(record: &Record, capacity_bytes: u64) -> String {
    format!(
        "{} B at byte {} ({}) are beyond the user capacity of {capacity_bytes} B ({})\n  \
         workload.out_of_range = \"compact\" packs the touched pages densely, \"wrap\" takes page numbers \
         modulo the capacity\n  or choose a larger device (flash.blocks_per_plane)",
        record.size,
        record.offset,
        human(record.offset),
        human(capacity_bytes)
    )
}

/// Collects the pages that a first pass touches, for `compact`.
pub(crate) struct Packer {
    footprint: Footprint,
    page_bytes: u64,
    capacity_bytes: Option<u64>,
}

impl Packer {
    /// Makes an empty packer for the pages and the capacity of `options`.
    pub(crate) fn new(options: &Options) -> Packer {
        Packer {
            footprint: Footprint::default(),
            page_bytes: u64::from(options.page_bytes),
            capacity_bytes: options.capacity_bytes,
        }
    }

    /// Adds a request.
    pub(crate) fn touch(&mut self, record: &Record) {
        touch(&mut self.footprint, record, self.page_bytes);
    }

    /// Whether scattered pages exceed the device by so much that further counting would only cost memory.
    pub(crate) fn is_hopeless(&self) -> bool {
        const BITMAPS: usize = 1 << 22;
        let chunks = self.footprint.bitmaps();
        chunks > BITMAPS
            && self.capacity_bytes.is_some_and(|capacity| capacity / self.page_bytes < chunks as u64)
    }

    /// Returns the mapping to packed addresses.
    ///
    /// # Errors
    /// A message if the pages exceed the capacity.
    pub(crate) fn finish(self) -> Result<Range, String> {
        let at_least = if self.is_hopeless() { "at least " } else { "" };
        let (page_bytes, capacity) = (self.page_bytes, self.capacity_bytes);
        let ranks = self.footprint.finish();
        match capacity {
            Some(capacity) if ranks.pages() > capacity / page_bytes => {
                let need = u128::from(ranks.pages()) * u128::from(page_bytes);
                Err(format!(
                    "the touched pages need {at_least}{need} B ({}) packed, and the user capacity is \
                     {capacity} B ({})\n  choose a larger device (flash.blocks_per_plane) or \
                     --out-of-range wrap",
                    human(u64::try_from(need).unwrap_or(u64::MAX)),
                    human(capacity)
                ))
            }
            _ => Ok(Range::Packed { ranks, page_bytes }),
        }
    }
}

/// Adds the pages of a request.
pub(crate) fn touch(footprint: &mut Footprint, record: &Record, page_bytes: u64) {
    if record.size > 0 {
        footprint.touch(record.offset / page_bytes, (record.offset + (record.size - 1)) / page_bytes);
    }
}

/// Formats a size for people: at most two decimals, binary units.
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (63 - u64::leading_zeros(bytes.max(1)) as usize) / 10;
    let value = bytes as f64 / (1u64 << (10 * power)) as f64;
    let text = format!("{value:.2}");
    format!("{} {}", text.trim_end_matches('0').trim_end_matches('.'), UNITS[power])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::workload::Op;

    fn request(offset: u64, size: u64) -> Record {
        Record { op: Op::Write, offset, size, line: 1, ..Record::FLUSH }
    }

    fn wrapped(offset: u64, size: u64) -> (u64, u64) {
        let mut record = request(offset, size);
        wrap(&mut record, 10 * 4096, 4096);
        (record.offset, record.size)
    }

    #[test]
    fn wraps_by_page() {
        assert_eq!(wrapped(4096, 512), (4096, 512));
        assert_eq!(wrapped(10 * 4096, 4096), (0, 4096));
        assert_eq!(wrapped(23 * 4096 + 512, 512), (3 * 4096 + 512, 512));
        // A request that touches two pages, from page 9 on, is shifted down by one page; it still begins 512 bytes into
        // its first page.
        assert_eq!(wrapped(9 * 4096 + 512, 4096), (8 * 4096 + 512, 4096));
        assert_eq!(wrapped(9 * 4096, 8192), (8 * 4096, 8192));
        // A request that touches as many pages as the device has, or more, is moved to address 0.
        assert_eq!(wrapped(4096, 10 * 4096), (0, 10 * 4096));
        assert_eq!(wrapped(512, 10 * 4096 - 100), (0, 10 * 4096 - 100));
        assert_eq!(wrapped(0, 1 << 50), (0, 10 * 4096));
        assert_eq!(wrapped(u64::MAX - 1, 1).1, 1);
    }

    #[test]
    fn refuses_beyond() {
        let range = Range::Within { capacity_bytes: 8192 };
        assert!(range.place(&mut request(4096, 4096)).is_ok());
        let text = range.place(&mut request(4096, 4097)).unwrap_err();
        assert!(
            text.starts_with("4097 B at byte 4096 (4 KiB) are beyond the user capacity of 8192 B (8 KiB)\n")
        );
        assert!(text.contains("workload.out_of_range = \"compact\"") && text.contains("\"wrap\" takes"));
    }

    #[test]
    fn packs_in_order() {
        let options = Options { capacity_bytes: Some(3 * 4096), ..Options::default() };
        let requests = [request(1 << 40, 4096), request(100 * 4096 + 512, 4096)];
        let mut packer = Packer::new(&options);
        requests.iter().for_each(|request| packer.touch(request));
        let range = packer.finish().unwrap();
        let placed = requests.map(|mut request| {
            range.place(&mut request).unwrap();
            request.offset
        });
        assert_eq!(placed, [2 * 4096, 512]);

        let mut packer = Packer::new(&Options { capacity_bytes: Some(2 * 4096), ..options });
        requests.iter().for_each(|request| packer.touch(request));
        let text = packer.finish().err().unwrap();
        assert!(
            text.starts_with(
                "the touched pages need 12288 B (12 KiB) packed, and the user capacity is 8192 B"
            )
        );
    }

    #[test]
    fn sizes_for_people() {
        assert_eq!(human(0), "0 B");
        assert_eq!(human(1023), "1023 B");
        assert_eq!(human(1536), "1.5 KiB");
        assert_eq!(human(16 << 30), "16 GiB");
        assert_eq!(human(u64::MAX), "16 EiB");
    }
}
