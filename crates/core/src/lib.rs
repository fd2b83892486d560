//! The simulated stack of ftlab, from a block request down to NAND pages.
//!
//! Data flows one way: [`workload`] -> [`host`] (I/O scheduler) -> [`device`] (queue and array) -> [`ftl`] ->
//! [`flash`]; [`sim`] is the one loop that passes requests on and owns the clock, [`metrics`] collects what
//! it reports. [`config`] is how settings are declared, and [`settings`] collects those of all parts.
//!
//! Units everywhere: time in integer nanoseconds (`_ns`), sizes in bytes
//! (`_bytes`), addresses of the flash translation layer in logical pages (LPN).
pub mod clock;
pub mod config;
pub mod device;
pub mod flash;
pub mod ftl;
pub mod host;
pub mod metrics;
pub mod request;
pub mod settings;
pub mod sim;
pub mod util;
pub mod workload;

pub use sim::Simulation;
