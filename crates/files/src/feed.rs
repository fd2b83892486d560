//! The file host as a source of requests: its timers, its outbox and what it does when requests complete.

use super::FileHost;
use crate::cache::PAGE;
use ftlab_core::clock::NEVER;
use ftlab_core::host::{Above, Account, Arrivals, VersionOf};
use ftlab_core::metrics::{Done, Report};
use ftlab_core::request::{Pool, Request};
use ftlab_core::workload::{Op, SourceError};

/// Upper bound on the number of steps at one instant; beyond it, time would apparently never advance.
const MOST_STEPS: u64 = 20_000_000;

impl Arrivals for FileHost {
    fn next_ns(&self) -> u64 {
        self.outbox.front().map_or(NEVER, |&(bio, _)| self.bios[bio].submitted_ns.max(self.moved_ns))
    }

    fn holds(&self, now_ns: u64) -> bool {
        now_ns < self.moved_ns
    }

    fn ended(&self) -> bool {
        self.live == 0 && self.in_flight == 0 && self.outbox.is_empty()
    }

    fn take(&mut self, _arrival_ns: u64, pool: &mut Pool) -> Result<u32, SourceError> {
        let (id, _) = self.outbox.pop_front().expect("one arrives");
        self.taken = true;
        Ok(pool.insert(self.hand_over(id)))
    }

    /// Writes, in order, all dirty pages, of whatever file, that lie between two byte addresses of the device,
    /// including pages that have been submitted but not handed over: the issue range extension (Shim et al., TC 2014,
    /// section 5.3.2).
    fn join(&mut self, from: u64, to: u64, joined: &mut Vec<Request>) {
        if self.live == 0 {
            return;
        }
        let (first, end) = (from.div_ceil(PAGE) as u32, to.div_ceil(PAGE) as u32);
        self.flush_blocks(first, end);
        for block in first..end {
            let Some(&id) = self.waiting.as_ref().and_then(|waiting| waiting.get(&block)) else { continue };
            self.taken = true;
            let request = self.hand_over(id);
            match joined.last_mut().filter(|last| last.offset + last.size == request.offset) {
                None => joined.push(request),
                Some(last) => {
                    last.size += request.size;
                    last.pages = self.paging.pages(Op::Write, last.offset, last.offset + last.size);
                    self.merged(last, &request);
                }
            }
        }
    }

    fn merged(&mut self, pending: &mut Request, taken: &Request) {
        self.arrived -= 1;
        self.bios[taken.tag].next = pending.tag;
        pending.tag = taken.tag;
    }

    fn completed(&mut self, now_ns: u64, request: &Request) {
        self.now_ns = now_ns;
        // A read that fails for its errors is over; the device serves on.
        if request.failed && request.op != Op::Read && self.live > 0 {
            self.fail();
        }
        let pages = if matches!(request.op, Op::Read | Op::Write) { request.size.div_ceil(PAGE) } else { 0 };
        let done_ns = now_ns.max(self.moved_ns) + pages * self.config.flash_cpu_ns;
        self.stats.request(done_ns, request);
        if done_ns == now_ns {
            return self.land_all(request.tag);
        }
        self.moved_ns = done_ns;
        self.moving.push_back((done_ns, request.tag));
    }
}

impl Above for FileHost {
    fn timer_ns(&self) -> u64 {
        let moved_ns = self.moving.front().map_or(NEVER, |&(due_ns, _)| due_ns);
        if self.live == 0 { moved_ns } else { moved_ns.min(self.clock.next_ns()) }
    }

    fn goes_on(&self) -> bool {
        self.taken && self.live > 0 && self.outbox.is_empty()
    }

    fn stop(&mut self, now_ns: u64) {
        if self.live > 0 {
            self.now_ns = now_ns;
            self.end_clients();
            self.stats.stop(now_ns);
        }
    }

    /// # Errors
    /// [`SourceError::Input`] if the workload cannot go on: there is no room, or no time passes.
    fn tick(&mut self, now_ns: u64) -> Result<(), SourceError> {
        if now_ns > self.now_ns {
            self.stats.sample(now_ns, &self.cache);
            self.steps = 0;
        }
        self.now_ns = now_ns;
        self.taken = false;
        while let Some(&(_, first)) = self.moving.front().filter(|&&(due_ns, _)| due_ns <= now_ns) {
            self.moving.pop_front();
            self.land_all(first);
        }
        while self.live > 0
            && let Some(slot) = self.clock.take(now_ns)
        {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err(SourceError::Input(
                    "the workload's operations take no time, so that it never ends; \
                     set host.operation_time to more than 0ns"
                        .into(),
                ));
            }
            if slot < self.flusher_slot() {
                self.run_client(slot)?;
            } else if slot == self.flusher_slot() {
                self.wake_flusher();
            } else if slot == self.commit_slot() {
                self.request_commit(self.fs.journal.running.tid);
            } else {
                self.window();
            }
        }
        if self.live > 0 {
            self.write_back();
        }
        Ok(())
    }
}

impl Account for FileHost {
    fn wants_measure(&self) -> bool {
        self.stats.wants_measure()
    }

    fn measure(&mut self, done: Done) {
        self.stats.measure(done);
    }

    fn add_to(&self, report: &mut Report, done: &Done, merged: u64) {
        self.report(report, done, merged);
    }

    fn landed(&mut self, request: &Request, version: VersionOf) {
        self.follow(request, version);
    }

    /// Checks what fsyncs promised and what reads delivered.
    fn verify(&mut self, version: VersionOf) -> Result<(), String> {
        match &mut self.check {
            Some(check) => check.verify(&self.fs, version),
            None => Ok(()),
        }
    }
}
