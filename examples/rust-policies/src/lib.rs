//! Two schedulers, a victim policy and a replacement policy for the mapping cache, written outside ftlab.
//!
//! [`register`] makes their names known; from then on configurations can use them, for example
//! `host.scheduler = "shortest"`, like ftlab's own names.

mod clock;
mod oldest;
mod reads_first;
mod shortest;

use ftlab_core::device;
use ftlab_core::ftl::{gc, map::dftl};
use ftlab_core::host::sched;

pub use clock::Clock;
pub use oldest::OldestGainful;
pub use reads_first::ReadsFirst;
pub use shortest::Shortest;

/// Makes the four policies known to every simulation of this process.
pub fn register() {
    sched::register::<Shortest>("shortest");
    device::sched::register::<ReadsFirst>("reads-first");
    gc::register::<OldestGainful>("oldest-gainful");
    dftl::register("clock", |_| Box::new(Clock::default()));
}
