//! Requests in order of arrival, with writes bundled by flash block (IRBW and its descendants).
//!
//! Source: J. Kim, Y. Oh, E. Kim, J. Choi, D. Lee, S. H. Noh, "Disk schedulers for solid state drives",
//! EMSOFT 2009 (IRBW-FIFO), as described in Shim et al., TC 2014, sections 3, 5.3.1 and 6.1: the victim is
//! the oldest request; a read goes alone; a write takes along all queued writes of its logical block, "issued
//! together in a sequential manner".
//!
//! Interpretation: sequential means in ascending order of pages; writes that overlap stay in order of
//! arrival. Trims and flushes go alone, as reads do. No write overtakes a trim of its block: what arrives after a
//! trim begins another bundle, and a bundle behind a trim is not taken ahead of it.

use super::batches::Index;
use crate::request::{Pool, Queue, Request};
use crate::util::{Chain, Linked, NONE, Neighbours, Slab};
use crate::workload::Op;

/// A place in the order of arrival: a bundle of one block's writes, or a request that goes alone.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// Number of the place, from 1 in order of arrival.
    number: u64,
    /// Logical block of a bundle; [`NONE`] for a single request.
    block: u32,
    /// The requests at this place, in order of arrival.
    queue: Queue,
    order: Neighbours,
}

impl Linked for Position {
    fn neighbours(&mut self) -> &mut Neighbours {
        &mut self.order
    }
}

/// The waiting requests.
#[derive(Clone, Debug)]
pub(super) struct Bundles {
    block_pages: u32,
    places: Slab<Position>,
    /// Bundles that still take writes, by block.
    open: Index,
    /// The places, from the oldest to the youngest.
    order: Chain,
    numbered: u64,
    /// Number of waiting trims.
    trims: u32,
    /// Number of block issues so far.
    pub issues: u64,
}

impl Bundles {
    /// Makes empty bundles for blocks of this many logical pages (COOP_GetSize).
    pub fn new(block_pages: u32) -> Bundles {
        Bundles {
            block_pages,
            places: Slab::with_capacity(128),
            open: Index::new(),
            order: Chain::default(),
            numbered: 0,
            trims: 0,
            issues: 0,
        }
    }

    /// Notes that a request begins to wait.
    pub fn admit(&mut self, id: u32, pool: &mut Pool) {
        let request = &pool[id];
        let pages = request.pages;
        let mut block = NONE;
        let mut slot = NONE;
        if request.op == Op::Write && pages.pages > 0 {
            block = pages.first / self.block_pages;
            slot = self.open.get(block);
        } else if request.op == Op::Trim && pages.pages > 0 {
            self.close(pages.first / self.block_pages, (pages.first + pages.pages - 1) / self.block_pages);
            self.trims += 1;
        }
        if slot == NONE {
            slot = self.create(block);
        }
        self.places[slot].queue.push(id, pool);
        pool[id].host.slot = slot;
    }

    /// Closes the bundles of these blocks to further writes.
    fn close(&mut self, first: u32, last: u32) {
        let mut slot = self.order.head;
        while slot != NONE {
            let Position { block, order, .. } = self.places[slot];
            if block != NONE && (first..=last).contains(&block) {
                self.open.set(block, NONE);
            }
            slot = order.behind;
        }
    }

    fn create(&mut self, block: u32) -> u32 {
        self.numbered += 1;
        let (number, order) = (self.numbered, Neighbours::NONE);
        let slot = self.places.insert(Position { number, block, queue: Queue::default(), order });
        self.order.push_tail(slot, self.places.all());
        if block != NONE {
            self.open.set(block, slot);
        }
        slot
    }

    fn delete(&mut self, slot: u32) {
        self.order.unlink(slot, self.places.all());
        let block = self.places[slot].block;
        if block != NONE && self.open.get(block) == slot {
            self.open.set(block, NONE);
        }
        self.places.release(slot);
    }

    /// Removes the oldest place: its requests go to `taken`; returns its block, or [`NONE`] if it is a single
    /// request.
    pub fn take_oldest(&mut self, pool: &mut Pool, taken: &mut Vec<u32>) -> Option<u32> {
        let slot = self.order.head;
        (slot != NONE).then(|| {
            let block = self.places[slot].block;
            self.take(slot, pool, taken);
            block
        })
    }

    /// Removes those of a block's writes that may go now, and appends them to `taken`.
    pub fn take_block(&mut self, block: u32, pool: &mut Pool, taken: &mut Vec<u32>) {
        let slot = self.open.get(block);
        if slot == NONE {
            return;
        }
        if self.trims > 0 && self.oldest_trim(pool) < self.places[slot].number {
            return;
        }
        self.take(slot, pool, taken);
    }

    fn oldest_trim(&self, pool: &Pool) -> u64 {
        let mut slot = self.order.head;
        while slot != NONE {
            let place = &self.places[slot];
            if pool[place.queue.head()].op == Op::Trim {
                return place.number;
            }
            slot = place.order.behind;
        }
        u64::MAX
    }

    fn take(&mut self, slot: u32, pool: &mut Pool, taken: &mut Vec<u32>) {
        let mut queue = self.places[slot].queue;
        self.delete(slot);
        while let Some(id) = queue.pop(pool) {
            self.trims -= u32::from(is_trim(&pool[id]));
            taken.push(id);
        }
    }

    /// Checks every place, its requests and the counts; returns the number of requests.
    pub fn verify(&self, pool: &Pool) -> Result<u32, String> {
        let (mut slot, mut before, mut requests, mut trims) = (self.order.head, NONE, 0, 0);
        while slot != NONE {
            let Position { number, block, queue, order } = self.places[slot];
            let is_member = |request: &Request| {
                let pages = request.pages;
                let of = if request.op == Op::Write && pages.pages > 0 {
                    let last = (pages.first + pages.pages - 1) / self.block_pages;
                    pages.first / self.block_pages == block && last == block
                } else {
                    block == NONE && queue.len() == 1
                };
                of && request.host.slot == slot
            };
            requests += queue.verify(pool, is_member).map_err(|fault| format!("block issue: {fault}"))?;
            trims += u32::from(!queue.is_empty() && is_trim(&pool[queue.head()]));
            if queue.is_empty() || order.before != before {
                return Err(format!("place {number} of block issues is empty or out of order"));
            }
            if before != NONE && self.places[before].number >= number {
                return Err(format!("place {number} of block issues is behind a younger one"));
            }
            (before, slot) = (slot, order.behind);
        }
        if (before, trims) != (self.order.tail, self.trims) {
            return Err(format!("{trims} trims wait, {} count; or the youngest is not the last", self.trims));
        }
        Ok(requests)
    }

    /// Appends `writes` to `batch` as a block issue, in sequence.
    pub fn issue(&mut self, writes: &mut [u32], pool: &mut Pool, batch: &mut Queue) {
        arrange(writes, pool);
        self.issues += 1;
        for (at, &id) in writes.iter().enumerate() {
            pool[id].host.batch = self.issues;
            pool[id].host.prioritized |= at > 0;
            batch.push(id, pool);
        }
    }
}

fn is_trim(request: &Request) -> bool {
    request.op == Op::Trim && request.pages.pages > 0
}

/// Sorts requests, given in order of arrival, by their first byte; those that overlap keep their order.
fn arrange(writes: &mut [u32], pool: &Pool) {
    for end in 1..writes.len() {
        let id = writes[end];
        let (start, behind) = (pool[id].offset, pool[id].offset + pool[id].size);
        let mut at = end;
        while at > 0 {
            let other = &pool[writes[at - 1]];
            let overlaps = other.offset < behind && start < other.offset + other.size;
            if other.offset <= start || overlaps {
                break;
            }
            writes[at] = writes[at - 1];
            at -= 1;
        }
        writes[at] = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(pool: &mut Pool, op: Op, first: u32, pages: u32) -> u32 {
        pool.insert(Request::of_pages(op, first, pages))
    }

    /// Writes are sorted in ascending order, except that of two overlapping writes the younger stays behind the older,
    /// because its data are newer.
    #[test]
    fn overlapping_writes_keep_their_order() {
        let mut pool = Pool::default();
        let mut ids: Vec<u32> = [(6, 2), (4, 2), (3, 2), (0, 1), (7, 1)]
            .map(|(first, pages)| write(&mut pool, Op::Write, first, pages))
            .into();
        arrange(&mut ids, &pool);
        let firsts: Vec<u32> = ids.iter().map(|&id| pool[id].pages.first).collect();
        assert_eq!(firsts, [0, 4, 3, 6, 7]);
    }

    /// A write behind a trim of its block neither joins the bundle in front of the trim nor overtakes the trim.
    #[test]
    fn no_write_passes_a_trim() {
        let mut pool = Pool::default();
        let mut bundles = Bundles::new(4);
        let ids = [(Op::Write, 5), (Op::Write, 0), (Op::Trim, 1), (Op::Write, 1), (Op::Write, 6)]
            .map(|(op, first)| write(&mut pool, op, first, 1));
        ids.iter().for_each(|&id| bundles.admit(id, &mut pool));
        let mut taken = Vec::new();
        bundles.take_block(0, &mut pool, &mut taken);
        assert!(taken.is_empty(), "the trim waits");
        bundles.take_block(1, &mut pool, &mut taken);
        assert_eq!(taken, [ids[0], ids[4]], "another block's bundle from before it");
        let mut rest = Vec::new();
        while bundles.take_oldest(&mut pool, &mut rest).is_some() {}
        assert_eq!(rest, [ids[1], ids[2], ids[3]]);
    }
}
