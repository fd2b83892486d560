//! Runs every suite on every registered part.

use ftlab_conformance as conformance;

/// The part whose suite runs; says so if that fails, as others run at the same time.
struct Running<'a>(&'a str);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{} failed", self.0);
        }
    }
}

fn each(names: Vec<&str>, suite: fn(&str)) {
    conformance::side_by_side(&names, |name| {
        let _running = Running(name);
        suite(name);
    });
}

#[test]
fn schedulers_of_the_host() {
    each(conformance::schedulers(false), conformance::host_scheduler);
    each(conformance::schedulers(true), conformance::host_scheduler);
}

#[test]
fn arbiters() {
    each(conformance::arbiters(), conformance::arbiter);
}

#[test]
fn schedulers_of_the_device() {
    each(conformance::device_schedulers(), conformance::device_scheduler);
}

#[test]
fn mapping_caches() {
    each(conformance::page_mapped(), conformance::ftl);
}

#[test]
fn block_mapped_ftls() {
    each(conformance::block_mapped(), conformance::ftl);
}

#[test]
fn victim_policies() {
    each(conformance::victim_policies(), conformance::victims);
}

#[test]
fn placements() {
    each(conformance::placements(), conformance::placement);
}
