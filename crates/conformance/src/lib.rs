//! What every part must guarantee, as suites of tests: one line tests a part.
//!
//! | part | suite |
//! |---|---|
//! | I/O scheduler of the host | [`host_scheduler()`] |
//! | arbiter of tenants | [`arbiter()`] |
//! | scheduler of the device | [`device_scheduler()`] |
//! | mapping cache | [`ftl()`]; [`mapping_cache_of`] for one that has no line in the registry |
//! | replacement in a mapping cache | [`replacement_of`] |
//! | log blocks of a hybrid FTL | [`ftl()`]; [`log_blocks_of`] for those that have no line |
//! | victims of garbage collection | [`victims()`] |
//! | placement of pages | [`placement()`] |
//!
//! Each suite is a plain function that panics with the seed of whatever does not hold. `tests/registered.rs` calls
//! them for everything that the registries list, so a part added there is tested without another line. Another crate
//! registers its part under a name (with the `register` of its registry) and tests it by that name. A part declares
//! what it is and what it is excused from: `Needs`, and the constants of its trait.
//!
//! The rest of the crate is what tests of the stack share: the names of registered parts ([`all_ftls`] and
//! others), small devices and loads.

mod arbiter;
mod device_scheduler;
mod driver;
mod ftl;
mod host_scheduler;
mod placement;
mod registered;
mod replacement;
mod side_by_side;
mod stack;
mod tenants;
mod victims;

pub use arbiter::arbiter;
pub use device_scheduler::device_scheduler;
pub use driver::{Driver, whole};
pub use ftl::{ftl, log_blocks_of, mapping_cache_of};
pub use host_scheduler::host_scheduler;
pub use placement::placement;
pub use registered::*;
pub use replacement::replacement_of;
pub use side_by_side::side_by_side;
pub use stack::{
    AGEING, Log, buffered, bursts, checked, cuts, every_request_completes_once, hybrid_device, pages,
    programming, settings, slc_caches, small, superblocks, tiny, word_lines,
};
pub use tenants::{shared, with_tenants};
pub use victims::{Known, Model, SPACE, victims, victims_judged};
