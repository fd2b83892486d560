//! I/O schedulers of the host: which pending request, or batch, goes next.
//!
//! A scheduler sees requests ([`Pool`]) that the host has admitted and classified;
//! it never sees the device. To add one: a file here with `NAME`, `DOC`, `Keys` and
//! a type that implements [`Scheduler`], and one line in the registry below.

mod batches;
mod block_issues;
mod bundles;
mod halves;

use std::fmt::Debug;
use std::ops::Range;

use crate::config::{outside, section};
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

/// What a scheduler may reach while it chooses: the cooperation interface of the device below it (Shim et
/// al., TC 2014, Table 1) and the page cache above. All but the time is for schedulers by flash blocks.
pub trait Around {
    /// LPNs of a logical block.
    fn pages_of(&self, block: u32) -> Range<u32>;
    /// COOP_Query: the logical blocks that a block issue of so many pages from an LPN on has merged, fully or
    /// partially; `set` holds them afterwards.
    fn query(&self, first: u32, pages: u32, set: &mut Vec<u32>);
    /// Appends writes of the dirty pages that the page cache holds of a logical block; they were pending,
    /// in no scheduler, and are to be issued with this choice.
    fn join(&mut self, block: u32, pool: &mut Pool, found: &mut Vec<u32>);
    /// Simulated time, ns.
    fn now_ns(&self) -> u64;
    /// A request of padding, to be issued with this choice: these LPNs are read, or written back.
    fn pad(&mut self, op: Op, pages: Range<u32>, pool: &mut Pool) -> u32;
}

/// What a scheduler needs of the host.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// It orders by `Request::hit`: the host classifies requests.
    pub hits: bool,
    /// It looks at `Request::translation_page`: the host finds it.
    pub translation_pages: bool,
    /// Requests that have waited for `host.deadline` are dispatched before any choice.
    pub deadline: bool,
    /// It works by flash blocks: the host cuts writes at their ends.
    pub blocks: bool,
    /// It spares a hybrid FTL's merges their copies, and is of no use above another FTL.
    pub merges: bool,
    /// It cooperates with the FTL: the page cache flushes by flash blocks.
    pub cooperation: bool,
}

impl Needs {
    /// Requests alone, in the order in which they are admitted.
    pub const NOTHING: Needs = Needs {
        hits: false,
        translation_pages: false,
        deadline: false,
        blocks: false,
        merges: false,
        cooperation: false,
    };
}

/// An I/O scheduler. Every request is admitted once and leaves once, by choice or by `remove`.
pub trait Scheduler {
    /// What it needs of the host.
    const NEEDS: Needs;

    /// The scheduler with these keys, for flash blocks of so many logical pages.
    fn new(keys: &Keys, block_pages: u32) -> Self;

    /// A request enters the pending queue.
    fn admit(&mut self, id: u32, pool: &mut Pool);

    /// A pending request has merged with one that came later: it had `before` pages, fewer than now. It
    /// keeps its place and its class, which are those of its admission; whatever counts pages follows.
    fn grown(&mut self, _id: u32, _before: u32, _pool: &mut Pool) {}

    /// Takes out what is to be dispatched next.
    fn choose(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision;

    /// Takes out a request that is dispatched by deadline; only called where [`Needs::deadline`] is set.
    fn remove(&mut self, _id: u32, _pool: &mut Pool) {}

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

/// Any scheduler, by its methods alone: each means what it means in [`Scheduler`].
#[allow(missing_docs)]
pub trait AnyScheduler: Debug + Send {
    fn admit(&mut self, id: u32, pool: &mut Pool);
    fn grown(&mut self, _id: u32, _before: u32, _pool: &mut Pool) {}
    fn choose(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision;
    fn remove(&mut self, id: u32, pool: &mut Pool);
    fn batches(&self) -> u64;
    fn verify(&self, pool: &Pool) -> Result<u32, String>;
}

impl<S: Scheduler + Debug + Send> AnyScheduler for S {
    fn admit(&mut self, id: u32, pool: &mut Pool) {
        Scheduler::admit(self, id, pool);
    }
    fn grown(&mut self, id: u32, before: u32, pool: &mut Pool) {
        Scheduler::grown(self, id, before, pool);
    }
    fn choose(&mut self, pool: &mut Pool, around: &mut dyn Around) -> Decision {
        Scheduler::choose(self, pool, around)
    }
    fn remove(&mut self, id: u32, pool: &mut Pool) {
        Scheduler::remove(self, id, pool);
    }
    fn batches(&self) -> u64 {
        Scheduler::batches(self)
    }
    fn verify(&self, pool: &Pool) -> Result<u32, String> {
        Scheduler::verify(self, pool)
    }
}

const KEY: &str = "host.scheduler";

/// What makes a scheduler: see [`Scheduler::new`].
type Make = dyn Fn(&Keys, u32) -> Box<dyn AnyScheduler> + Send + Sync;

/// A scheduler from outside the registry.
struct Outside {
    needs: Needs,
    make: Box<Make>,
}

/// Lets `host.scheduler` name the scheduler of this type.
pub fn register<S: Scheduler + Debug + Send + 'static>(name: &str) {
    register_made(name, S::NEEDS, |keys, block_pages| Box::new(S::new(keys, block_pages)));
}

/// Lets `host.scheduler` name what `make` makes, anew for each simulation: see [`Scheduler::new`].
pub fn register_made(
    name: &str,
    needs: Needs,
    make: impl Fn(&Keys, u32) -> Box<dyn AnyScheduler> + Send + Sync + 'static,
) {
    outside::add(KEY, name, Outside { needs, make: Box::new(make) });
}

/// Makes the enum, its dispatch and its lists from one line per scheduler: `Variant = module::Type;`.
macro_rules! registry {
    ($($variant:ident = $module:ident :: $type:ident;)*) => {
        $(mod $module;)*

        /// A registered scheduler.
        #[derive(Debug)]
        #[allow(missing_docs, private_interfaces)]
        #[repr(u8)] // which one it is stands in a byte of its own, so that asking is cheap
        pub enum Sched { $($variant($module::$type),)* Outside(Box<dyn AnyScheduler>) }

        impl Sched {
            /// The scheduler of this name: see [`Scheduler::new`].
            ///
            /// # Panics
            /// If the name is not registered.
            pub fn new(name: &str, keys: &Keys, block_pages: u32) -> Sched {
                match name {
                    $($module::NAME => Sched::$variant(Scheduler::new(keys, block_pages)),)*
                    other => {
                        Sched::Outside((outside::maker::<Outside>(KEY, other).make)(keys, block_pages))
                    }
                }
            }

            /// See [`Scheduler::admit`].
            #[inline(always)] // for every request
            pub fn admit(&mut self, id: u32, pool: &mut Pool) {
                match self { $(Sched::$variant(s) => Scheduler::admit(s, id, pool),)* Sched::Outside(s) => s.admit(id, pool) }
            }

            /// See [`Scheduler::grown`].
            pub fn grown(&mut self, id: u32, before: u32, pool: &mut Pool) {
                match self { $(Sched::$variant(s) => Scheduler::grown(s, id, before, pool),)* Sched::Outside(s) => s.grown(id, before, pool) }
            }

            /// See [`Scheduler::choose`]; `around` is made for those who look.
            #[inline(always)] // for every request
            pub fn choose<A: Around>(&mut self, pool: &mut Pool, around: impl FnOnce() -> A) -> Decision {
                match self { $(Sched::$variant(s) => Scheduler::choose(s, pool, &mut around()),)* Sched::Outside(s) => s.choose(pool, &mut around()) }
            }

            /// See [`Scheduler::remove`].
            pub fn remove(&mut self, id: u32, pool: &mut Pool) {
                match self { $(Sched::$variant(s) => Scheduler::remove(s, id, pool),)* Sched::Outside(s) => s.remove(id, pool) }
            }

            /// See [`Scheduler::batches`].
            pub fn batches(&self) -> u64 {
                match self { $(Sched::$variant(s) => Scheduler::batches(s),)* Sched::Outside(s) => s.batches() }
            }

            /// See [`Scheduler::verify`].
            ///
            /// # Errors
            /// What does not hold.
            pub fn verify(&self, pool: &Pool) -> Result<u32, String> {
                match self { $(Sched::$variant(s) => Scheduler::verify(s, pool),)* Sched::Outside(s) => s.verify(pool) }
            }
        }

        /// What the scheduler of this name needs of the host.
        ///
        /// # Panics
        /// If the name is not registered.
        pub fn needs(name: &str) -> Needs {
            match name {
                $($module::NAME => <$module::$type as Scheduler>::NEEDS,)*
                other => outside::maker::<Outside>(KEY, other).needs,
            }
        }

        $crate::registered! { "host.scheduler": $($module)* }
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
