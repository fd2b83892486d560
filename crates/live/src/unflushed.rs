//! What a volatile cache may lose: the writes and trims that no flush has covered yet.
//!
//! Under `device.write_buffer_policy = "adversarial"` the engine keeps the newest of them, `device.write_buffer` bytes
//! of data, together with what their sectors held before. At a cut a seed draws which of them persist, sector by
//! sector; what a sector then holds is its durable content, overwritten by the writes that persist, in the order in
//! which they came. So any of them may be missing, whatever came before or after it, but no sector is torn.
//!
//! Source of the model: the states that Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014), section 4,
//! enumerate, with sectors as the units that are written atomically.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use ftlab_core::device::buffer::settings::Policy;
use ftlab_core::settings::Settings;
use ftlab_core::util::below;
use ftlab_core::workload::Op;
use rand::RngCore;

/// Bytes that are never torn.
pub const SECTOR: u64 = 512;
/// How far back [`Unflushed::recent`] goes: ns of simulated time, and requests.
const RECENT: (u64, usize) = (1_000_000_000, 1000);

/// The bytes of a sector.
pub type Bytes = [u8; SECTOR as usize];

/// A write or a trim as it was submitted.
#[derive(Clone, Debug)]
pub struct Write {
    /// Number of the submission; later ones have greater numbers.
    pub number: u64,
    /// Write or trim.
    pub op: Op,
    /// The first byte, and the one after the last.
    pub range: (u64, u64),
    /// The data; empty: zeroes.
    pub data: Arc<[u8]>,
    /// Simulated time at which it was acknowledged, ns; `None` while it is in flight.
    pub end_ns: Option<u64>,
    /// Whether the answer was an error; it may persist all the same.
    pub failed: bool,
    /// Whether it is durable once it is acknowledged.
    pub fua: bool,
    /// For each of its sectors, whether the write persists; empty before a cut.
    pub persists: Vec<bool>,
}

impl Write {
    /// Returns the numbers of the sectors that it touches.
    pub fn sectors(&self) -> std::ops::Range<u64> {
        self.range.0 / SECTOR..self.range.1.div_ceil(SECTOR)
    }

    fn bytes(&self) -> u64 {
        self.range.1 - self.range.0
    }

    /// Overwrites what it writes of a sector.
    fn put(&self, sector: u64, bytes: &mut Bytes) {
        let start = sector * SECTOR;
        let (from, to) = (self.range.0.max(start), self.range.1.min(start + SECTOR));
        let into = &mut bytes[(from - start) as usize..(to - start) as usize];
        match self.data.is_empty() {
            true => into.fill(0),
            false => {
                into.copy_from_slice(&self.data[(from - self.range.0) as usize..(to - self.range.0) as usize])
            }
        }
    }
}

/// The durable content of a sector that unflushed writes touch.
#[derive(Clone, Debug)]
pub struct Sector {
    /// The durable content.
    pub bytes: Box<Bytes>,
    /// Number of the write that made it; writes with smaller numbers are older than the content.
    pub since: u64,
    /// Number of unflushed writes that touch the sector.
    writes: u32,
}

/// A request of the last second.
#[derive(Clone, Debug)]
pub struct Event {
    /// Number of the submission.
    pub number: u64,
    /// What was asked.
    pub op: Op,
    /// The first byte, and the one after the last; both 0 for a flush.
    pub range: (u64, u64),
    /// Whether it has FUA.
    pub fua: bool,
    /// Simulated times of arrival and of the answer, ns.
    pub times_ns: (u64, Option<u64>),
    /// Whether the answer was an error; a flush that failed covers nothing.
    pub failed: bool,
}

/// The unflushed writes and trims, and the requests of the last second.
#[derive(Debug, Default)]
pub struct Unflushed {
    /// Bytes of writes that may be lost; the oldest beyond it count as destaged.
    most_bytes: u64,
    held_bytes: u64,
    /// By the sector's number.
    pub sectors: HashMap<u64, Sector>,
    /// In the order of their numbers.
    pub writes: VecDeque<Write>,
    /// Those in flight that are larger than `most_bytes`, and count as destaged once they are acknowledged.
    large: Vec<Write>,
    /// The flushes in flight: the number of each, and the writes that had been acknowledged when it came.
    flushes: Vec<(u64, Vec<u64>)>,
    /// The requests of the last second before the newest, at most a thousand, oldest first.
    pub recent: VecDeque<Event>,
}

impl Unflushed {
    /// Makes an empty list for a device; `None` if nothing is drawn at its cuts.
    pub fn of(settings: &Settings) -> Option<Unflushed> {
        let buffer = &settings.device.buffer;
        (buffer.on() && buffer.policy == Policy::Adversarial).then(|| Unflushed::new(buffer.bytes))
    }

    /// Makes an empty list, for a cache of this many bytes.
    pub fn new(most_bytes: u64) -> Unflushed {
        Unflushed { most_bytes, ..Unflushed::default() }
    }

    /// Notes that a flush has been submitted.
    pub fn flush(&mut self, number: u64, now_ns: u64) {
        let done = self.writes.iter().filter(|write| write.end_ns.is_some());
        self.flushes.push((number, done.map(|write| write.number).collect()));
        let times_ns = (now_ns, None);
        self.note(Event { number, op: Op::Flush, range: (0, 0), fua: false, times_ns, failed: false });
    }

    /// Notes that a write or a trim has been submitted; `old` fills in what a sector holds.
    pub fn write(&mut self, write: Write, now_ns: u64, old: impl Fn(u64, &mut Bytes)) {
        let Write { number, op, range, fua, .. } = write;
        self.note(Event { number, op, range, fua, times_ns: (now_ns, None), failed: false });
        if write.bytes() > self.most_bytes {
            return self.large.push(write);
        }
        for number in write.sectors() {
            let sector = self.sectors.entry(number).or_insert_with(|| {
                let mut bytes = Box::new([0; SECTOR as usize]);
                old(number, &mut bytes);
                Sector { bytes, since: 0, writes: 0 }
            });
            sector.writes += 1;
        }
        self.held_bytes += write.bytes();
        self.writes.push_back(write);
    }

    fn note(&mut self, event: Event) {
        let (begin_ns, _) = event.times_ns;
        self.recent.push_back(event);
        let old = |event: &Event| event.times_ns.0 + RECENT.0 < begin_ns;
        while self.recent.len() > RECENT.1 || self.recent.front().is_some_and(old) {
            self.recent.pop_front();
        }
    }

    /// Notes that a submission has been answered; a flush that has `failed` covers nothing.
    pub fn acknowledge(&mut self, number: u64, failed: bool, now_ns: u64) {
        if let Some(event) = self.recent.iter_mut().rev().find(|event| event.number == number) {
            event.times_ns.1 = Some(now_ns);
            event.failed = failed;
        }
        if let Some(at) = self.flushes.iter().position(|flush| flush.0 == number) {
            let (_, covered) = self.flushes.swap_remove(at);
            let durable = |write: &Write| !failed && covered.binary_search(&write.number).is_ok();
            return self.settle(durable);
        }
        if let Some(at) = self.large.iter().position(|write| write.number == number) {
            let write = self.large.swap_remove(at);
            let range = write.sectors();
            let within = self.sectors.iter_mut().filter(|(sector, _)| range.contains(sector));
            within.for_each(|(&sector, known)| renew(known, &write, sector));
            return;
        }
        let Ok(at) = self.writes.binary_search_by_key(&number, |write| write.number) else { return };
        (self.writes[at].end_ns, self.writes[at].failed) = (Some(now_ns), failed);
        if self.writes[at].fua && !failed {
            self.settle(|write| write.number == number);
        }
        while self.held_bytes > self.most_bytes
            && let Some(oldest) = self.writes.iter().find(|write| write.end_ns.is_some())
        {
            let oldest = oldest.number;
            self.settle(|write| write.number == oldest);
        }
    }

    /// Makes writes durable.
    fn settle(&mut self, durable: impl Fn(&Write) -> bool) {
        let Unflushed { writes, sectors, held_bytes, .. } = self;
        writes.retain(|write| {
            if !durable(write) {
                return true;
            }
            *held_bytes -= write.bytes();
            for number in write.sectors() {
                let known = sectors.get_mut(&number).expect("a write touches it");
                renew(known, write, number);
                known.writes -= 1;
                if known.writes == 0 {
                    sectors.remove(&number);
                }
            }
            false
        });
    }

    /// Draws what persists. One time in five nothing does; else one write, all but one, each write by the toss of a
    /// coin, or each sector of each write.
    pub fn draw(&mut self, random: &mut impl RngCore) {
        let how = below(random.next_u64(), 5);
        let one = below(random.next_u64(), self.writes.len().max(1) as u64) as usize;
        for (at, write) in self.writes.iter_mut().enumerate() {
            let mut coin = || below(random.next_u64(), 2) == 0;
            let whole = match how {
                0 => false,
                1 => at == one,
                2 => at != one,
                _ => coin(),
            };
            write.persists = write.sectors().map(|_| if how == 4 { coin() } else { whole }).collect();
        }
    }
}

/// Makes a write the content of a sector, unless the content is newer.
fn renew(known: &mut Sector, write: &Write, number: u64) {
    if write.number >= known.since {
        write.put(number, &mut known.bytes);
        known.since = write.number;
    }
}

/// Returns what the sectors hold after the cut, in ascending order of their numbers.
pub fn contents<'a>(
    sectors: impl Iterator<Item = (u64, Sector)>,
    writes: impl Iterator<Item = &'a Write>,
) -> Vec<(u64, Sector)> {
    let mut found: Vec<(u64, Sector)> = sectors.collect();
    found.sort_unstable_by_key(|&(number, _)| number);
    for write in writes {
        for (number, _) in write.sectors().zip(&write.persists).filter(|&(_, &persists)| persists) {
            if let Ok(at) = found.binary_search_by_key(&number, |&(number, _)| number) {
                renew(&mut found[at].1, write, number);
            }
        }
    }
    found
}

impl Sector {
    /// Makes a sector with this durable content, of the write with this number.
    pub fn known(bytes: Bytes, since: u64) -> Sector {
        Sector { bytes: Box::new(bytes), since, writes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(number: u64, range: (u64, u64), byte: u8, fua: bool) -> Write {
        let data = vec![byte; (range.1 - range.0) as usize].into();
        Write { number, op: Op::Write, range, data, end_ns: None, failed: false, fua, persists: Vec::new() }
    }

    /// Returns the first and the last byte of a sector if these of the unflushed writes persist.
    fn found(unflushed: &mut Unflushed, sector: u64, persists: &[bool]) -> (u8, u8) {
        for (write, &persists) in unflushed.writes.iter_mut().zip(persists) {
            write.persists = write.sectors().map(|_| persists).collect();
        }
        assert_eq!(unflushed.writes.len(), persists.len());
        let sectors = unflushed.sectors.iter().map(|(&number, sector)| (number, sector.clone()));
        let contents = contents(sectors, unflushed.writes.iter());
        let at = contents.binary_search_by_key(&sector, |&(number, _)| number).unwrap();
        let bytes = &contents[at].1.bytes;
        (bytes[0], bytes[511])
    }

    fn begin(unflushed: &mut Unflushed, write: Write) {
        let number = write.number;
        unflushed.write(write, number, |_, bytes| bytes.fill(0xee));
    }

    #[test]
    fn a_sector_holds_the_newest_write_that_persists() {
        let mut cache = Unflushed::new(1 << 20);
        begin(&mut cache, write(1, (0, 1024), 1, false));
        begin(&mut cache, write(2, (512, 768), 2, false));
        assert_eq!(found(&mut cache, 1, &[false, false]), (0xee, 0xee));
        assert_eq!(found(&mut cache, 1, &[false, true]), (2, 0xee));
        assert_eq!(found(&mut cache, 1, &[true, false]), (1, 1));
        assert_eq!(found(&mut cache, 1, &[true, true]), (2, 1));
    }

    #[test]
    fn a_flush_covers_what_was_acknowledged_before_it_came() {
        let mut cache = Unflushed::new(1 << 20);
        begin(&mut cache, write(1, (0, 512), 1, false));
        begin(&mut cache, write(2, (0, 512), 2, false));
        cache.acknowledge(1, false, 5);
        cache.flush(3, 6);
        begin(&mut cache, write(4, (0, 512), 4, false));
        cache.acknowledge(2, false, 7);
        cache.acknowledge(3, false, 8);
        // The first is durable; the second was in flight when the flush came.
        assert_eq!(found(&mut cache, 0, &[false, false]), (1, 1));
        assert_eq!(found(&mut cache, 0, &[true, false]), (2, 2));
        cache.flush(5, 9);
        cache.acknowledge(5, true, 10);
        assert_eq!(cache.writes.len(), 2, "a flush that failed covers nothing");
        let failed = cache.recent.iter().filter(|event| event.failed).map(|event| event.number);
        assert_eq!(failed.collect::<Vec<_>>(), [5]);
        cache.flush(6, 11);
        cache.acknowledge(4, true, 12);
        cache.acknowledge(6, false, 13);
        assert_eq!(found(&mut cache, 0, &[false]), (2, 2));
        assert_eq!(cache.sectors.len(), 1);
        assert_eq!(
            cache.writes.iter().map(|write| (write.number, write.failed)).collect::<Vec<_>>(),
            [(4, true)]
        );
    }

    #[test]
    fn fua_makes_a_write_durable_and_older_ones_stay_older() {
        let mut cache = Unflushed::new(1 << 20);
        begin(&mut cache, write(1, (0, 512), 1, false));
        begin(&mut cache, write(2, (0, 512), 2, true));
        assert_eq!(found(&mut cache, 0, &[true, false]), (1, 1), "it is not acknowledged yet");
        cache.acknowledge(2, false, 3);
        assert_eq!(found(&mut cache, 0, &[true]), (2, 2));
        assert_eq!(found(&mut cache, 0, &[false]), (2, 2));
    }

    #[test]
    fn beyond_the_size_of_the_cache_the_oldest_acknowledged_write_is_durable() {
        let mut cache = Unflushed::new(1024);
        for number in 1..=3 {
            begin(&mut cache, write(number, (512 * number, 512 * number + 512), number as u8, false));
        }
        cache.acknowledge(2, false, 9);
        assert_eq!(cache.writes.iter().map(|write| write.number).collect::<Vec<_>>(), [1, 3]);
        // One that is larger than the cache is durable once it is acknowledged, and newer than what was there.
        begin(&mut cache, write(4, (512, 4096), 4, false));
        assert_eq!(found(&mut cache, 1, &[true, true]), (1, 1));
        cache.acknowledge(4, false, 9);
        assert_eq!(found(&mut cache, 1, &[true, true]), (4, 4));
    }

    #[test]
    fn a_seed_draws_every_kind_of_loss() {
        let mut cache = Unflushed::new(1 << 20);
        (1..=4).for_each(|number| {
            begin(&mut cache, write(number, (4096 * number, 4096 * number + 4096), 1, false))
        });
        let mut seen = [0; 5];
        for seed in 0..200 {
            cache.draw(&mut ftlab_core::util::stream(seed, "unflushed"));
            let whole = |write: &&Write| write.persists.iter().all(|&persists| persists);
            let none = |write: &&Write| !write.persists.contains(&true);
            let (kept, lost) =
                (cache.writes.iter().filter(whole).count(), cache.writes.iter().filter(none).count());
            assert!(cache.writes.iter().all(|write| write.persists.len() == 8));
            match (kept, lost) {
                (0, 4) => seen[0] += 1,
                (1, 3) => seen[1] += 1,
                (3, 1) => seen[2] += 1,
                (kept, lost) if kept + lost == 4 => seen[3] += 1,
                _ => seen[4] += 1,
            }
        }
        assert!(seen.iter().all(|&count| count > 10), "{seen:?}");
    }
}
