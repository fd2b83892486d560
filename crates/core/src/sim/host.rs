//! The host: arrivals, the pending queue with admission and deadline, the scheduler.

use std::collections::VecDeque;

use crate::config::{Replay, Settings};
use crate::coop::{Awareness, DeviceView};
use crate::ftl;
use crate::request::{Ages, Pool, Queue, Request};
use crate::sched::{Decision, Sched};
use crate::util::NONE;
use crate::workload::{Op, Record, Source, SourceError};

/// Latest arrival that is simulated: a century and a half, far from where 64 bits end.
const LATEST_NS: u64 = 1 << 62;

/// Requests as they arrive, in trace order; the next one waits here until it is admitted.
pub struct Arrivals<'a> {
    source: &'a mut dyn Source,
    next: Option<Record>,
    arrived: u64,
    /// Closed replay: requests that may still arrive at time 0, and the completions that each let
    /// another one arrive. `None` in open replay.
    closed: Option<(u32, VecDeque<u64>)>,
    logical_page: u64,
    user_bytes: u64,
}

impl<'a> Arrivals<'a> {
    /// Reads the first record.
    pub fn new(source: &'a mut dyn Source, settings: &Settings) -> Result<Arrivals<'a>, SourceError> {
        let mut arrivals = Arrivals {
            source,
            next: None,
            arrived: 0,
            closed: (settings.workload.replay == Replay::Closed).then(|| {
                let depth = settings.host.queue_depth;
                (depth, VecDeque::with_capacity(depth.min(1 << 16) as usize))
            }),
            logical_page: u64::from(settings.ftl.logical_page_bytes),
            user_bytes: settings.user_bytes(),
        };
        arrivals.fetch()?;
        Ok(arrivals)
    }

    /// Reads the next record.
    #[inline]
    fn fetch(&mut self) -> Result<(), SourceError> {
        match self.source.next() {
            Ok(Some(record)) if record.time_ns > LATEST_NS && self.closed.is_none() => {
                Err(self.late(&record))
            }
            Ok(record) => {
                self.next = record;
                Ok(())
            }
            Err(error) => Err(error),
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
    pub fn next_ns(&self) -> Option<u64> {
        let record = self.next.as_ref()?;
        match &self.closed {
            None => Some(record.time_ns),
            Some((0, completions)) => completions.front().copied(),
            Some(_) => Some(0),
        }
    }

    /// Whether all requests have arrived.
    pub fn ended(&self) -> bool {
        self.next.is_none()
    }

    /// What the source read and dropped.
    pub fn summary(&self) -> crate::workload::SourceSummary {
        self.source.summary()
    }

    /// A request completed; in closed replay another one arrives now.
    #[inline]
    pub fn completed(&mut self, now_ns: u64) {
        if let Some((_, completions)) = &mut self.closed {
            completions.push_back(now_ns);
        }
    }

    /// The request that arrives at `now_ns` or before, if any.
    #[inline]
    pub fn take(&mut self, now_ns: u64) -> Result<Option<Request>, SourceError> {
        let Some(arrival_ns) = self.next_ns().filter(|&at| at <= now_ns) else { return Ok(None) };
        let record = self.next.take().expect("one is due");
        let request = self.request(&record, arrival_ns)?;
        self.fetch()?;
        match &mut self.closed {
            None => (),
            Some((0, completions)) => drop(completions.pop_front()),
            Some((at_start, _)) => *at_start -= 1,
        }
        self.arrived += 1;
        Ok(Some(request))
    }

    /// Logical page of a byte address, and how far into the page it is.
    #[inline]
    fn page_of(&self, at: u64) -> (u64, u64) {
        let page = self.logical_page;
        // Most pages are powers of two, and a division takes longer than the rest of an arrival.
        if page.is_power_of_two() {
            (at >> page.trailing_zeros(), at & (page - 1))
        } else {
            (at / page, at % page)
        }
    }

    fn request(&self, record: &Record, arrival_ns: u64) -> Result<Request, SourceError> {
        let id = self.arrived + 1;
        if record.op == Op::Flush {
            let none = ftl::Request { first: 0, pages: 0, head_partial: false, tail_partial: false };
            return Ok(Request::new(id, arrival_ns, record.op, record.offset, record.size, none));
        }
        let Record { op, offset, size, .. } = *record;
        let end = offset.checked_add(size).filter(|&end| end <= self.user_bytes && size > 0);
        let Some(end) = end else {
            return Err(SourceError::Input(format!(
                "{}: {size} B at offset {offset} are beyond the user capacity of {} B; \
                 set workload.out_of_range to wrap or compact, or enlarge the flash",
                self.source.locate(record),
                self.user_bytes
            )));
        };
        let [(head, before), (tail, behind)] = [offset, end].map(|at| self.page_of(at));
        let (head_partial, tail_partial) = (before > 0, behind > 0);
        // A trim takes the pages it covers whole, everything else each page it touches.
        let (first, pages_end) = if op == Op::Trim {
            (head + u64::from(head_partial), tail)
        } else {
            (head, tail + u64::from(tail_partial))
        };
        let pages = pages_end.saturating_sub(first) as u32;
        let pages = ftl::Request {
            first: if pages > 0 { first as u32 } else { 0 },
            pages,
            head_partial: head_partial || (pages == 1 && tail_partial),
            tail_partial: tail_partial || (pages == 1 && head_partial),
        };
        Ok(Request::new(id, arrival_ns, op, offset, size, pages))
    }
}

/// What the host is handing over.
#[derive(Clone, Copy, Debug, Default)]
enum Feed {
    /// Nothing: the next hand-over is a decision.
    #[default]
    Nothing,
    /// The rest of a chosen batch.
    Batch(Queue),
    /// The rest of the requests whose deadline had passed.
    Expired(Queue),
}

/// The scheduler and its pending queue.
pub struct Host {
    /// Requests in flight.
    pub pool: Pool,
    sched: Sched,
    awareness: Awareness,
    classifies: bool,
    depth: u32,
    deadline_ns: Option<u64>,
    pending: u32,
    ages: Ages,
    feed: Feed,
    /// A regular dispatch has been made since the deadlines were looked at.
    deadlines_due: bool,
}

impl Host {
    /// An empty host.
    pub fn new(settings: &Settings, device: DeviceView) -> Host {
        let sched = Sched::new(&settings.host);
        Host {
            pool: Pool::default(),
            awareness: Awareness::new(&settings.host.awareness, device),
            classifies: sched.classifies(),
            depth: settings.host.queue_depth,
            deadline_ns: settings.host.deadline_ns.filter(|_| sched.has_deadline()),
            sched,
            pending: 0,
            ages: Ages::default(),
            feed: Feed::Nothing,
            deadlines_due: false,
        }
    }

    /// Batches the scheduler created.
    pub fn batches(&self) -> u64 {
        self.sched.batches()
    }

    /// Requests in the pending queue, and those chosen but not handed over.
    pub fn waiting(&self) -> u32 {
        let chosen = match &self.feed {
            Feed::Nothing => 0,
            Feed::Batch(queue) | Feed::Expired(queue) => queue.len(),
        };
        self.pending + chosen
    }

    /// The next request for the device at a moment when it has room.
    ///
    /// The order of the paper (Ji et al., TCAD 2018, section V-D.4): after each dispatched request or
    /// batch those that meet their deadline are collected and dispatched, then the next choice is made.
    pub fn next(
        &mut self,
        now_ns: u64,
        arrivals: &mut Arrivals,
        device: DeviceView,
    ) -> Result<Option<u32>, SourceError> {
        let id = match self.feed() {
            Some(id) => id,
            None => {
                self.admit(now_ns, arrivals, device)?;
                if std::mem::take(&mut self.deadlines_due) {
                    self.collect_expired(now_ns);
                }
                let Some(id) = self.feed().or_else(|| self.choose()) else { return Ok(None) };
                id
            }
        };
        let request = &mut self.pool[id];
        request.dispatch_ns = now_ns;
        self.awareness.dispatched(request.pages);
        Ok(Some(id))
    }

    /// The next request of what was chosen before.
    #[inline]
    fn feed(&mut self) -> Option<u32> {
        let queue = match &mut self.feed {
            Feed::Nothing => return None,
            Feed::Batch(queue) | Feed::Expired(queue) => queue,
        };
        let id = queue.pop(&mut self.pool);
        if queue.is_empty() {
            self.feed = Feed::Nothing;
        }
        id
    }

    /// Takes in every request that has arrived, in order, while the pending queue has room.
    #[inline]
    fn admit(&mut self, now_ns: u64, arrivals: &mut Arrivals, device: DeviceView) -> Result<(), SourceError> {
        while self.pending < self.depth {
            let Some(mut request) = arrivals.take(now_ns)? else { return Ok(()) };
            if request.pages.pages > 0 {
                request.translation_page = device.translation_page(request.pages.first);
            }
            // A request without pages has no mapping to hit.
            let updates = request.op != Op::Read;
            let cached = self.classifies && self.awareness.classify(request.pages, updates, device);
            request.hit = cached && request.pages.pages > 0;
            let id = self.pool.insert(request);
            self.pending += 1;
            self.ages.push(id, &mut self.pool);
            self.sched.admit(id, &mut self.pool);
        }
        Ok(())
    }

    /// Takes every pending request that has waited for the deadline or longer, oldest first.
    fn collect_expired(&mut self, now_ns: u64) {
        let Some(deadline_ns) = self.deadline_ns else { return };
        let mut expired = Queue::default();
        while self.ages.head() != NONE {
            let id = self.ages.head();
            if now_ns - self.pool[id].arrival_ns < deadline_ns {
                break;
            }
            self.ages.pop(&mut self.pool);
            self.sched.remove(id, &mut self.pool);
            self.pool[id].expired = true;
            self.pending -= 1;
            expired.push(id, &mut self.pool);
        }
        if !expired.is_empty() {
            self.feed = Feed::Expired(expired);
        }
    }

    /// A regular decision.
    #[inline]
    fn choose(&mut self) -> Option<u32> {
        let id = match self.sched.choose(&mut self.pool) {
            Decision::Nothing => return None,
            Decision::One(id) => {
                self.leave(id);
                id
            }
            Decision::Batch(queue) => {
                let mut id = queue.head();
                while id != NONE {
                    self.leave(id);
                    id = self.pool.behind(id);
                }
                self.feed = Feed::Batch(queue);
                self.feed()?
            }
        };
        self.deadlines_due = true;
        Some(id)
    }

    #[inline]
    fn leave(&mut self, id: u32) {
        self.ages.unlink(id, &mut self.pool);
        self.pending -= 1;
    }
}
