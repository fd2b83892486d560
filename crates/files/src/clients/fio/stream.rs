//! Where the requests of a fio job go, and how large they are: one after another, as fio chooses them.
//!
//! Each direction has a position of its own. A random job keeps a map of the blocks that it has touched, unless it is
//! told not to: each block is touched once, and a request ends before a block that has been touched. When no request
//! can be found any more, the pass is over.

use rand::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::addresses::Addresses;
use super::files::Place;
use super::map::Map;
use super::{Distribution, Group, Job, Mix, Pattern, Sizes};
use ftlab_core::util::{below, stream};

pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;
pub(super) const TRIM: usize = 2;

/// The random numbers of a pass, in separate streams so that what one decides does not move the others.
#[derive(Clone, Debug)]
struct Draws {
    place: Xoshiro256PlusPlus,
    size: Xoshiro256PlusPlus,
    mix: Xoshiro256PlusPlus,
    /// Whether a request is random, and when the next one of a Poisson process arrives.
    other: Xoshiro256PlusPlus,
}

/// The requests of a worker.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    job: Job,
    /// Where the worker's part of the file begins, and its bytes.
    first: u64,
    bytes: u64,
    /// The draws, and what they are at the beginning of a pass.
    draws: Draws,
    fresh: Draws,
    addresses: Addresses,
    map: Option<Map>,
    /// What random addresses of each direction are multiples of.
    align: [u64; 3],
    least: [u64; 3],
    /// Where each direction's last request began and ended.
    began: [Option<u64>; 3],
    ended: [u64; 3],
    /// Where the zone begins; without zones, the worker's part of the file. Bytes requested in it.
    zone: u64,
    zone_bytes: u64,
    /// Number of requests until one is drawn again.
    follow: u64,
    /// The direction of the last request of a mixed job, and the number of its requests until another is drawn.
    way: usize,
    turn: u64,
    /// Whether a direction has begun again within a pass, so that the page cache is dropped.
    pub wrapped: bool,
}

impl Stream {
    /// Makes the requests of a worker that has this name among all of a run.
    pub fn new(job: &Job, place: &Place, seed: u64, name: &str) -> Stream {
        let [place_draws, size, mix, other, ranks] =
            ["", " sizes", " mix", " other", " ranks"].map(|what| stream(seed, &format!("fio {name}{what}")));
        let draws = Draws { place: place_draws, size, mix, other };
        let least = [READ, WRITE, TRIM].map(|way| job.block[way].least());
        let random = job.pattern == Pattern::Random;
        let align = [READ, WRITE, TRIM].map(|way| job.align[way].filter(|_| random).unwrap_or(least[way]));
        let span = job.strides.map_or(place.bytes, |strides| strides.range);
        let keeps = job.map && random && align == least && job.distribution == Distribution::Random;
        let unit = least[READ].min(least[WRITE]).min(least[TRIM]);
        let ranks_of = place.bytes.div_ceil(least[READ].min(least[WRITE]));
        Stream {
            first: place.first,
            bytes: place.bytes,
            fresh: draws.clone(),
            draws,
            addresses: Addresses::new(&job.distribution, ranks_of, ranks),
            map: keeps.then(|| Map::new(span / unit)),
            align,
            least,
            began: [None; 3],
            ended: [place.first; 3],
            zone: place.first,
            zone_bytes: 0,
            follow: 1,
            way: READ,
            turn: 0,
            wrapped: false,
            job: job.clone(),
        }
    }

    /// Whether each block is touched once a pass.
    pub fn has_map(&self) -> bool {
        self.map.is_some()
    }

    /// Begins a pass.
    pub fn begin(&mut self) {
        (self.zone, self.zone_bytes, self.turn) = (self.first, 0, 0);
        if self.job.repeat {
            self.draws = self.fresh.clone();
        }
        self.reset();
    }

    /// Forgets positions, and what has been touched.
    fn reset(&mut self) {
        (self.began, self.ended) = ([None; 3], [self.zone; 3]);
        if let Some(map) = &mut self.map {
            map.clear();
        }
    }

    /// Draws the direction of the next request of a job that has issued this many in each.
    pub fn direction(&mut self, issued: &[u64; 3]) -> usize {
        self.way = match self.job.mix {
            Mix::Reads => READ,
            Mix::Writes => WRITE,
            Mix::Trims => TRIM,
            Mix::TrimWrites if self.began[WRITE] == self.began[TRIM] => TRIM,
            Mix::TrimWrites => WRITE,
            Mix::Mixed(_) if issued[self.way] < self.turn => self.way,
            Mix::Mixed(reads) => {
                let drawn = usize::from(below(self.draws.mix.next_u64(), 100) >= reads);
                if drawn != self.way {
                    // A direction that is far behind its share keeps its turn.
                    self.turn = issued[self.way] * [reads, 100 - reads][drawn] / 100;
                }
                drawn
            }
        };
        self.way
    }

    /// Takes the other direction, because the rate limits hold this one back.
    pub fn switch_to(&mut self, way: usize) {
        self.way = way;
    }

    /// Draws the time between two requests of a Poisson process, in units of its mean.
    pub fn interval(&mut self) -> f64 {
        -libm::log(((self.draws.other.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64)
    }

    /// Returns offset and size of the next request of this direction; `None` if the pass is over.
    pub fn next(&mut self, way: usize) -> Option<(u64, u64)> {
        self.enter_zone(way);
        let (at, marks) = self.place(way)?;
        // A request begins within the part, wherever the zone is.
        let offset = self.zone.checked_add(at).filter(|_| at < self.bytes)?;
        let mut size = self.size(way, offset)?;
        if offset.checked_add(size)? > self.end() {
            return None;
        }
        if let (Some(map), true) = (&mut self.map, marks) {
            let least = self.least[way];
            size = size.min(map.touch(at / least, size.div_ceil(least)) * least);
        }
        if self.job.mix == Mix::TrimWrites && way == TRIM && self.began[TRIM] == Some(offset) {
            // The trim has come to where the last one was; a write follows it nevertheless.
            self.began[WRITE] = None;
        }
        self.zone_bytes += size;
        (self.began[way], self.ended[way]) = (Some(offset), offset + size);
        Some((offset, size))
    }

    fn end(&self) -> u64 {
        self.first + self.bytes
    }

    /// Goes to the next zone if enough has been transferred in this one.
    fn enter_zone(&mut self, way: usize) {
        let Some(strides) = self.job.strides else { return };
        if self.zone_bytes >= strides.bytes {
            self.zone_bytes = 0;
            let next = self.zone.saturating_add(strides.range).saturating_add(strides.skip);
            self.zone = if next >= self.end() { self.first } else { next };
            self.ended[way] = self.zone;
        }
        if self.ended[way] >= self.zone + strides.range {
            self.ended[way] = self.zone;
        }
        // Positions and map hold for as long as the zone is not through.
        if self.zone_bytes.is_multiple_of(strides.range) {
            self.reset();
        }
    }

    /// Returns where in the zone the next request begins, and whether it is to be marked in the map.
    fn place(&mut self, way: usize) -> Option<(u64, bool)> {
        let random = self.job.pattern == Pattern::Random;
        if self.job.mix == Mix::TrimWrites && random && way == WRITE {
            return Some((self.began[TRIM]? - self.zone, false));
        }
        self.follow -= 1;
        if self.follow > 0 {
            if let Group::Repeats(_) = self.job.group {
                return Some((self.began[way].map_or(0, |began| began - self.zone), false));
            }
            return self.follows(way).or_else(|| self.draw(way)).map(|at| (at, false));
        }
        self.follow = self.job.group.count();
        match self.job.random_percent[way] {
            _ if !random => self.follows(way).map(|at| (at, false)),
            share if share < 100 && below(self.draws.other.next_u64(), 100) >= share => {
                self.follows(way).or_else(|| self.draw(way)).map(|at| (at, false))
            }
            _ => self.draw(way).map(|at| (at, true)),
        }
    }

    /// Returns where the direction's next sequential request begins.
    fn follows(&mut self, way: usize) -> Option<u64> {
        let job = &self.job;
        let again = job.time_based
            || matches!(job.mix, Mix::Mixed(_)) && job.io_size.is_some_and(|io_size| io_size > self.bytes);
        if again && self.ended[way] >= self.end() {
            self.ended[way] = self.zone;
            self.wrapped = true;
        }
        if self.ended[way] >= self.end() {
            return None;
        }
        let stride = self.job.stride;
        if stride < 0 && self.ended[way] == self.zone && self.zone > 0 {
            // As fio does it, which takes the size for an address: with an offset, such a job stays where it is.
            self.ended[way] = self.bytes;
        }
        let at = self.ended[way].wrapping_sub(self.zone);
        if at == 0 || stride == 0 {
            return Some(at);
        }
        // Beyond the end it begins again at the other one.
        let next = at.wrapping_add_signed(stride);
        Some(match next < self.end() {
            true => next,
            false if stride > 0 => self.zone,
            false => self.bytes.wrapping_add_signed(stride),
        })
    }

    /// Draws where the direction's next random request begins.
    fn draw(&mut self, way: usize) -> Option<u64> {
        let align = self.align[way];
        let span = self.job.strides.map_or(self.bytes, |strides| strides.range);
        let blocks = span.checked_sub(self.least[way].saturating_sub(align))? / align;
        if blocks == 0 {
            return None;
        }
        let mut block = self.addresses.draw(way, blocks, align, &mut self.draws.place);
        if let Some(map) = &self.map {
            block = match map.next_free(block) {
                Some(free) => free,
                None if self.job.time_based => {
                    self.reset();
                    self.wrapped = true;
                    self.addresses.draw(way, blocks, align, &mut self.draws.place)
                }
                None => return None,
            };
        }
        block.checked_mul(align)
    }

    /// Draws the size of the direction's next request, which must fit behind its offset.
    fn size(&mut self, way: usize, offset: u64) -> Option<u64> {
        let random = self.job.pattern == Pattern::Random;
        if self.job.mix == Mix::TrimWrites && random && way == WRITE {
            return Some(self.ended[TRIM] - self.began[TRIM]?);
        }
        // Without zones, the room ends with the part.
        let room = self.end().saturating_sub(offset);
        let draw = |draws: &mut Draws, most: u64| below(draws.size.next_u64(), most);
        match &self.job.block[way] {
            Sizes::One(size) => Some(*size),
            sizes if sizes.least() > room => None,
            Sizes::Range(least, most) => loop {
                let size = (*least + draw(&mut self.draws, *most)) / least * least;
                let size = size.min(*most);
                if size <= room {
                    return Some(size);
                }
            },
            Sizes::Split(sizes) => {
                // A size whose share is nothing is never drawn, and what does not fit makes way for those after it.
                let drawn =
                    |index: usize| sizes[index].1 > index.checked_sub(1).map_or(0, |before| sizes[before].1);
                if !(0..sizes.len()).any(|index| drawn(index) && sizes[index].0 <= room) {
                    return None;
                }
                loop {
                    let number = draw(&mut self.draws, 100);
                    let fits =
                        |&index: &usize| drawn(index) && number < sizes[index].1 && sizes[index].0 <= room;
                    if let Some(index) = (0..sizes.len()).find(fits) {
                        return Some(sizes[index].0);
                    }
                }
            }
        }
    }
}
