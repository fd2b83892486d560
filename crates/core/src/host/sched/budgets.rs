//! The budgets of bfq: how they follow what processes make of their turns, and what a slow one is charged with.
//!
//! Source: block/bfq-iosched.c of Linux 6.12. A budget grows fourfold if it was used up, and twofold if time was over
//! first or if the process still waits for requests in the device; if it had nothing to send although the device
//! rested, it shrinks; if it had nothing to send, it becomes what it used.

use super::peak_rate::{AT_ONCE_NS, DEFAULT_BUDGET, PeakRate};
use super::process::Process;
use super::wf2q::Share;
use crate::request::Pool;
use crate::util::{NONE, Stat};

/// The longest time that a slow process is charged with, and from when on service says whether it is slow, ms.
const CHARGED_MS: u64 = 125;
const SLOW_MS: u64 = 20;
/// Until this count of budgets the largest budget is the default one. The count approaches 256, an eighth at a time.
const COUNTED: u64 = 194;

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    TooIdle,
    TimedOut,
    Exhausted,
    Empty,
    Preempted,
}

/// The figure for each way to end.
const ENDS: [(&str, &str); 5] = [
    ("idled", "turns of processes that sent nothing while the device rested"),
    ("timed_out", "turns that lasted as long as a turn may"),
    ("exhausted", "turns whose budget the next request exceeded"),
    ("emptied", "turns of processes that had nothing to send"),
    ("preempted", "turns that another process ended"),
];

/// What budgets depend on.
#[derive(Clone, Debug)]
pub(super) struct Budgets {
    pub rate: PeakRate,
    count: u64,
    ends: [u64; 5],
}

impl Budgets {
    /// Begins with the default budget, or with a largest budget that is set, in sectors.
    pub fn new(max_budget: Option<u64>, timeout_ns: u64) -> Budgets {
        Budgets { rate: PeakRate::new(max_budget, timeout_ns), count: 0, ends: [0; 5] }
    }

    /// Counts a turn.
    pub fn count(&mut self) {
        self.count = (7 * self.count + 256) / 8;
    }

    /// Returns the largest budget, sectors, as far as it can be relied on.
    fn largest(&self) -> u64 {
        if self.count < COUNTED { DEFAULT_BUDGET } else { self.rate.max_budget }
    }

    /// Returns the first budget of a process, sectors.
    pub fn first(&self) -> u64 {
        2 * self.largest() / 3
    }

    /// Returns the sectors with which a process is charged for the time of its turn, us, besides its service, if it was
    /// slow, or if it left much of its budget when time was over.
    pub fn charge_time(&mut self, own: &Process, share: &mut Share, us: u64, why: Ended) -> Option<u64> {
        let (mut slow, mut ms) = (own.seeks(), AT_ONCE_NS / 1_000_000);
        if us >= 1000 {
            ms = us / 1000;
            if us > SLOW_MS * 1000 {
                slow = share.service < self.rate.max_budget / 2;
            }
        }
        if !slow && (why != Ended::TimedOut || !share.has_much_left()) {
            return None;
        }
        let charge = (self.rate.max_budget * ms.min(CHARGED_MS) / CHARGED_MS).max(share.service);
        share.budget = share.budget.max(charge);
        Some(charge - share.service)
    }

    /// Sets the budget of a process's next turn, after one has ended.
    pub fn adapt(&mut self, own: &mut Process, share: &mut Share, why: Ended, pool: &Pool) {
        self.ends[why as usize] += 1;
        let (most, least) = (self.rate.max_budget, self.largest() / 32);
        let budget = match why {
            Ended::TooIdle if own.out == 0 && own.max_budget > 5 * least => own.max_budget - 4 * least,
            Ended::TooIdle if own.out == 0 => least,
            Ended::TooIdle | Ended::TimedOut => (2 * own.max_budget).min(most),
            Ended::Exhausted => (4 * own.max_budget).min(most),
            Ended::Empty => share.service.max(least),
            Ended::Preempted => return,
        };
        let known = self.count >= COUNTED && !self.rate.is_set();
        own.max_budget = if known { budget.min(most) } else { budget };
        if own.next != NONE {
            share.budget = own.max_budget.max(own.charge(pool));
        }
    }

    /// Returns the largest budget at the end, and how turns ended.
    pub fn stats(&self) -> Vec<Stat> {
        let budget =
            Stat::new("max_budget", self.rate.max_budget as f64, "sectors", "largest budget at the end");
        let ends = ENDS.into_iter().zip(self.ends);
        let ends = ends.map(|((name, doc), count)| Stat::new(name, count as f64, "turns", doc));
        [budget].into_iter().chain(ends).collect()
    }
}
