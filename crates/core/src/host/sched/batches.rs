//! Batches of pending requests that share a translation page (RB and its descendants).
//!
//! Source: Ji et al., TCAD 2018, section V-B and Algorithm 1 (Index_Batch, Add_to_Batch,
//! Create_New_Batch). A request joins the batch of its half and of the translation page of its
//! first LPN; a flush, which has no LPN, is a batch of its own.

use super::Needs;
use crate::request::{Half, Pool, Queue, Request};
use crate::util::{Chain, Linked, NONE, Neighbours, Slab};

/// What a scheduler with batches needs.
pub(super) const BATCHED: Needs =
    Needs { translation_pages: true, deadline: true, batches: true, ..Needs::NOTHING };

/// Ids of waiting batches or bundles, each under a small number, which stands for a translation page and a half, or for
/// a flash block. The table is dense, since hashing would cost more than everything else that a batch needs; it grows
/// to the largest number seen.
#[derive(Clone, Debug)]
pub(super) struct Index(Vec<u32>);

impl Index {
    pub fn new() -> Index {
        Index(vec![NONE; 1024])
    }

    /// Returns the id that is stored under a number, or [`NONE`].
    #[inline]
    pub fn get(&self, key: u32) -> u32 {
        self.0.get(key as usize).copied().unwrap_or(NONE)
    }

    /// Stores an id under a number; [`NONE`] removes the entry.
    #[inline]
    pub fn set(&mut self, key: u32, value: u32) {
        if key as usize >= self.0.len() {
            self.0.resize((key as usize + 1).next_power_of_two(), NONE);
        }
        self.0[key as usize] = value;
    }
}

/// A waiting batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    /// The batch's number, from 1 in order of creation; both halves share one counter.
    pub number: u64,
    /// The requests of the batch, in order of arrival.
    pub queue: Queue,
    /// Number of pages of all its requests.
    pub pages: u64,
    half: Half,
    key: Option<u32>,
    order: Neighbours,
}

impl Linked for Batch {
    fn neighbours(&mut self) -> &mut Neighbours {
        &mut self.order
    }
}

/// The waiting batches of both halves.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    slots: Slab<Batch>,
    /// For each translation page and half, the waiting batch, or [`NONE`].
    index: Index,
    /// The waiting batches of each half, from the oldest to the youngest.
    order: [Chain; 2],
    /// Number of batches created.
    pub created: u64,
}

impl Batches {
    pub fn new() -> Batches {
        Batches {
            slots: Slab::with_capacity(128),
            index: Index::new(),
            order: Default::default(),
            created: 0,
        }
    }

    /// Returns the oldest waiting batch of a half, or [`NONE`].
    #[inline]
    pub fn oldest(&self, half: Half) -> u32 {
        self.order[half as usize].head
    }

    /// Returns a waiting batch.
    #[inline]
    pub fn get(&self, slot: u32) -> &Batch {
        &self.slots[slot]
    }

    /// Adds a request to its batch; returns the batch and whether it is new.
    pub fn join(&mut self, id: u32, pool: &mut Pool) -> (u32, bool) {
        let request = &pool[id];
        let half = request.half();
        let pages = u64::from(request.pages.pages);
        let key = (pages > 0).then_some(request.host.translation_page << 1 | half as u32);
        let found = key.map(|key| self.index.get(key)).filter(|&slot| slot != NONE);
        let slot = found.unwrap_or_else(|| self.create(half, key));
        let batch = &mut self.slots[slot];
        batch.queue.push(id, pool);
        batch.pages += pages;
        pool[id].host.batch = batch.number;
        pool[id].host.slot = slot;
        (slot, found.is_none())
    }

    /// Notes that a waiting request that had `before` pages has grown; returns its batch.
    pub fn grown(&mut self, id: u32, before: u32, pool: &Pool) -> u32 {
        let slot = pool[id].host.slot;
        self.slots[slot].pages += u64::from(pool[id].pages.pages - before);
        slot
    }

    fn create(&mut self, half: Half, key: Option<u32>) -> u32 {
        self.created += 1;
        let number = self.created;
        let batch = Batch { number, queue: Queue::default(), pages: 0, half, key, order: Neighbours::NONE };
        let slot = self.slots.insert(batch);
        self.order[half as usize].push_tail(slot, self.slots.all());
        if let Some(key) = key {
            self.index.set(key, slot);
        }
        slot
    }

    /// Makes a batch of a single request, a hit, which no other request joins; returns the batch.
    pub fn alone(&mut self, id: u32, pool: &mut Pool) -> u32 {
        let slot = self.create(pool[id].half(), None);
        let batch = &mut self.slots[slot];
        batch.queue.push(id, pool);
        batch.pages = u64::from(pool[id].pages.pages);
        pool[id].host.batch = batch.number;
        pool[id].host.slot = slot;
        slot
    }

    /// Whether a batch is waiting in this slot.
    pub fn waits(&self, slot: u32) -> bool {
        self.slots[slot].number > 0
    }

    /// Returns the waiting batches of both halves, for check mode.
    pub fn waiting(&self) -> impl Iterator<Item = u32> {
        (0..self.slots.most() as u32).filter(|&slot| self.waits(slot))
    }

    /// Removes a whole batch. All its requests but the first count as prioritized.
    pub fn take(&mut self, slot: u32, pool: &mut Pool) -> Queue {
        let queue = self.withdraw(slot);
        mark(&queue, pool);
        queue
    }

    /// Removes a whole batch whose requests are still to be marked.
    pub fn withdraw(&mut self, slot: u32) -> Queue {
        let queue = self.slots[slot].queue;
        self.delete(slot);
        queue
    }

    /// Removes one request; returns its batch if the batch still has others.
    pub fn remove(&mut self, id: u32, pool: &mut Pool) -> Option<u32> {
        let slot = pool[id].host.slot;
        let batch = &mut self.slots[slot];
        batch.queue.unlink(id, pool);
        batch.pages -= u64::from(pool[id].pages.pages);
        if batch.queue.is_empty() {
            self.delete(slot);
            return None;
        }
        Some(slot)
    }

    /// Checks every waiting batch, and calls `each` with each half and the number of its batches; returns the number
    /// of requests.
    pub fn verify(
        &self,
        pool: &Pool,
        each: impl Fn(Half, usize) -> Result<(), String>,
    ) -> Result<u32, String> {
        let mut requests = 0;
        for half in [Half::Read, Half::Write] {
            let (mut slot, mut before, mut count) = (self.oldest(half), NONE, 0);
            while slot != NONE && count < self.slots.most() {
                let batch = &self.slots[slot];
                let fault = |what: &str| Err(format!("batch {}: {what}", batch.number));
                let is_member = |request: &Request| {
                    let apart = request.pages.pages == 0 || batch.key.is_none() && request.host.hit;
                    let key = (!apart).then_some(request.host.translation_page << 1 | half as u32);
                    (request.half(), key, request.host.batch) == (half, batch.key, batch.number)
                        && request.host.slot == slot
                };
                requests += batch.queue.verify(pool, is_member)?;
                let mut pages = 0;
                let mut id = batch.queue.head();
                while id != NONE {
                    pages += u64::from(pool[id].pages.pages);
                    id = pool.behind(id);
                }
                if batch.queue.is_empty() || batch.pages != pages {
                    return fault(&format!("it counts {} pages, its requests have {pages}", batch.pages));
                }
                if batch.order.before != before || before != NONE && self.get(before).number >= batch.number {
                    return fault("it is not in order of creation");
                }
                if batch.key.is_some_and(|key| self.index.get(key) != slot) {
                    return fault("it is not found by its translation page");
                }
                (before, slot, count) = (slot, batch.order.behind, count + 1);
            }
            if before != self.order[half as usize].tail {
                return Err(format!("{count} batches wait, and the youngest is not the last"));
            }
            each(half, count)?;
        }
        Ok(requests)
    }

    fn delete(&mut self, slot: u32) {
        let Batch { half, key, .. } = self.slots[slot];
        self.order[half as usize].unlink(slot, self.slots.all());
        if let Some(key) = key {
            self.index.set(key, NONE);
        }
        self.slots[slot].number = 0;
        self.slots.release(slot);
    }
}

/// Marks the requests of a batch that leaves: with the first of them the device loads the mappings for all, and all but
/// the first count as prioritized.
pub(super) fn mark(queue: &Queue, pool: &mut Pool) {
    let mut id = pool.behind(queue.head());
    while id != NONE {
        pool[id].host.prioritized = true;
        id = pool.behind(id);
    }
    let first = &mut pool[queue.head()];
    first.host.prefetch = first.pages.pages > 0;
}
