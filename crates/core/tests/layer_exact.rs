//! Exact cases: numbers worked out by hand or printed in a paper, to the nanosecond.

use ftlab_conformance as common;

#[path = "common/devices.rs"]
mod devices;
#[path = "common/hybrids.rs"]
mod hybrids;
#[path = "common/losses.rs"]
#[allow(dead_code)] // these tests have campaigns of their own
mod losses;

mod bfq_cases;
mod cells;
mod controller;
mod coop_device;
mod device_schedulers;
mod device_timing;
mod die_timing;
mod energy;
mod flin;
mod host_map;
mod hybrid_cases;
mod kernel_cases;
mod leaftl_cases;
mod map_plus_cases;
mod map_rate_cases;
mod msftl_cases;
mod placement;
mod recovered;
mod results;
mod slc;
mod streams;
mod tpftl_cases;
mod write_buffer;
