//! Shows that the suites can fail, with parts that are each wrong in one place.

use ftlab_conformance::{SPACE, host_scheduler, placement, side_by_side, victims};
use ftlab_core::flash::Cause;
use ftlab_core::ftl::gc::{self, Closed, Need, Own, Space, Victims, Xoshiro256PlusPlus};
use ftlab_core::ftl::placement::{self, Page, Placement, Writable};
use ftlab_core::host::sched::{self, Around, Decision, Keys, Needs, Scheduler};
use ftlab_core::request::{Pool, Queue};
use std::sync::atomic::{AtomicU32, Ordering};

/// A scheduler in order of arrival, with a fault.
#[derive(Debug)]
struct Fifo {
    queue: Queue,
    /// Whether a request that leaves because of its deadline stays in the queue.
    keeps: bool,
    /// Whether every other choice is empty although requests wait.
    rests: bool,
    choices: u32,
}

impl Scheduler for Fifo {
    const NEEDS: Needs = Needs { deadline: true, ..Needs::NOTHING };

    fn new(_keys: &Keys, _block_pages: u32) -> Fifo {
        Fifo { queue: Queue::default(), keeps: false, rests: false, choices: 0 }
    }

    fn admit(&mut self, id: u32, pool: &mut Pool) {
        self.queue.push(id, pool);
    }

    fn choose(&mut self, pool: &mut Pool, _around: &mut dyn Around) -> Decision {
        self.choices += 1;
        if self.rests && self.choices.is_multiple_of(2) {
            return Decision::Nothing;
        }
        self.queue.pop(pool).map_or(Decision::Nothing, Decision::One)
    }

    fn remove(&mut self, id: u32, pool: &mut Pool) {
        if !self.keeps {
            self.queue.unlink(id, pool);
        }
    }

    fn verify(&self, _pool: &Pool) -> Result<u32, String> {
        Ok(self.queue.len())
    }
}

/// Registers the scheduler under this name and tests it.
fn fifo(name: &str, keeps: bool, rests: bool) {
    let make = move |keys: &Keys, pages| Fifo { keeps, rests, ..Fifo::new(keys, pages) };
    sched::register_made(name, Fifo::NEEDS, move |keys, pages| Box::new(make(keys, pages)));
    host_scheduler(name);
}

#[test]
fn a_sound_scheduler_passes() {
    fifo("sound", false, false);
}

#[test]
#[should_panic(expected = "left == right")]
fn a_request_that_leaves_twice() {
    fifo("keeps", true, false);
}

#[test]
#[should_panic(expected = "it rests while requests wait")]
fn a_scheduler_that_rests() {
    fifo("rests", false, true);
}

/// A victim policy that chooses the block with the lowest number, of all blocks or of those whose collection gains
/// anything.
#[derive(Clone, Debug)]
struct Lowest {
    closed: Vec<u32>,
    gainful: bool,
    /// Whether the policy keeps blocks that leave.
    keeps: bool,
}

impl Victims for Lowest {
    fn new(_keys: &Own, _space: Space, _rng: Xoshiro256PlusPlus) -> Lowest {
        Lowest { closed: Vec::new(), gainful: true, keeps: false }
    }

    fn close(&mut self, closed: Closed) {
        self.closed.push(closed.block);
        self.closed.sort_unstable();
        self.closed.dedup();
    }

    fn choose(&mut self, need: Need, valid: &dyn Fn(u32) -> u32, _erases: &dyn Fn(u32) -> u32) -> u32 {
        let here = |block: &&u32| *block / SPACE.blocks_per_lun == need.lun;
        let gains = |block: &&u32| !self.gainful || SPACE.gainful(valid(**block));
        *self.closed.iter().filter(here).find(gains).expect("there is one")
    }

    fn remove(&mut self, _lun: u32, block: u32, _valid: &dyn Fn(u32) -> u32) {
        self.closed.retain(|&other| self.keeps || other != block);
    }

    fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        let here = |block: &&u32| *block / SPACE.blocks_per_lun == lun;
        self.closed.iter().filter(here).for_each(|&block| visit(block, None));
    }
}

/// Registers the victim policy under this name and tests it.
fn lowest(name: &str, gainful: bool, keeps: bool) {
    let make = move |_: &Own, _, _| Lowest { closed: Vec::new(), gainful, keeps };
    gc::register_made(name, move |keys, space, rng| Box::new(make(keys, space, rng)));
    victims(name);
}

#[test]
fn a_sound_victim_policy_passes() {
    lowest("sound", true, false);
}

#[test]
#[should_panic(expected = "no block that gains something is taken")]
fn a_policy_that_deadlocks() {
    lowest("gainless", false, false);
}

#[test]
#[should_panic]
fn a_block_that_stays() {
    lowest("keeps", true, true);
}

/// A placement that sends new versions alternately to two fronts, and copies to a third.
#[derive(Clone, Debug)]
struct Turns {
    writes: u64,
    /// Whether copies go to a front that does not exist.
    beyond: bool,
    /// Whether the placement forgets whose turn it is when the device is saved.
    forgets: bool,
    /// Number of fronts that the placement has for a real space in addition to those that it declares without one.
    grows: Option<u32>,
}

impl Placement for Turns {
    fn new(_keys: &placement::Own, space: placement::Space) -> Turns {
        Turns { writes: 0, beyond: false, forgets: false, grows: Some(space.luns) }
    }

    fn fronts(&self) -> u32 {
        3 + self.grows.unwrap_or(0)
    }

    fn front(&mut self, page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
        if page.cause == Cause::Gc {
            return if self.beyond { 7 } else { 2 };
        }
        self.writes += 1;
        (self.writes % 2) as u32
    }

    fn save(&self) -> Vec<u64> {
        if self.forgets { Vec::new() } else { vec![self.writes] }
    }

    fn load(&mut self, saved: &[u64]) -> bool {
        self.writes = saved.first().copied().unwrap_or(0);
        saved.len() == usize::from(!self.forgets)
    }
}

/// Registers the placement under this name and tests it.
fn turns(name: &str, beyond: bool, forgets: bool, grows: bool) {
    placement::register_made(name, Turns::NEEDS, move |keys, space| {
        let turns = Turns::new(keys, space);
        Box::new(Turns { beyond, forgets, grows: turns.grows.filter(|_| grows), ..turns })
    });
    placement(name);
}

#[test]
fn a_sound_placement_passes() {
    turns("sound", false, false, false);
}

#[test]
#[should_panic(expected = "which has no block")]
fn a_front_that_there_is_not() {
    turns("beyond", true, false, false);
}

#[test]
#[should_panic(expected = "another front once it is loaded")]
fn a_placement_that_forgets() {
    turns("forgets", false, true, false);
}

#[test]
#[should_panic(expected = "of any space as many")]
fn a_placement_that_grows() {
    turns("grows", false, false, true);
}

/// A placement that always asks for the fastest speed, whether or not a block has it.
#[derive(Clone, Debug)]
struct Fastest;

impl Placement for Fastest {
    const NEEDS: placement::Needs = placement::Needs { speeds: true, ..placement::Needs::NOTHING };

    fn new(_keys: &placement::Own, _space: placement::Space) -> Fastest {
        Fastest
    }

    fn front(&mut self, _page: Page, _blocks: &(impl Writable + ?Sized)) -> u32 {
        0
    }
}

#[test]
#[should_panic(expected = "which has no block")]
fn a_speed_that_no_block_has() {
    placement::register::<Fastest>("fastest");
    placement("fastest");
}

/// Whichever thread takes it, each case is checked once, and a fault in one of them fails the test.
#[test]
fn a_fault_in_one_of_many_cases() {
    let cases: Vec<usize> = (0..100).collect();
    let checks: Vec<AtomicU32> = cases.iter().map(|_| AtomicU32::new(0)).collect();
    for faulty in [0, 57, 99] {
        let checked = std::panic::catch_unwind(|| {
            side_by_side(&cases, |&case| {
                checks[case].fetch_add(1, Ordering::Relaxed);
                assert_ne!(case, faulty);
            });
        });
        assert!(checked.is_err(), "{faulty}");
    }
    checks.iter().for_each(|seen| seen.store(0, Ordering::Relaxed));
    side_by_side(&cases, |&case| _ = checks[case].fetch_add(1, Ordering::Relaxed));
    assert!(checks.iter().all(|seen| seen.load(Ordering::Relaxed) == 1));
}
