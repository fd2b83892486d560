//! B-WF2Q+: whose turn it is among queues that each get a budget at a time, in the ratio of their weights.
//!
//! Source: block/bfq-wf2q.c of Linux 6.12, after Bennett and Zhang, "Hierarchical packet fair queueing algorithms",
//! IEEE/ACM ToN 5(5), 1997 (WF2Q+). Virtual time advances by the service given, over the sum of weights. A queue that
//! becomes active starts at the present virtual time, or where its last turn finished if that is later, and would
//! finish after its budget over its weight. Of the queues that have started, the one that finishes first has its turn;
//! what it was then served moves its start on. A queue that leaves early keeps its weight in the sum until virtual
//! time has reached its finish.
//!
//! Interpretation: the source's search for the queue that finishes first can miss it and return one that finishes
//! later, depending on the shape of its tree (it gives up below a node that has not started, although a node to the
//! right below it has). Here it is always the first, as the comments of the source and the papers say. There are no
//! groups and one class of priority.

use crate::util::{NONE, Ordered};

/// Shift of virtual time.
const SHIFT: u32 = 22;
/// From here on virtual time is counted from a later moment; the source lets it wrap around instead.
const FAR: u64 = 1 << 60;

/// Where a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In no tree, and its weight is not in the sum.
    Out,
    /// Without requests, but its weight still counts.
    Idle,
    /// It waits for its turn.
    Active,
    /// It has its turn.
    Served,
}

/// A queue's share.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub weight: u64,
    /// What it may be served in its turn, sectors.
    pub budget: u64,
    /// What it was served in its turn, sectors.
    pub service: u64,
    start: u64,
    finish: u64,
    place: Place,
    /// Its slot among the active or the idle queues.
    slot: u32,
}

impl Share {
    /// Returns what is left of the budget, sectors; negative if more was charged.
    pub fn left(&self) -> i64 {
        self.budget as i64 - self.service as i64
    }

    /// Whether a third of the budget or more is left.
    pub fn has_much_left(&self) -> bool {
        self.left() >= (self.budget / 3) as i64
    }
}

/// The shares of all queues.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    shares: Vec<Share>,
    /// Active and idle queues by virtual finish.
    active: Ordered,
    idle: Ordered,
    vtime: u64,
    /// Sum of the weights that count.
    sum: u64,
    /// The queue whose turn is next, and the one whose turn it is, or [`NONE`].
    next: Option<u32>,
    served: Option<u32>,
}

/// Returns the virtual time that a service takes.
fn span(service: u64, weight: u64) -> u64 {
    (service << SHIFT) / weight
}

impl Shares {
    /// Adds a queue; returns its number.
    pub fn add(&mut self, weight: u64) -> u32 {
        let share =
            Share { weight, budget: 0, service: 0, start: 0, finish: 0, place: Place::Out, slot: NONE };
        self.shares.push(share);
        self.shares.len() as u32 - 1
    }

    /// Returns the share of a queue.
    pub fn of(&mut self, queue: u32) -> &mut Share {
        &mut self.shares[queue as usize]
    }

    /// Whether another queue than the one whose turn it is would be next.
    pub fn may_preempt(&self) -> bool {
        self.next != self.served
    }

    /// Lets a queue wait for its turn. One that `resumes` its last turn is not held up by virtual time that has passed
    /// meanwhile.
    pub fn activate(&mut self, queue: u32, resumes: bool) {
        let share = &mut self.shares[queue as usize];
        let back = resumes && self.vtime > share.finish;
        let earliest = if back { share.finish } else { self.vtime };
        if share.place == Place::Idle {
            share.start = earliest.max(share.finish);
            self.idle.remove(share.slot);
        } else {
            share.start = earliest;
            self.sum += share.weight;
        }
        self.enqueue(queue, back);
        self.update_next(Some(queue), false);
    }

    /// Lets a queue wait anew, with another budget or after its turn (`ended`).
    pub fn requeue(&mut self, queue: u32, ended: bool) {
        let share = &mut self.shares[queue as usize];
        if share.place == Place::Served {
            share.start += span(share.service, share.weight);
        } else {
            self.active.remove(share.slot);
        }
        self.enqueue(queue, false);
        self.update_next(Some(queue), ended);
    }

    /// Ends the turn of the queue whose turn it is, as it has no requests.
    pub fn deactivate(&mut self, queue: u32) {
        let share = &mut self.shares[queue as usize];
        share.finish = share.start + span(share.service, share.weight);
        self.served = None;
        if share.finish > self.vtime {
            share.place = Place::Idle;
            share.slot = self.idle.insert(queue, share.finish);
        } else {
            share.place = Place::Out;
            self.sum -= share.weight;
        }
    }

    /// Ends the turn of the queue whose turn it is, after it was requeued.
    pub fn end_turn(&mut self) {
        self.served = None;
    }

    /// Gives the next queue its turn; returns it, or `None` if no queue is active.
    pub fn begin_turn(&mut self) -> Option<u32> {
        let queue = self.next?;
        self.served = Some(queue);
        let share = &mut self.shares[queue as usize];
        self.active.remove(share.slot);
        share.place = Place::Served;
        self.update_next(None, false);
        Some(queue)
    }

    /// Charges a queue with service.
    pub fn serve(&mut self, queue: u32, service: u64) {
        self.shares[queue as usize].service += service;
        self.vtime += span(service, self.sum);
        if self.vtime > FAR {
            self.begin_anew();
        }
        self.forget_idle();
    }

    /// Moves the moment from which virtual time is counted to the earliest that still matters.
    #[cold]
    fn begin_anew(&mut self) {
        let counts = self.shares.iter().filter(|share| share.place != Place::Out);
        let base = counts.map(|share| share.start.min(share.finish)).fold(self.vtime, u64::min);
        for (queue, share) in (0..).zip(&mut self.shares) {
            share.start = share.start.saturating_sub(base);
            share.finish = share.finish.saturating_sub(base);
            match share.place {
                Place::Active => {
                    self.active.remove(share.slot);
                    share.slot = self.active.insert_from(queue, share.finish, share.start);
                }
                Place::Idle => {
                    self.idle.remove(share.slot);
                    share.slot = self.idle.insert(queue, share.finish);
                }
                Place::Out | Place::Served => {}
            }
        }
        self.vtime -= base;
    }

    /// Compares the trees with the shares; `waits` says whether a queue has requests and it is not its turn.
    pub fn verify(&self, waits: impl Fn(u32) -> bool) -> Result<(), String> {
        let place = |queue: u32| self.shares[queue as usize].place;
        let count = |at: Place| self.shares.iter().filter(|share| share.place == at).count() as u32;
        self.active.verify(count(Place::Active), |queue| place(queue) == Place::Active && waits(queue))?;
        self.idle.verify(count(Place::Idle), |queue| place(queue) == Place::Idle && !waits(queue))?;
        let counts = self.shares.iter().filter(|share| share.place != Place::Out);
        let sum: u64 = counts.map(|share| share.weight).sum();
        if sum != self.sum || self.next.is_none() != self.active.is_empty() {
            return Err(format!("the weights are {sum} in all, not {}, or no queue is next", self.sum));
        }
        Ok(())
    }

    /// Puts a queue among the active ones.
    fn enqueue(&mut self, queue: u32, back: bool) {
        let share = &mut self.shares[queue as usize];
        share.finish = share.start + span(share.budget, share.weight);
        if back && self.vtime > share.finish {
            let late = self.vtime - share.finish;
            share.start += late;
            share.finish += late;
        }
        share.place = Place::Active;
        share.slot = self.active.insert_from(queue, share.finish, share.start);
    }

    /// Finds the next queue, after one was put among the active ones (`changed`) or left them.
    fn update_next(&mut self, changed: Option<u32>, ended: bool) {
        let finish = |queue: u32| self.shares[queue as usize].finish;
        let wins = changed.filter(|&queue| {
            self.next.is_none_or(|next| {
                let started = self.shares[queue as usize].start <= self.vtime;
                next != queue && started && finish(next) > finish(queue)
            })
        });
        self.next = wins.or_else(|| self.look_up(self.served.is_some() && !ended));
    }

    /// Returns the queue that finishes first of those that have started. If none has, virtual time jumps to the first
    /// start; during a turn it does not stay there.
    fn look_up(&mut self, in_turn: bool) -> Option<u32> {
        let at = self.active.least_start()?.max(self.vtime);
        if !in_turn && at > self.vtime {
            self.vtime = at;
            self.forget_idle();
        }
        Some(self.active.first_started(at)).filter(|&queue| queue != NONE)
    }

    /// Forgets the idle queue that virtual time reached first. Without active queues, virtual time goes back to the
    /// last finish.
    fn forget_idle(&mut self) {
        let last = self.idle.last_before(u64::MAX);
        if last == NONE {
            return;
        }
        if self.active.is_empty() {
            self.vtime = self.vtime.min(self.shares[last as usize].finish);
        }
        let first = self.idle.first_from(0);
        let share = &mut self.shares[first as usize];
        if share.finish <= self.vtime {
            self.idle.remove(share.slot);
            share.place = Place::Out;
            self.sum -= share.weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Virtual time passes far more than 64 bits hold here.
    #[test]
    fn shares_stay_in_the_ratio_of_weights_for_ever() {
        const BUDGET: u64 = 1 << 31;
        let mut shares = Shares::default();
        let mut served = [0u64; 2];
        for weight in [1, 3] {
            let queue = shares.add(weight);
            shares.of(queue).budget = BUDGET;
            shares.activate(queue, false);
        }
        for _ in 0..20_000 {
            let queue = shares.begin_turn().expect("both have requests");
            shares.serve(queue, BUDGET);
            served[queue as usize] += 1;
            shares.requeue(queue, true);
            shares.end_turn();
            shares.of(queue).service = 0;
        }
        assert_eq!(served, [5000, 15_000]);
    }
}
