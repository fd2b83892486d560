//! Turns of processes, as bfq gives them: budgets, when a turn ends, and when the device rests instead.
//!
//! Source and interpretation: [`super::bfq`]. A request counts as inserted when it arrives, even if the host admits it
//! later because the device is full: what happened in the meantime is handled in order of time ([`Turns::run_to`]).

use std::collections::VecDeque;

use super::budgets::{Budgets, Ended};
use super::peak_rate::AT_ONCE_NS;
use super::process::{Classes, Depth, Places, Process, SECTOR, sectors};
use super::weights::Streams;
use super::wf2q::Shares;
use crate::clock::NEVER;
use crate::config::section;
use crate::config::section::{ANY_TIME, bytes, count};
use crate::request::Pool;
use crate::util::NONE;

section! {
    /// The keys of bfq.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// bfq: how long the device rests for a stream that is about to go on.
        slice_idle_ns: u64 = "host.slice_idle", ANY_TIME, "8ms";
        /// bfq: one request at a time, and the device always rests for the stream whose turn it is, 8ms or longer.
        strict: bool = "host.strict_guarantees", "false";
        /// bfq: how long a turn lasts at most.
        timeout_ns: u64 = "host.timeout_sync", ANY_TIME, "125ms";
        /// bfq: a request that has waited this long goes next once in each turn of its stream.
        fifo_expire_ns: u64 = "host.fifo_expire_sync", ANY_TIME, "125ms";
        /// bfq: how far behind the last request the next one may be.
        back_bytes: u64 = "host.back_seek_max", bytes(0, 1 << 40), "16MiB";
        /// bfq: how many times farther a request is if it is behind the last one.
        back_penalty: u32 = "host.back_seek_penalty", count(1, 1 << 30), "2";
        /// bfq: the largest budget of a turn; auto: what the device transfers in host.timeout_sync, as estimated.
        max_budget: Option<u64> = "host.max_budget", bytes(512, 1 << 40) or "auto", "auto";
    }
}

/// With `strict_guarantees` the device rests for this time at least, ns.
const STRICT_IDLE_NS: u64 = 8_000_000;
/// The processes and whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    keys: Keys,
    streams: Streams,
    processes: Vec<Process>,
    classes: Classes,
    shares: Shares,
    places: Places,
    pub budgets: Budgets,
    /// The process whose turn it is; whether the device rests for it, and until when, ns.
    turn: Option<u32>,
    rests: bool,
    timer_ns: u64,
    rest_began_ns: u64,
    turn_began_ns: u64,
    /// Number of processes that have or await their turn, of requests that wait, and of those in the device.
    busy: u32,
    waiting: u32,
    out: u32,
    depth: Depth,
    /// Completions that are not handled yet, in order of time.
    ended: VecDeque<(u32, u64)>,
    now_ns: u64,
}

impl Turns {
    /// Makes turns without processes; the weights are those of the first streams.
    pub fn new(keys: &Keys, weights: Vec<u32>) -> Turns {
        let mut own = keys.clone();
        if own.strict {
            own.slice_idle_ns = own.slice_idle_ns.max(STRICT_IDLE_NS);
        }
        Turns {
            places: Places::new(own.back_bytes / SECTOR, own.back_penalty.into()),
            classes: Classes::new(&weights),
            budgets: Budgets::new(own.max_budget.map(|budget| budget / SECTOR), own.timeout_ns),
            keys: own,
            streams: Streams::new(weights),
            processes: Vec::new(),
            shares: Shares::default(),
            turn: None,
            rests: false,
            timer_ns: NEVER,
            rest_began_ns: 0,
            turn_began_ns: 0,
            busy: 0,
            waiting: 0,
            out: 0,
            depth: Depth::default(),
            ended: VecDeque::with_capacity(64),
            now_ns: 0,
        }
    }

    /// Returns the process of a stream, which is added if it is new.
    fn process_of(&mut self, stream: u16) -> u32 {
        let (number, weight) = self.streams.number(stream);
        if number as usize == self.processes.len() {
            let class = self.classes.of(weight);
            self.processes.push(Process::new(class, self.budgets.first(), self.now_ns));
            self.shares.add(weight.into());
        }
        number
    }

    fn of(&mut self, process: u32) -> &mut Process {
        &mut self.processes[process as usize]
    }

    /// Takes the request that goes next now, if one may go.
    pub fn choose(&mut self, pool: &mut Pool) -> Option<u32> {
        if self.waiting == 0 || self.keys.strict && self.out > 0 {
            return None;
        }
        let process = self.select(pool)?;
        Some(self.take(process, pool))
    }

    /// Notes a completion, which is handled in its turn.
    pub fn note_completion(&mut self, stream: u16, now_ns: u64) {
        let process = self.process_of(stream);
        self.ended.push_back((process, now_ns));
    }

    /// Returns when a rest ends for which requests wait, ns.
    pub fn due_ns(&self) -> u64 {
        if self.waiting > 0 { self.timer_ns } else { NEVER }
    }

    /// Handles completions and the end of a rest up to a time, in order.
    pub fn run_to(&mut self, at_ns: u64, pool: &Pool) {
        loop {
            let ended_ns = self.ended.front().map_or(NEVER, |&(_, ended_ns)| ended_ns);
            if ended_ns.min(self.timer_ns) > at_ns {
                break;
            }
            if ended_ns <= self.timer_ns {
                let (process, _) = self.ended.pop_front().expect("one is there");
                self.now_ns = self.now_ns.max(ended_ns);
                self.completed(process, pool);
            } else {
                self.now_ns = self.now_ns.max(self.timer_ns);
                self.rested(pool);
            }
        }
        self.now_ns = self.now_ns.max(at_ns);
    }

    /// Ends a rest.
    fn rested(&mut self, pool: &Pool) {
        (self.timer_ns, self.rests) = (NEVER, false);
        let Some(process) = self.turn else { return };
        if self.is_out_of_time(process) {
            self.end_turn(true, Ended::TimedOut, pool);
        } else if self.of(process).fifo.is_empty() {
            self.end_turn(true, Ended::TooIdle, pool);
        }
    }

    fn completed(&mut self, process: u32, pool: &Pool) {
        let of_turn = self.turn.map(|process| &self.processes[process as usize]);
        self.depth.sample(self.out, self.waiting, of_turn);
        self.out -= 1;
        let now_ns = self.now_ns;
        let own = self.of(process);
        own.out -= 1;
        own.last_end_ns = now_ns;
        let (class, is_busy, is_empty, none_out) =
            (own.class, own.is_busy, own.fifo.is_empty(), own.out == 0);
        if none_out && !is_busy {
            self.classes.leave(class);
        }
        self.budgets.rate.completed(now_ns);
        if self.turn != Some(process) {
            return;
        }
        if is_empty && self.is_worth_a_rest(process) {
            if none_out {
                self.rest(process);
            }
        } else if self.may_time_out(process) {
            self.end_turn(false, Ended::TimedOut, pool);
        } else if is_empty {
            self.end_turn(false, Ended::Empty, pool);
        }
    }

    /// Begins to rest for a process.
    fn rest(&mut self, process: u32) {
        let own = &self.processes[process as usize];
        let short = own.seeks() && !self.classes.is_uneven_for(own.class);
        let rest_ns = self.keys.slice_idle_ns.min(if short { AT_ONCE_NS } else { NEVER });
        (self.rests, self.rest_began_ns, self.timer_ns) = (true, self.now_ns, self.now_ns + rest_ns);
    }

    fn end_rest(&mut self) {
        (self.timer_ns, self.rests) = (NEVER, false);
    }

    fn is_out_of_time(&self, process: u32) -> bool {
        self.now_ns >= self.processes[process as usize].timeout_ns
    }

    /// Whether a turn may end because its time is over: not while the device rests and most of the budget is used.
    fn may_time_out(&mut self, process: u32) -> bool {
        (!self.rests || self.shares.of(process).has_much_left()) && self.is_out_of_time(process)
    }

    /// Whether it is better to rest than to serve another process if this one has no request.
    fn is_worth_a_rest(&self, process: u32) -> bool {
        let own = &self.processes[process as usize];
        if self.keys.strict {
            return true;
        }
        let gains = self.depth.takes_one() && own.streams();
        self.keys.slice_idle_ns > 0 && (gains || self.classes.is_uneven_for(own.class) || self.busy == 1)
    }

    /// Ends the turn; `rested`: the time since the device began to rest does not count.
    fn end_turn(&mut self, rested: bool, why: Ended, pool: &Pool) {
        let Some(process) = self.turn else { return };
        let until_ns = if rested { self.rest_began_ns } else { self.now_ns };
        let us = until_ns.saturating_sub(self.turn_began_ns) / 1000;
        let (own, share) = (&mut self.processes[process as usize], self.shares.of(process));
        if let Some(service) = self.budgets.charge_time(own, share, us, why) {
            self.shares.serve(process, service);
        }
        self.budgets.adapt(own, self.shares.of(process), why, pool);
        let own = &self.processes[process as usize];
        let stays = why == Ended::Preempted && (self.classes.is_uneven_for(own.class) || self.busy == 1);
        if own.fifo.is_empty() && !stays {
            self.busy -= 1;
            if own.out == 0 {
                self.classes.leave(own.class);
            }
            self.of(process).is_busy = false;
            self.shares.deactivate(process);
            self.of(process).resumes = !matches!(why, Ended::TimedOut | Ended::Exhausted);
        } else {
            self.shares.requeue(process, true);
        }
        if self.of(process).is_busy || !self.of(process).resumes {
            self.shares.of(process).service = 0;
        }
        self.shares.end_turn();
        self.turn = None;
        self.end_rest();
    }

    /// Adds a request to its process's queue.
    pub fn insert(&mut self, id: u32, pool: &mut Pool) {
        self.run_to(pool[id].arrival_ns, pool);
        let process = self.process_of(pool[id].pages.stream);
        let (now_ns, slice_idle_ns) = (self.now_ns, self.keys.slice_idle_ns);
        self.of(process).arrives(sectors(&pool[id]), now_ns, slice_idle_ns);
        self.places.insert(process, id, pool);
        let changes = self.set_next(process, id, pool);
        self.waiting += 1;
        self.of(process).fifo.push(id, pool);
        if !self.of(process).is_busy {
            self.begin_to_wait(process, pool);
        } else if changes {
            self.change_next(process, pool);
        }
        if self.turn == Some(process) && self.rests {
            let over = self.is_out_of_time(process);
            if self.depth.takes_one() && self.of(process).has_just_a_small(id, pool) && !over {
                return;
            }
            self.end_rest();
            if over {
                self.end_turn(false, Ended::TimedOut, pool);
            }
        }
    }

    /// Notes that a waiting request has grown, perhaps to the front.
    pub fn grown(&mut self, id: u32, pool: &mut Pool) {
        let process = self.process_of(pool[id].pages.stream);
        if self.places.moved(process, id, pool) && self.set_next(process, id, pool) {
            self.change_next(process, pool);
        }
    }

    /// Lets a request be next if it is nearer than the one that was; returns whether it is next now.
    fn set_next(&mut self, process: u32, id: u32, pool: &Pool) -> bool {
        let own = &mut self.processes[process as usize];
        let before = own.next;
        own.next = self.places.nearer(before, id, self.budgets.rate.position, pool);
        own.next != before
    }

    /// Gives a process that waits the budget that its new next request needs.
    fn change_next(&mut self, process: u32, pool: &Pool) {
        if self.turn == Some(process) {
            return;
        }
        let needed = self.of(process).max_budget.max(self.of(process).charge(pool));
        let share = self.shares.of(process);
        let budget = needed.max(share.service);
        if share.budget != budget {
            share.budget = budget;
            self.shares.requeue(process, false);
        }
    }

    /// Lets a process that had no request wait for its turn; it may end the turn of another.
    fn begin_to_wait(&mut self, process: u32, pool: &Pool) {
        let in_time = self.now_ns <= self.of(process).last_end_ns + 3 * self.keys.slice_idle_ns;
        let (left, charge) = (self.shares.of(process).left(), self.of(process).charge(pool));
        let own = &mut self.processes[process as usize];
        let resumes = own.resumes && in_time && left > 0;
        (own.resumes, own.is_new, own.is_busy) = (false, false, true);
        let (class, none_out, max_budget) = (own.class, own.out == 0, own.max_budget);
        let share = self.shares.of(process);
        share.service = 0;
        share.budget = if resumes { max_budget.min(left as u64) } else { max_budget.max(charge) };
        self.shares.activate(process, resumes);
        self.busy += 1;
        if none_out {
            self.classes.enter(class);
        }
        let Some(other) = self.turn else { return };
        let heavier = class > self.of(other).class;
        if (resumes || heavier || !self.is_worth_a_rest(other)) && self.shares.may_preempt() {
            self.end_turn(false, Ended::Preempted, pool);
        }
    }

    /// Returns the process that sends a request now, if any.
    fn select(&mut self, pool: &Pool) -> Option<u32> {
        if let Some(process) = self.turn
            && self.may_time_out(process)
            && !(self.of(process).fifo.is_empty() && self.is_worth_a_rest(process))
        {
            self.end_turn(false, Ended::TimedOut, pool);
        }
        loop {
            let Some(process) = self.turn else {
                let process = self.shares.begin_turn()?;
                self.begin_turn(process);
                continue;
            };
            if self.of(process).next != NONE {
                if self.of(process).charge(pool) as i64 <= self.shares.of(process).left() {
                    self.end_rest();
                    return Some(process);
                }
                self.end_turn(false, Ended::Exhausted, pool);
            } else if self.rests || self.of(process).out > 0 && self.is_worth_a_rest(process) {
                return None;
            } else {
                self.end_turn(false, Ended::Empty, pool);
            }
        }
    }

    fn begin_turn(&mut self, process: u32) {
        let timeout_ns = self.now_ns + self.keys.timeout_ns;
        let own = self.of(process);
        (own.looked, own.timeout_ns) = (false, timeout_ns);
        self.turn = Some(process);
        self.turn_began_ns = self.now_ns;
        self.budgets.count();
    }

    /// Takes the next request of the process whose turn it is.
    fn take(&mut self, process: u32, pool: &mut Pool) -> u32 {
        let id = self.of(process).next;
        let place = sectors(&pool[id]);
        self.shares.serve(process, place.1);
        self.budgets.rate.dispatched(self.now_ns, place, self.out);
        let looks_ns = self.now_ns.checked_sub(self.keys.fifo_expire_ns);
        self.processes[process as usize].sends(id, self.places.after(process, id, pool), looks_ns, pool);
        self.places.remove(id, pool);
        self.out += 1;
        self.waiting -= 1;
        id
    }

    /// Checks the processes; returns the number of requests that wait.
    pub fn verify(&self, pool: &Pool) -> Result<u32, String> {
        let mut waiting = 0;
        for (number, own) in (0..).zip(&self.processes) {
            waiting += own.fifo.verify(pool, |request| self.streams.is(request.pages.stream, number))?;
            if (own.next == NONE) != own.fifo.is_empty() {
                return Err(format!("process {number} has {} requests and none is next", own.fifo.len()));
            }
        }
        self.shares.verify(|number| self.processes[number as usize].is_busy)?;
        self.places.verify(waiting, pool)?;
        if waiting != self.waiting {
            return Err(format!("{waiting} requests wait, counted are {}", self.waiting));
        }
        Ok(waiting)
    }
}
