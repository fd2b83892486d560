//! I/O schedulers of the host: which pending request, or batch, goes next.
//!
//! A scheduler sees requests ([`Pool`]) that the host has admitted and classified;
//! it never sees the device. To add one: a file here with `NAME`, `DOC`, `Keys` and
//! a type that implements [`Scheduler`], and one line in the registry below.

mod batches;
mod bundles;
mod halves;

use std::ops::Range;

use crate::config::{Choice, section};
use crate::request::{Pool, Queue};
use crate::workload::Op;

/// What a scheduler decided.
#[derive(Clone, Copy, Debug)]
pub enum Decision {
    /// Nothing is pending.
    Nothing,
    /// This request goes next.
    One(u32),
    /// These requests go next, in this order, as a batch.
    Batch(Queue),
}

/// What a scheduler by flash blocks may reach while it chooses: the cooperation interface of the device
/// below it (Shim et al., TC 2014, Table 1) and the page cache above.
pub trait Around {
    /// LPNs of a logical block.
    fn pages_of(&self, block: u32) -> Range<u32>;
    /// COOP_Query: the logical blocks that a block issue of so many pages from an LPN on has merged, fully or
    /// partially; `set` holds them afterwards.
    fn query(&self, first: u32, pages: u32, set: &mut Vec<u32>);
    /// Appends writes of the dirty pages that the page cache holds of a logical block; they were pending,
    /// in no scheduler, and are to be issued with this choice.
    fn join(&mut self, block: u32, pool: &mut Pool, found: &mut Vec<u32>);
    /// A request of padding, to be issued with this choice: these LPNs are read, or written back.
    fn pad(&mut self, op: Op, pages: Range<u32>, pool: &mut Pool) -> u32;
}

/// An I/O scheduler. Every request is admitted once and leaves once, by choice or by `remove`.
pub trait Scheduler: Sized {
    /// Whether it orders by `Request::hit`, so that the host must classify.
    const CLASSIFIES: bool = false;
    /// Whether it looks at `Request::translation_page`, so that the host must find it.
    const BY_TRANSLATION_PAGE: bool = true;
    /// Whether waiting requests are dispatched when their deadline has passed.
    const DEADLINE: bool = true;
    /// Whether it works by flash blocks: the host then tells it their size, cuts writes at their ends, and calls
    /// [`Scheduler::choose_around`].
    const BLOCKS: bool = false;
    /// Whether it cooperates with the FTL, and the page cache is to flush by flash blocks.
    const COOPERATES: bool = false;

    /// The scheduler with these keys.
    fn new(keys: &Keys) -> Self;

    /// A request enters the pending queue.
    fn admit(&mut self, id: u32, pool: &mut Pool);

    /// A pending request has merged with one that came later: it had `before` pages, fewer than now. It
    /// keeps its place and its class, which are those of its admission; whatever counts pages follows.
    fn grown(&mut self, _id: u32, _before: u32, _pool: &mut Pool) {}

    /// Takes out what is to be dispatched next.
    fn choose(&mut self, pool: &mut Pool) -> Decision;

    /// Flash blocks have so many logical pages.
    fn set_block_size(&mut self, _pages: u32) {}

    /// As [`Scheduler::choose`], for a scheduler by flash blocks.
    fn choose_around(&mut self, pool: &mut Pool, _around: &mut dyn Around) -> Decision {
        self.choose(pool)
    }

    /// Takes out a request that is dispatched by deadline. Without deadlines there is none.
    fn remove(&mut self, _id: u32, _pool: &mut Pool) {
        unreachable!("its requests have no deadline")
    }

    /// Batches created so far.
    fn batches(&self) -> u64 {
        0
    }

    /// Checks, for check mode, what it counts and orders against the requests themselves; how many it holds.
    ///
    /// # Errors
    /// What does not hold.
    fn verify(&self, pool: &Pool) -> Result<u32, String>;
}

/// Makes the enum, its dispatch and its lists from one line per scheduler: `Variant = module::Type;`.
macro_rules! registry {
    ($($variant:ident = $module:ident :: $type:ident;)*) => {
        $(mod $module;)*

        /// A registered scheduler.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, private_interfaces)]
        pub enum Sched { $($variant($module::$type)),* }

        impl Sched {
            /// The scheduler of this name.
            ///
            /// # Panics
            /// If the name is not registered.
            pub fn new(name: &str, keys: &Keys) -> Sched {
                match name {
                    $($module::NAME => Sched::$variant(Scheduler::new(keys)),)*
                    other => panic!("unregistered scheduler {other}"),
                }
            }

            /// See [`Scheduler::CLASSIFIES`].
            pub fn classifies(&self) -> bool {
                match self { $(Sched::$variant(_) => <$module::$type as Scheduler>::CLASSIFIES),* }
            }

            /// See [`Scheduler::BY_TRANSLATION_PAGE`].
            pub fn by_translation_page(&self) -> bool {
                match self { $(Sched::$variant(_) => <$module::$type as Scheduler>::BY_TRANSLATION_PAGE),* }
            }

            /// See [`Scheduler::DEADLINE`].
            pub fn has_deadline(&self) -> bool {
                match self { $(Sched::$variant(_) => <$module::$type as Scheduler>::DEADLINE),* }
            }

            /// See [`Scheduler::BLOCKS`].
            pub fn by_blocks(&self) -> bool {
                match self { $(Sched::$variant(_) => <$module::$type as Scheduler>::BLOCKS),* }
            }

            /// See [`Scheduler::set_block_size`].
            pub fn set_block_size(&mut self, pages: u32) {
                match self { $(Sched::$variant(s) => s.set_block_size(pages)),* }
            }

            /// See [`Scheduler::admit`].
            #[inline]
            pub fn admit(&mut self, id: u32, pool: &mut Pool) {
                match self { $(Sched::$variant(s) => s.admit(id, pool)),* }
            }

            /// See [`Scheduler::grown`].
            pub fn grown(&mut self, id: u32, before: u32, pool: &mut Pool) {
                match self { $(Sched::$variant(s) => s.grown(id, before, pool)),* }
            }

            /// See [`Scheduler::choose`].
            #[inline]
            pub fn choose(&mut self, pool: &mut Pool) -> Decision {
                match self { $(Sched::$variant(s) => s.choose(pool)),* }
            }

            /// See [`Scheduler::choose_around`].
            pub fn choose_around(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision {
                match self { $(Sched::$variant(s) => s.choose_around(pool, around)),* }
            }

            /// See [`Scheduler::remove`].
            pub fn remove(&mut self, id: u32, pool: &mut Pool) {
                match self { $(Sched::$variant(s) => s.remove(id, pool)),* }
            }

            /// See [`Scheduler::batches`].
            pub fn batches(&self) -> u64 {
                match self { $(Sched::$variant(s) => s.batches()),* }
            }

            /// See [`Scheduler::verify`].
            pub(crate) fn verify(&self, pool: &Pool) -> Result<u32, String> {
                match self { $(Sched::$variant(s) => s.verify(pool)),* }
            }
        }

        /// Names for `host.scheduler`.
        pub fn choices() -> Vec<Choice> {
            vec![$(Choice { name: $module::NAME, doc: $module::DOC }),*]
        }

        /// Whether the scheduler of this name cooperates: see [`Scheduler::COOPERATES`].
        pub fn cooperates(name: &str) -> bool {
            match name {
                $($module::NAME => <$module::$type as Scheduler>::COOPERATES,)*
                _ => false,
            }
        }

        section! {
            /// The schedulers' own keys.
            #[derive(Clone, Debug, PartialEq)]
            pub struct Own {
                $(
                    /// Of the scheduler of this name.
                    $module: $module::Keys;
                )*
            }
        }
    };
}

registry! {
    Noop = noop::Noop;
    Row = row::Row;
    Amphibian = amphibian::Amphibian;
    Hp = hp::Hp;
    Rb = rb::Rb;
    Map = map::Map;
    MapPlus = map_plus::MapPlus;
    Irbw = irbw::Irbw;
    Padding = padding::Padding;
    Coop = coop::Coop;
}

section! {
    /// What the schedulers read.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keys {
        /// hp, rb, map, map+: alternate reads and writes as row does.
        alternate: bool = "host.alternate", "false";
        /// Each scheduler's own.
        own: Own;
    }
}
