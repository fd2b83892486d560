//! I/O schedulers of the host: which pending request, or batch, goes next.
//!
//! A scheduler sees requests ([`Pool`]) that the host has admitted and classified;
//! it never sees the device. To add one: a file here with `NAME`, `DOC`, `KEYS` and
//! a type that implements [`Scheduler`], and one line in the registry below.

mod batches;
mod halves;

use crate::config::{Choice, Host, Key};
use crate::request::{Pool, Queue};
use crate::util::NONE;

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

/// An I/O scheduler. Every request is admitted once and leaves once, by choice or by `remove`.
pub trait Scheduler: Sized {
    /// Whether it orders by `Request::hit`, so that the host must classify.
    const CLASSIFIES: bool = false;
    /// Whether waiting requests are dispatched when their deadline has passed.
    const DEADLINE: bool = true;

    /// The scheduler of these settings.
    fn new(host: &Host) -> Self;

    /// A request enters the pending queue.
    fn admit(&mut self, id: u32, pool: &mut Pool);

    /// Takes out what is to be dispatched next.
    fn choose(&mut self, pool: &mut Pool) -> Decision;

    /// Takes out a request that is dispatched by deadline.
    fn remove(&mut self, id: u32, pool: &mut Pool);

    /// Batches created so far.
    fn batches(&self) -> u64 {
        0
    }
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
            /// The scheduler that the settings name.
            ///
            /// # Panics
            /// If the name is not registered.
            pub fn new(host: &Host) -> Sched {
                match host.scheduler.as_str() {
                    $($module::NAME => Sched::$variant(Scheduler::new(host)),)*
                    other => panic!("unregistered scheduler {other}"),
                }
            }

            /// See [`Scheduler::CLASSIFIES`].
            pub fn classifies(&self) -> bool {
                match self { $(Sched::$variant(_) => <$module::$type as Scheduler>::CLASSIFIES),* }
            }

            /// See [`Scheduler::DEADLINE`].
            pub fn has_deadline(&self) -> bool {
                match self { $(Sched::$variant(_) => <$module::$type as Scheduler>::DEADLINE),* }
            }

            /// See [`Scheduler::admit`].
            #[inline]
            pub fn admit(&mut self, id: u32, pool: &mut Pool) {
                pool[id].queued = true;
                match self { $(Sched::$variant(s) => s.admit(id, pool)),* }
            }

            /// See [`Scheduler::choose`].
            #[inline]
            pub fn choose(&mut self, pool: &mut Pool) -> Decision {
                let decision = match self { $(Sched::$variant(s) => s.choose(pool)),* };
                match decision {
                    Decision::Nothing => (),
                    Decision::One(id) => pool[id].queued = false,
                    Decision::Batch(queue) => {
                        let mut id = queue.head();
                        while id != NONE {
                            pool[id].queued = false;
                            id = pool.behind(id);
                        }
                    }
                }
                decision
            }

            /// See [`Scheduler::remove`].
            pub fn remove(&mut self, id: u32, pool: &mut Pool) {
                pool[id].queued = false;
                match self { $(Sched::$variant(s) => s.remove(id, pool)),* }
            }

            /// See [`Scheduler::batches`].
            pub fn batches(&self) -> u64 {
                match self { $(Sched::$variant(s) => s.batches()),* }
            }
        }

        /// Names for `host.scheduler`.
        pub fn choices() -> Vec<Choice> {
            vec![$(Choice { name: $module::NAME, doc: $module::DOC }),*]
        }

        fn own_keys() -> Vec<Key> {
            [$($module::KEYS),*].concat()
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
}

/// Keys of the registered schedulers.
pub fn keys() -> Vec<Key> {
    own_keys()
}
