//! Each policy passes the suite of its kind, and all four run in check mode.

use ftlab_conformance::{bursts, checked, device_scheduler, host_scheduler, replacement_of, small, victims};
use ftlab_core::ftl::map::dftl::Replacement as _;
use my_policies::{Clock, register};

#[test]
fn the_scheduler_is_one() {
    register();
    host_scheduler("shortest");
}

#[test]
fn the_scheduler_of_the_device_is_one() {
    register();
    device_scheduler("reads-first");
}

#[test]
fn the_victim_policy_is_one() {
    register();
    victims("oldest-gainful");
}

#[test]
fn the_replacement_is_one() {
    replacement_of(|_| Clock::default().copy());
}

#[test]
fn they_serve_under_every_check() {
    register();
    let mut settings = small("dftl", 2);
    // The cache has fewer entries than the device has pages; otherwise no entry would ever have to leave.
    settings.ftl.mapping_cache_bytes = Some(1 << 10);
    settings.host.scheduler = "shortest".into();
    settings.device.scheduler = "reads-first".into();
    settings.device.queue_depth = 8;
    settings.ftl.gc = "oldest-gainful".into();
    settings.ftl.own.dftl.replacement = "clock".into();
    let (report, completions) = checked(&settings, bursts(1, 2000, settings.user_pages()));
    assert_eq!((completions.len(), report.scheduler.name.as_str()), (2000, "shortest"));
    // Two of the policies report figures of their own.
    let own = report.own.expect("there are figures");
    assert!(own["ftl"]["spared"] > Some(0.0) && own["gc"]["passed_over"] > Some(0.0), "{own:?}");
    let legend = report.own_legend.expect("they are explained");
    let shown: Vec<String> =
        legend.iter().map(|line| format!("{}.{}, {}", line.part, line.name, line.unit)).collect();
    assert_eq!(shown, ["ftl.spared, entries", "gc.passed_over, blocks"]);
}

#[test]
fn the_comparison_runs() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/phone-mix.csv.gz");
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_my-policies")).arg(trace).output().unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    assert_eq!((ran.status.code(), printed.lines().count()), (Some(0), 8), "{printed}");
}
