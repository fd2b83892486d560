//! Power cuts, damaged and worn flash, and saved states.

use ftlab_conformance as common;

#[path = "common/devices.rs"]
mod devices;
#[path = "common/driven.rs"]
mod driven;

mod durable_trims;
mod errors;
mod parts_crash;
mod saved_state;
mod superblock_crash;
mod tenants_crash;
mod wear_out;
