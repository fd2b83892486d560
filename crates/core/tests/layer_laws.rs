//! Laws: what holds for every configuration, over random ones, and for every registered part.

use ftlab_conformance as common;

#[path = "../../../benches/src/closed_forms.rs"]
mod closed_forms;
#[path = "common/devices.rs"]
mod devices;
#[path = "common/driven.rs"]
mod driven;
#[path = "common/hybrid_devices.rs"]
mod hybrid_devices;
#[path = "common/hybrids.rs"]
mod hybrids;
#[path = "common/reference.rs"]
mod reference;

mod background_choice;
mod background_gc;
mod conservation;
mod dependent;
mod die_laws;
mod hybrid_properties;
mod laws;
mod merging;
mod placement_laws;
mod preconditioning;
mod properties;
mod simulation;
mod superblocks;
mod tenants;
mod theory;
mod timeline;
mod victims;
mod wear;
