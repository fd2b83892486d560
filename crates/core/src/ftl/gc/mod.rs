//! Victim selection of garbage collection: which closed block of a chip is collected next.
//!
//! A [`crate::ftl::log::Log`] tells its policy of every block that closes, loses a valid
//! slot or leaves, and asks it for a victim. To add a policy: a file here with `NAME`, `DOC`,
//! `Keys` and a type that implements [`Victims`], and one line in the registry below. A saved device state
//! holds the closed blocks in the order of [`Victims::each`], and closes them in that order when it is loaded.
//!
//! **No policy deadlocks.** A victim whose valid slots fill as many pages as it has gains
//! nothing when it is collected; call any other *gainful*. When a chip is collected, at least
//! one of its `C` closed blocks is gainful (see [`crate::ftl::log`]), and collecting one block
//! changes no other closed block, so a gainful block stays gainful until it is the victim.
//! Every policy takes one within `C + 1` collections, or as many as the log has blocks:
//!
//! - `greedy` takes a block with the fewest valid slots, which is gainful if any is;
//!   `cost-benefit` looks at gainful blocks alone.
//! - `fifo` takes the oldest block, gainful or not: that is the policy the closed form of FIFO
//!   cleaning describes. A gainless victim's data goes into the youngest block, so each
//!   collection brings the first gainful block one place nearer to the head.
//! - `cyclic` goes round the blocks by number. A round passes at most the closed blocks and those that
//!   were open or erased when it began, and meets the first gainful one.
//! - `windowed-greedy` takes the fewest valid slots among the `W` oldest. While none of them is
//!   gainful, each collection removes one of them and the next oldest block enters, so a
//!   gainful block enters within `C - W` collections and is taken at once.
//! - `random` and `d-choices` collect what they draw, gainful or not, again as their closed
//!   forms say (with 64 pages per block and 7 % of spare space, 18 % of the blocks a random
//!   draw meets are full). A draw may miss for ever, so after `C` gainless collections in
//!   succession the victim is the block with the fewest valid slots.
//!
//! The log counts gainless collections and stops the run if they exceed the blocks it has.

mod closed;
mod lists;

use std::fmt::Debug;

use crate::config::{Ignored, outside};
use crate::ftl::settings::Settings;
use crate::util::stream;

pub use rand_xoshiro::Xoshiro256PlusPlus;

/// The blocks a policy chooses from.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Chips; victims are chosen on one chip.
    pub chips: u32,
    /// Blocks of each chip; blocks are numbered chip by chip.
    pub blocks_per_chip: u32,
    /// Slots of a block.
    pub slots_per_block: u32,
    /// Slots of a NAND page.
    pub slots_per_page: u32,
}

impl Space {
    /// Blocks in all.
    fn blocks(&self) -> u32 {
        self.chips * self.blocks_per_chip
    }

    /// Whether collecting a block with so many valid slots gains a page.
    #[inline]
    pub fn gainful(&self, valid: u32) -> bool {
        valid + self.slots_per_page <= self.slots_per_block
    }
}

/// The occasion of a choice.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Chip to collect.
    pub chip: u32,
    /// Writes of the log so far, its copies not counted.
    pub now: u64,
    /// Collections in succession that gained nothing.
    pub gainless: u32,
}

/// A policy. It holds the closed blocks of one log; `valid` gives a block's valid slots.
pub trait Victims: Sized {
    /// The policy of these settings; `rng` is its own stream.
    fn new(keys: &Own, space: Space, rng: Xoshiro256PlusPlus) -> Self;

    /// A block became full at `now`; `valid` of its slots are valid.
    fn close(&mut self, chip: u32, block: u32, valid: u32, now: u64);

    /// A closed block lost a valid slot at `now`; `valid` are left.
    #[inline]
    fn invalidate(&mut self, _chip: u32, _block: u32, _valid: u32, _now: u64) {}

    /// The block to collect, which stays until it is removed. There is a gainful one. `erases` counts a block's.
    fn choose(&mut self, need: Need, valid: impl Fn(u32) -> u32, erases: impl Fn(u32) -> u32) -> u32;

    /// A closed block leaves.
    fn remove(&mut self, chip: u32, block: u32, valid: impl Fn(u32) -> u32);

    /// Visits every block held of a chip, with the number of valid slots it is filed under, if it is.
    /// Closed again in this order, the blocks are chosen in the same order as now.
    fn each(&self, chip: u32, visit: &mut dyn FnMut(u32, Option<u32>));

    /// When a block held was last modified, if that counts.
    fn modified(&self, _block: u32) -> u64 {
        0
    }

    /// The random stream, of a policy that draws.
    fn random(&mut self) -> Option<&mut Xoshiro256PlusPlus> {
        None
    }
}

/// Any policy, by its methods alone: each means what it means in [`Victims`].
#[allow(missing_docs)]
pub trait AnyVictims: Debug + Send + Sync {
    fn close(&mut self, chip: u32, block: u32, valid: u32, now: u64);
    fn invalidate(&mut self, chip: u32, block: u32, valid: u32, now: u64);
    fn choose(&mut self, need: Need, valid: &dyn Fn(u32) -> u32, erases: &dyn Fn(u32) -> u32) -> u32;
    fn remove(&mut self, chip: u32, block: u32, valid: &dyn Fn(u32) -> u32);
    fn each(&self, chip: u32, visit: &mut dyn FnMut(u32, Option<u32>));
    fn modified(&self, block: u32) -> u64;
    fn random(&mut self) -> Option<&mut Xoshiro256PlusPlus> {
        None
    }
    fn copy(&self) -> Box<dyn AnyVictims>;
}

impl<V: Victims + Clone + Debug + Send + Sync + 'static> AnyVictims for V {
    fn close(&mut self, chip: u32, block: u32, valid: u32, now: u64) {
        Victims::close(self, chip, block, valid, now);
    }
    fn invalidate(&mut self, chip: u32, block: u32, valid: u32, now: u64) {
        Victims::invalidate(self, chip, block, valid, now);
    }
    fn choose(&mut self, need: Need, valid: &dyn Fn(u32) -> u32, erases: &dyn Fn(u32) -> u32) -> u32 {
        Victims::choose(self, need, valid, erases)
    }
    fn remove(&mut self, chip: u32, block: u32, valid: &dyn Fn(u32) -> u32) {
        Victims::remove(self, chip, block, valid);
    }
    fn each(&self, chip: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
        Victims::each(self, chip, visit);
    }
    fn modified(&self, block: u32) -> u64 {
        Victims::modified(self, block)
    }
    fn random(&mut self) -> Option<&mut Xoshiro256PlusPlus> {
        Victims::random(self)
    }
    fn copy(&self) -> Box<dyn AnyVictims> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn AnyVictims> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

/// What makes a policy from outside the registry: see [`Victims::new`].
type Outside = Box<dyn Fn(&Own, Space, Xoshiro256PlusPlus) -> Box<dyn AnyVictims> + Send + Sync>;

/// The keys that name a policy.
const KEYS: [&str; 2] = ["ftl.gc", "ftl.translation_gc"];

/// Lets `ftl.gc` and `ftl.translation_gc` name the policy of this type.
pub fn register<V: Victims + Clone + Debug + Send + Sync + 'static>(name: &str) {
    register_made(name, |keys, space, rng| Box::new(V::new(keys, space, rng)));
}

/// Lets `ftl.gc` and `ftl.translation_gc` name what `make` makes, anew for each log.
pub fn register_made(
    name: &str,
    make: impl Fn(&Own, Space, Xoshiro256PlusPlus) -> Box<dyn AnyVictims> + Clone + Send + Sync + 'static,
) {
    for key in KEYS {
        outside::add::<Outside>(key, name, Box::new(make.clone()));
    }
}

/// Makes the enum, its dispatch and its lists from one line per policy: `Variant = module::Type;`.
macro_rules! registry {
    ($($variant:ident = $module:ident :: $type:ident;)*) => {
        $(mod $module;)*

        /// A registered policy.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, private_interfaces)]
        #[repr(u8)] // which one it is stands in a byte of its own, so that asking is cheap
        pub enum Policy { $($variant($module::$type),)* Outside(Box<dyn AnyVictims>) }

        impl Policy {
            /// The policy of this name, with the random stream `log` of the settings' seed.
            ///
            /// # Panics
            /// If the name is not registered.
            pub fn new(name: &str, settings: &Settings, space: Space, log: &str) -> Policy {
                let rng = stream(settings.seed, log);
                match name {
                    $($module::NAME => Policy::$variant(Victims::new(&settings.ftl.victims, space, rng)),)*
                    other => Policy::Outside(outside::maker::<Outside>(KEYS[0], other)(
                        &settings.ftl.victims,
                        space,
                        rng,
                    )),
                }
            }

            /// See [`Victims::close`].
            #[inline]
            pub fn close(&mut self, chip: u32, block: u32, valid: u32, now: u64) {
                match self { $(Policy::$variant(p) => Victims::close(p, chip, block, valid, now),)* Policy::Outside(p) => p.close(chip, block, valid, now) }
            }

            /// See [`Victims::invalidate`].
            #[inline]
            pub fn invalidate(&mut self, chip: u32, block: u32, valid: u32, now: u64) {
                match self { $(Policy::$variant(p) => Victims::invalidate(p, chip, block, valid, now),)* Policy::Outside(p) => p.invalidate(chip, block, valid, now) }
            }

            /// See [`Victims::choose`].
            #[inline]
            pub fn choose(
                &mut self,
                need: Need,
                valid: impl Fn(u32) -> u32,
                erases: impl Fn(u32) -> u32,
            ) -> u32 {
                match self {
                    $(Policy::$variant(p) => Victims::choose(p, need, valid, erases),)*
                    Policy::Outside(p) => p.choose(need, &valid, &erases),
                }
            }

            /// See [`Victims::remove`].
            #[inline]
            pub fn remove(&mut self, chip: u32, block: u32, valid: impl Fn(u32) -> u32) {
                match self {
                    $(Policy::$variant(p) => Victims::remove(p, chip, block, valid),)*
                    Policy::Outside(p) => p.remove(chip, block, &valid),
                }
            }

            /// See [`Victims::each`].
            pub fn each(&self, chip: u32, visit: &mut dyn FnMut(u32, Option<u32>)) {
                match self { $(Policy::$variant(p) => Victims::each(p, chip, visit),)* Policy::Outside(p) => p.each(chip, visit) }
            }

            /// See [`Victims::modified`].
            pub fn modified(&self, block: u32) -> u64 {
                match self { $(Policy::$variant(p) => Victims::modified(p, block),)* Policy::Outside(p) => p.modified(block) }
            }

            /// See [`Victims::random`].
            pub fn random(&mut self) -> Option<&mut Xoshiro256PlusPlus> {
                match self { $(Policy::$variant(p) => Victims::random(p),)* Policy::Outside(p) => p.random() }
            }
        }

        /// The keys of policies that are not among the `chosen`.
        pub(crate) fn own_ignored(chosen: &[&str], found: &mut Ignored) {
            let why = "neither ftl.gc nor ftl.translation_gc is";
            $(found.section::<$module::Keys>(
                chosen.contains(&$module::NAME), &[], &format!("{why} \"{}\"", $module::NAME),
            );)*
        }

        $crate::registered! { "ftl.gc": $($module)* }
    };
}

registry! {
    Greedy = greedy::Greedy;
    CostBenefit = cost_benefit::CostBenefit;
    Cyclic = cyclic::Cyclic;
    DChoices = d_choices::DChoices;
    Fifo = fifo::Fifo;
    Random = random::Random;
    WindowedGreedy = windowed_greedy::WindowedGreedy;
}
