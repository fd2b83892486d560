//! What every victim policy of garbage collection must guarantee.

use std::collections::{BTreeMap, BTreeSet};

use ftlab_core::ftl::gc::{Closed, Need, Policy, Space};
use ftlab_core::settings::Settings;
use ftlab_core::util::stream;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::stack::settings;

/// The blocks of two LUNs, among which [`victims`] lets a policy choose.
pub const SPACE: Space =
    Space { luns: 2, blocks_per_lun: 12, slots_per_block: 8, slots_per_page: 2, fronts: 1 };

/// A closed block, as the model knows it.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Number of valid slots.
    pub valid: u32,
    /// Place of the block in the order of closing.
    pub closed: u64,
    /// Place of the block in the order in which blocks reached their current numbers of valid slots.
    pub came: u64,
    /// When the block was last modified.
    pub modified: u64,
}

/// The closed blocks of both LUNs, in plain lists.
#[derive(Default)]
pub struct Model {
    blocks: BTreeMap<u32, Known>,
    /// Number of times that each block was erased.
    erases: BTreeMap<u32, u32>,
    events: u64,
    /// For each LUN, the block whose turn it is when blocks are taken in the order of their numbers; `None`: none is
    /// closed.
    due: [Option<u32>; 2],
}

impl Model {
    /// Returns the closed blocks of a LUN, in the order of their numbers.
    pub fn of(&self, lun: u32) -> impl Iterator<Item = (u32, Known)> {
        let blocks = lun * SPACE.blocks_per_lun..(lun + 1) * SPACE.blocks_per_lun;
        self.blocks.range(blocks).map(|(&block, &known)| (block, known))
    }

    /// Returns a closed block.
    pub fn known(&self, block: u32) -> Known {
        self.blocks[&block]
    }

    /// Returns the number of times that a block was erased.
    pub fn erases(&self, block: u32) -> u32 {
        self.erases.get(&block).copied().unwrap_or(0)
    }

    /// Returns the block of a LUN whose turn it is, for policies that take blocks in the order of their numbers.
    pub fn due(&self, lun: u32) -> Option<u32> {
        self.due[lun as usize]
    }

    /// Returns the `count` blocks of a LUN that were closed first.
    pub fn oldest(&self, lun: u32, count: usize) -> Vec<(u32, Known)> {
        let mut all: Vec<_> = self.of(lun).collect();
        all.sort_by_key(|(_, known)| known.closed);
        all.truncate(count);
        all
    }

    fn is_collectable(&self, lun: u32) -> bool {
        self.of(lun).any(|(_, known)| SPACE.gainful(known.valid))
    }

    fn close(&mut self, block: u32, known: Known) {
        self.blocks.insert(block, known);
        self.due[(block / SPACE.blocks_per_lun) as usize].get_or_insert(block);
    }

    fn remove(&mut self, block: u32) {
        self.blocks.remove(&block);
        *self.erases.entry(block).or_default() += 1;
        let lun = block / SPACE.blocks_per_lun;
        if self.due[lun as usize] == Some(block) {
            let numbers: Vec<u32> = self.of(lun).map(|(other, _)| other).collect();
            let later = numbers.iter().find(|&&other| other > block);
            self.due[lun as usize] = later.or(numbers.first()).copied();
        }
    }
}

/// Tests a registered policy: a victim is a closed block of its LUN; a block whose collection gains something is
/// taken before long; the policy holds exactly the closed blocks; and a policy loaded from a saved state continues in
/// the same way.
///
/// ```
/// use ftlab_core::ftl::gc::{self, Closed, Need, Own, Space, Victims, Xoshiro256PlusPlus};
///
/// /// The oldest block that gains anything.
/// #[derive(Clone, Debug)]
/// struct Oldest(Vec<Vec<u32>>, Space);
///
/// impl Victims for Oldest {
///     fn new(_keys: &Own, space: Space, _rng: Xoshiro256PlusPlus) -> Oldest {
///         Oldest(vec![Vec::new(); space.luns as usize], space)
///     }
///     fn close(&mut self, closed: Closed) {
///         self.0[closed.lun as usize].push(closed.block);
///     }
///     fn choose(&mut self, need: Need, valid: &dyn Fn(u32) -> u32, _erases: &dyn Fn(u32) -> u32) -> u32 {
///         let mut closed = self.0[need.lun as usize].iter().copied();
///         closed.find(|&block| self.1.gainful(valid(block))).unwrap()
///     }
///     fn remove(&mut self, lun: u32, block: u32, _valid: &dyn Fn(u32) -> u32) {
///         self.0[lun as usize].retain(|&other| other != block);
///     }
///     fn each(&self, lun: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
///         self.0[lun as usize].iter().for_each(|&block| visit(block, None));
///     }
/// }
///
/// gc::register::<Oldest>("oldest");
/// ftlab_conformance::victims("oldest");
/// ```
///
/// # Panics
/// If the policy breaks a promise of [`ftlab_core::ftl::gc::Victims`], or no policy has that name.
pub fn victims(name: &str) {
    victims_judged(name, &settings(), |_, _, _| ());
}

/// Tests a policy as [`victims`] does, with the policies' keys in `settings`; `judge` also sees each victim, with what
/// is known about the blocks.
///
/// # Panics
/// As for [`victims`].
pub fn victims_judged(name: &str, settings: &Settings, mut judge: impl FnMut(&Model, Need, u32)) {
    let stream = || stream(settings.seed, "conformance");
    let make = || Policy::new(name, &settings.ftl.victims, SPACE, stream());
    for seed in 0..200 {
        let mut run = Run {
            policy: make(),
            model: Model::default(),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            now: 0,
            seed,
        };
        for _ in 0..run.random.random_range(1..400) {
            run.step(&mut judge);
        }
        run.holds_what_is_closed();
        run.goes_on_when_loaded(make());
        run.comes_to_a_gainful_block();
    }
}

/// A policy at work, together with the model.
struct Run {
    policy: Policy,
    model: Model,
    random: Xoshiro256PlusPlus,
    now: u64,
    seed: u64,
}

impl Run {
    fn step(&mut self, judge: &mut impl FnMut(&Model, Need, u32)) {
        self.model.events += 1;
        let block = self.random.random_range(0..SPACE.luns * SPACE.blocks_per_lun);
        let lun = block / SPACE.blocks_per_lun;
        match (self.random.random_range(0..8), self.model.blocks.get(&block).copied()) {
            (0..3, None) => {
                let valid = self.random.random_range(0..SPACE.slots_per_block);
                self.close(block, valid);
            }
            (0..5, Some(known)) if known.valid > 0 => {
                let (came, modified) = (self.model.events, self.now);
                self.model.blocks.insert(block, Known { valid: known.valid - 1, came, modified, ..known });
                self.policy.invalidate(Closed { lun, block, valid: known.valid - 1, now: self.now });
            }
            (5, Some(_)) => self.remove(block),
            (6 | 7, _) if self.model.is_collectable(lun) => {
                let need = Need { lun, now: self.now, gainless: self.random.random_range(0..16) };
                let chosen = self.choose(need);
                judge(&self.model, need, chosen);
                self.remove(chosen);
            }
            _ => self.now += self.random.random_range(0..5),
        }
    }

    fn close(&mut self, block: u32, valid: u32) {
        let (closed, now) = (self.model.events, self.now);
        self.model.close(block, Known { valid, closed, came: closed, modified: now });
        self.policy.close(Closed { lun: block / SPACE.blocks_per_lun, block, valid, now });
    }

    fn choose(&mut self, need: Need) -> u32 {
        let Run { policy, model, seed, .. } = self;
        let chosen = policy.choose(need, &|block| model.known(block).valid, &|block| model.erases(block));
        assert!(model.of(need.lun).any(|(block, _)| block == chosen), "seed {seed}: {chosen} is not closed");
        chosen
    }

    fn remove(&mut self, block: u32) {
        let Run { policy, model, .. } = self;
        policy.remove(block / SPACE.blocks_per_lun, block, &|block| model.known(block).valid);
        model.remove(block);
    }

    fn holds_what_is_closed(&self) {
        for lun in 0..SPACE.luns {
            let mut held = BTreeSet::new();
            self.policy.each(lun, &mut |block, filed| {
                assert!(held.insert(block), "seed {}: it holds {block} twice", self.seed);
                let valid = self.model.known(block).valid;
                assert!(filed.is_none_or(|filed| filed == valid), "seed {}: {block} is misfiled", self.seed);
            });
            assert_eq!(held, self.model.of(lun).map(|(block, _)| block).collect(), "seed {}", self.seed);
        }
    }

    /// Continues with a loaded policy: if the blocks are closed again in the order of
    /// [`ftlab_core::ftl::gc::Victims::each`], the policy chooses them in the same order.
    fn goes_on_when_loaded(&mut self, mut loaded: Policy) {
        for lun in 0..SPACE.luns {
            self.policy.each(lun, &mut |block, _| {
                let modified = self.policy.modified(block);
                loaded.close(Closed { lun, block, valid: self.model.known(block).valid, now: modified });
            });
        }
        if let (Some(stream), Some(saved)) = (loaded.random(), self.policy.random()) {
            stream.clone_from(saved);
        }
        for lun in 0..SPACE.luns {
            while self.model.is_collectable(lun) {
                let need = Need { lun, now: self.now, gainless: 0 };
                let chosen = self.choose(need);
                let model = &self.model;
                let again =
                    loaded.choose(need, &|block| model.known(block).valid, &|block| model.erases(block));
                assert_eq!(again, chosen, "seed {}: another victim once it is loaded", self.seed);
                loaded.remove(lun, chosen, &|block| self.model.known(block).valid);
                self.remove(chosen);
            }
        }
    }

    /// Checks that a policy finally chooses the one block whose collection gains something, while each victim whose
    /// collection gains nothing is rewritten completely, into another block.
    fn comes_to_a_gainful_block(&mut self) {
        let blocks: Vec<u32> = self.model.of(0).map(|(block, _)| block).collect();
        blocks.into_iter().for_each(|block| self.remove(block));
        let gainful = self.random.random_range(1..SPACE.blocks_per_lun - 1);
        for block in 1..SPACE.blocks_per_lun {
            self.model.events += 1;
            self.close(block, if block == gainful { 0 } else { SPACE.slots_per_block });
        }
        let mut erased = 0;
        for gainless in 0..=SPACE.blocks_per_lun + 1 {
            self.now += u64::from(SPACE.slots_per_block);
            let chosen = self.choose(Need { lun: 0, now: self.now, gainless });
            if chosen == gainful {
                return;
            }
            self.remove(chosen);
            self.model.events += 1;
            self.close(erased, SPACE.slots_per_block);
            erased = chosen;
        }
        panic!("seed {}: no block that gains something is taken", self.seed);
    }
}
