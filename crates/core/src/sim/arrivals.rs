//! What feeds the host: a source of block requests, or the file host above the block layer.

use super::files::FileHost;
use crate::config::{Replay, Settings};
use crate::ftl;
use crate::request::{Pool, Request};
use crate::util::{NONE, Ring};
use crate::workload::{Op, Record, Source, SourceError, SourceSummary};

/// Latest arrival that is simulated: a century and a half, far from where 64 bits end.
const LATEST_NS: u64 = 1 << 62;

/// Where requests come from. They wait here, in the order of their arrival, until they are admitted.
pub enum Arrivals<'a> {
    /// A trace or a generator: below file system and page cache.
    Replayed(Replayed<'a>),
    /// Clients, their file system and its page cache.
    Files(Box<FileHost>),
}

impl<'a> Arrivals<'a> {
    /// Reads the first record.
    pub fn replay(source: &'a mut dyn Source, settings: &Settings) -> Result<Arrivals<'a>, SourceError> {
        Replayed::new(source, settings).map(Arrivals::Replayed)
    }

    /// When the next request arrives; `None` if none will, or not before a completion or a timer.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        match self {
            Arrivals::Replayed(replayed) => replayed.next_ns(),
            Arrivals::Files(files) => files.next_ns(),
        }
    }

    /// When something happens above the block layer that no completion causes; [`crate::clock::NEVER`] if
    /// nothing will.
    #[inline]
    pub fn timer_ns(&self) -> u64 {
        match self {
            Arrivals::Replayed(_) => crate::clock::NEVER,
            Arrivals::Files(files) => files.timer_ns(),
        }
    }

    /// Lets what is above the block layer do what is due.
    ///
    /// # Errors
    /// The workload's.
    #[inline]
    pub fn tick(&mut self, now_ns: u64) -> Result<(), SourceError> {
        match self {
            Arrivals::Replayed(_) => Ok(()),
            Arrivals::Files(files) => files.tick(now_ns),
        }
    }

    /// Whether all requests have arrived.
    #[inline]
    pub fn ended(&self) -> bool {
        match self {
            Arrivals::Replayed(replayed) => replayed.next.is_none(),
            Arrivals::Files(files) => files.ended(),
        }
    }

    /// What the source read and dropped.
    pub fn summary(&self) -> SourceSummary {
        match self {
            Arrivals::Replayed(replayed) => replayed.source.summary(),
            Arrivals::Files(_) => SourceSummary::default(),
        }
    }

    /// A request completed; in closed replay another one arrives now.
    #[inline]
    pub fn completed(&mut self, now_ns: u64, request: &Request) {
        match self {
            Arrivals::Replayed(replayed) => replayed.completed(now_ns, request),
            Arrivals::Files(files) => files.completed(now_ns, request),
        }
    }

    /// The request that arrives at `now_ns` or before, if any; it is put into the pool.
    #[inline]
    pub fn take(&mut self, now_ns: u64, pool: &mut Pool) -> Result<Option<u32>, SourceError> {
        match self {
            Arrivals::Replayed(replayed) => replayed.take(now_ns, pool),
            Arrivals::Files(files) => Ok(files.take().map(|request| pool.insert(request))),
        }
    }

    /// A request just taken became part of one that is pending: both complete with that.
    pub fn merged(&mut self, pending: &mut Request, taken: &Request) {
        match self {
            Arrivals::Replayed(replayed) => {
                replayed.merged += 1;
                pending.tag += 1;
            }
            Arrivals::Files(files) => files.merged(pending, taken),
        }
    }

    /// The file host, if that is what feeds.
    pub fn files(&mut self) -> Option<&mut FileHost> {
        match self {
            Arrivals::Replayed(_) => None,
            Arrivals::Files(files) => Some(files),
        }
    }
}

/// Which logical pages a range of bytes touches.
#[derive(Clone, Copy, Debug)]
pub struct Paging {
    logical_page: u64,
    /// Its power of two, or [`NONE`]: a division takes longer than the rest of an arrival.
    shift: u32,
}

impl Paging {
    /// Pages of the device of `settings`.
    pub fn new(settings: &Settings) -> Paging {
        Paging::of(u64::from(settings.ftl.logical_page_bytes))
    }

    /// Pages of so many bytes.
    pub fn of(logical_page: u64) -> Paging {
        let shift = if logical_page.is_power_of_two() { logical_page.trailing_zeros() } else { NONE };
        Paging { logical_page, shift }
    }

    /// Logical page of a byte address, and how far into the page it is.
    #[inline]
    fn page_of(self, at: u64) -> (u64, u64) {
        match self.shift {
            NONE => (at / self.logical_page, at % self.logical_page),
            shift => (at >> shift, at & (self.logical_page - 1)),
        }
    }

    /// The pages of a request for the bytes from `offset` to `end`.
    #[inline]
    pub fn pages(self, op: Op, offset: u64, end: u64) -> ftl::Request {
        if op == Op::Flush {
            return ftl::Request { first: 0, pages: 0, head_partial: false, tail_partial: false };
        }
        let [(head, before), (tail, behind)] = [offset, end].map(|at| self.page_of(at));
        let (head_partial, tail_partial) = (before > 0, behind > 0);
        // A trim takes the pages it covers whole, everything else each page it touches.
        let (first, pages_end) = if op == Op::Trim {
            (head + u64::from(head_partial), tail)
        } else {
            (head, tail + u64::from(tail_partial))
        };
        let pages = pages_end.saturating_sub(first) as u32;
        ftl::Request {
            first: if pages > 0 { first as u32 } else { 0 },
            pages,
            head_partial: head_partial || (pages == 1 && tail_partial),
            tail_partial: tail_partial || (pages == 1 && head_partial),
        }
    }
}

/// A source's requests as they arrive, in trace order; the next one waits here until it is admitted.
pub struct Replayed<'a> {
    source: &'a mut dyn Source,
    next: Option<Record>,
    arrived: u64,
    /// Requests that became part of another.
    merged: u64,
    /// Closed replay: requests that may still arrive at time 0, and the completions that each let
    /// another one arrive. `None` in open replay.
    closed: Option<(u32, Ring)>,
    paging: Paging,
    user_bytes: u64,
}

impl<'a> Replayed<'a> {
    /// Reads the first record.
    fn new(source: &'a mut dyn Source, settings: &Settings) -> Result<Replayed<'a>, SourceError> {
        let mut arrivals = Replayed {
            source,
            next: None,
            arrived: 0,
            merged: 0,
            closed: (settings.workload.replay == Replay::Closed).then(|| {
                let depth = settings.host.queue_depth;
                (depth, Ring::new(depth.min(1 << 16) as usize))
            }),
            paging: Paging::new(settings),
            user_bytes: settings.user_bytes(),
        };
        arrivals.fetch()?;
        Ok(arrivals)
    }

    /// Reads the next record.
    #[inline]
    fn fetch(&mut self) -> Result<(), SourceError> {
        self.next = self.source.next()?;
        match &self.next {
            Some(record) if record.time_ns > LATEST_NS && self.closed.is_none() => Err(self.late(record)),
            _ => Ok(()),
        }
    }

    #[cold]
    fn late(&self, record: &Record) -> SourceError {
        SourceError::Input(format!(
            "{}: the arrival at {} ns is more than a century after the start; \
             are the times in another unit, or do they count from another epoch?",
            self.source.locate(record),
            record.time_ns
        ))
    }

    /// When the next request arrives; `None` if none will, or not before a completion.
    #[inline]
    fn next_ns(&self) -> Option<u64> {
        let record = self.next.as_ref()?;
        match &self.closed {
            None => Some(record.time_ns),
            Some((0, completions)) => completions.front(),
            Some(_) => Some(0),
        }
    }

    /// A request completed; in closed replay another one arrives now.
    #[inline]
    fn completed(&mut self, now_ns: u64, request: &Request) {
        if let Some((_, completions)) = &mut self.closed {
            completions.push(now_ns);
            // Those that became part of it.
            for _ in 0..request.tag {
                completions.push(now_ns);
            }
        }
    }

    /// The request that arrives at `now_ns` or before, if any; it is put into the pool.
    #[inline]
    fn take(&mut self, now_ns: u64, pool: &mut Pool) -> Result<Option<u32>, SourceError> {
        let Some(record) = &self.next else { return Ok(None) };
        let Some(arrival_ns) = self.next_ns().filter(|&at| at <= now_ns) else { return Ok(None) };
        let Record { op, offset, size, flags, .. } = *record;
        let pages = self.pages(record)?;
        let number = self.arrived + 1 - self.merged;
        let id = pool.insert(Request::new(number, arrival_ns, op, offset, size, pages));
        if flags & Record::FUA != 0 {
            pool[id].mark.fua = true;
        }
        self.fetch()?;
        match &mut self.closed {
            None => (),
            Some((0, completions)) => completions.pop(),
            Some((at_start, _)) => *at_start -= 1,
        }
        self.arrived += 1;
        Ok(Some(id))
    }

    #[inline]
    fn pages(&self, record: &Record) -> Result<ftl::Request, SourceError> {
        let Record { op, offset, size, .. } = *record;
        let end = offset.checked_add(size).filter(|&end| end <= self.user_bytes && size > 0);
        match end {
            Some(end) => Ok(self.paging.pages(op, offset, end)),
            None if op == Op::Flush => Ok(self.paging.pages(Op::Flush, 0, 0)),
            None => Err(self.beyond(record)),
        }
    }

    #[cold]
    fn beyond(&self, record: &Record) -> SourceError {
        SourceError::Input(format!(
            "{}: {} B at offset {} are beyond the user capacity of {} B; \
             set workload.out_of_range to wrap or compact, or enlarge the flash",
            self.source.locate(record),
            record.size,
            record.offset,
            self.user_bytes
        ))
    }
}
