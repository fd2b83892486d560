//! Stage 1: where in its queue a new step waits.
//!
//! A tenant's intensity, of reads and of writes, is low at a die if fewer bytes than a threshold were asked of the die
//! in the last epoch. Steps of low intensity wait in front of all others. Among those of its own intensity, a step goes
//! as far ahead as makes the ratio of the least to the greatest slowdown greatest, but never past one of its own
//! tenant. A slowdown is the time from arrival to completion, as estimated from the steps that now wait, by the time
//! that it would be if the tenant were alone.
//!
//! A tenant of high intensity that has been slowed down most at this die, while the average slowdowns of tenants differ
//! by more than a threshold, goes in front of all others of high intensity, up to the last step that has done the same.
//! Where a class has a single tenant, steps wait in the order of their arrival.
//!
//! An insertion looks at every step that waits in the queue.

use super::places::{Place, Range};
use super::{Activity, Flin, QUEUES, Ticket};
use crate::util::NONE;

impl Flin {
    /// Inserts a step into its queue.
    pub(super) fn insert(&mut self, slot: u32, now_ns: u64) {
        let Ticket { queue, arrival, .. } = self.tickets[slot as usize];
        let single = self.of_class[queue % QUEUES / 2] == 1;
        let low = self.classify(slot, now_ns) && !single;
        let alone_ns = self.alone_ns(slot, now_ns);
        let ticket = &mut self.tickets[slot as usize];
        (ticket.low, ticket.alone_ns) = (low, alone_ns);
        let behind = if single {
            NONE
        } else if !low && self.is_slowed_most(slot) {
            self.tickets[slot as usize].barrier = true;
            self.foremost(slot)
        } else {
            self.fairest(slot, now_ns)
        };
        self.activity(slot).last = (slot, arrival.number + 1);
        self.queues[queue].insert(slot, behind, &mut self.tickets);
        if !self.tickets[slot as usize].low && self.high[queue] == behind {
            self.high[queue] = slot;
        }
    }

    /// Counts a step that comes; returns whether its tenant's intensity was low in the last epoch.
    fn classify(&mut self, slot: u32, now_ns: u64) -> bool {
        let kind = self.tickets[slot as usize].queue % QUEUES % 2;
        let (epoch, dies, page_bytes) =
            (now_ns / self.keys.epoch_ns.max(1), self.dies as u64, self.page_bytes);
        let threshold = [self.keys.read_bytes, self.keys.write_bytes][kind];
        let activity = self.activity(slot);
        if epoch > activity.epoch {
            let recent = if epoch == activity.epoch + 1 { activity.recent } else { 0 };
            activity.low = recent * dies * page_bytes < threshold;
            (activity.epoch, activity.recent) = (epoch, 0);
        }
        activity.recent += 1;
        activity.low
    }

    /// Estimates how long a step would wait if its tenant were alone: until its last step would have ended.
    fn alone_ns(&mut self, slot: u32, now_ns: u64) -> u64 {
        let Ticket { tenant, arrival, .. } = self.tickets[slot as usize];
        let (last, number) = self.activity(slot).last;
        let until_ns = match self.tickets.get(last as usize) {
            Some(ticket) if ticket.waits && number == ticket.arrival.number + 1 => {
                ticket.since_ns + ticket.alone_ns + ticket.arrival.service_ns
            }
            _ => match self.working[arrival.die as usize] {
                working if working.tenant == tenant => working.alone_until_ns,
                _ => 0,
            },
        };
        until_ns.saturating_sub(now_ns)
    }

    /// Whether the average slowdowns of the tenants of a step's class and kind at its die differ too much, and that of
    /// its own tenant is the greatest.
    fn is_slowed_most(&mut self, slot: u32) -> bool {
        let Ticket { tenant, arrival, queue, .. } = self.tickets[slot as usize];
        let average = |activity: &Activity| activity.slowdowns / activity.taken as f64;
        let (kind, class) = (queue % QUEUES % 2, queue % QUEUES / 2);
        let mut all = Range::EMPTY;
        for other in (0..self.tenants).filter(|&other| self.class_of_tenant[other] as usize == class) {
            let activity = &self.activity[other * self.dies + arrival.die as usize][kind];
            if activity.taken > 0 {
                all = all.with(average(activity));
            }
        }
        let own = &self.activity[tenant * self.dies + arrival.die as usize][kind];
        own.taken > 0 && average(own) == all.greatest && all.fairness() < self.keys.least_ppm as f64 / 1e6
    }

    /// Whether a new step may not go in front of one that waits.
    fn stops(&self, slot: u32, other: u32) -> bool {
        let (new, other) = (&self.tickets[slot as usize], &self.tickets[other as usize]);
        let same_block = new.arrival.block != NONE && new.arrival.block == other.arrival.block;
        new.tenant == other.tenant || same_block || (!new.low && other.barrier)
    }

    /// Returns the step in front of which one goes that is moved forward as far as it may, or [`NONE`].
    fn foremost(&self, slot: u32) -> u32 {
        let queue = self.tickets[slot as usize].queue;
        let (mut behind, mut at) = (NONE, self.queues[queue].tail);
        while at != NONE && !self.tickets[at as usize].low && !self.stops(slot, at) {
            (behind, at) = (at, self.tickets[at as usize].links.before);
        }
        behind
    }

    /// Returns the step in front of which a new one makes the queue fairest, or [`NONE`] if that is at the tail.
    fn fairest(&mut self, slot: u32, now_ns: u64) -> u32 {
        let Ticket { queue, low, arrival, .. } = self.tickets[slot as usize];
        let mut places = std::mem::take(&mut self.places);
        let (mut left_ns, mut all) = self.survey(slot, now_ns, &mut places);
        let end = if low { self.high[queue] } else { NONE };
        left_ns += arrival.service_ns;
        let mut best = (end, all.with(self.slowdown(slot, left_ns, now_ns)).fairness());
        all = Range::EMPTY;
        for &Place { slot: other, left_ns, before } in places.iter().rev() {
            if self.stops(slot, other) {
                break;
            }
            let service_ns = self.tickets[other as usize].arrival.service_ns;
            all = all.with(self.slowdown(other, left_ns + arrival.service_ns, now_ns));
            let own = self.slowdown(slot, left_ns - service_ns + arrival.service_ns, now_ns);
            let fairness = all.and(before).with(own).fairness();
            if fairness > best.1 {
                best = (other, fairness);
            }
        }
        places.clear();
        self.places = places;
        best.0
    }

    /// Stores the steps of a new step's intensity in `places`; returns when the last of them would be finished, from
    /// now, and the range of all their slowdowns.
    fn survey(&self, slot: u32, now_ns: u64, places: &mut Vec<Place>) -> (u64, Range) {
        let Ticket { queue, low, arrival, .. } = self.tickets[slot as usize];
        let mut left_ns = self.working[arrival.die as usize].until_ns.saturating_sub(now_ns);
        let mut before = Range::EMPTY;
        let mut at = self.queues[queue].head;
        while at != NONE && !(low && at == self.high[queue]) {
            let ticket = &self.tickets[at as usize];
            left_ns += ticket.arrival.service_ns;
            if ticket.low == low {
                places.push(Place { slot: at, left_ns, before });
                before = before.with(self.slowdown(at, left_ns, now_ns));
            }
            at = ticket.links.behind;
        }
        (left_ns, before)
    }

    /// Returns the slowdown of a step that would be finished after this time.
    fn slowdown(&self, slot: u32, left_ns: u64, now_ns: u64) -> f64 {
        let Ticket { since_ns, alone_ns, arrival, .. } = &self.tickets[slot as usize];
        (now_ns - since_ns + left_ns) as f64 / (alone_ns + arrival.service_ns).max(1) as f64
    }
}
