//! Compares the policies of this crate with ftlab's on a trace: `cargo run --release -- TRACE`.

use std::error::Error;

use ftlab_config::{Base, Override, resolve};
use ftlab_core::metrics::Report;
use ftlab_core::sim;

const COMPARED: &[(&str, &str)] = &[
    ("host.scheduler", "noop"),
    ("host.scheduler", "map+"),
    ("host.scheduler", "shortest"),
    ("ftl.cache_policy", "lru"),
    ("ftl.cache_policy", "clock"),
    ("ftl.gc", "greedy"),
    ("ftl.gc", "oldest-gainful"),
];

fn run(trace: &str, key: &str, name: &str) -> Result<Report, Box<dyn Error>> {
    let set = |key: &str, value: &str| Override {
        origin: format!("{key}={value}"),
        key: key.into(),
        value: value.into(),
    };
    let overrides = [set("workload.trace", trace), set("workload.out_of_range", "wrap"), set(key, name)];
    let settings = resolve(Base::Preset("map-plus"), &overrides)?.settings.below;
    let mut source = ftlab_trace::open(trace, &ftlab_trace::Options::from_settings(&settings))?;
    Ok(sim::run(&settings, &mut *source, &mut (), false)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    my_policies::register();
    let trace = std::env::args().nth(1).ok_or("usage: my-policies TRACE")?;
    println!("{:32} {:>10} {:>6} {:>6}", "", "mean, ms", "hits", "WAF");
    for (key, name) in COMPARED {
        let report = run(&trace, key, name)?;
        println!(
            "{:32} {:10.3} {:6.3} {:6.3}",
            format!("{key}={name}"),
            report.latency.all.mean_ns / 1e6,
            report.mapping.hit_ratio.unwrap_or(f64::NAN),
            report.waf.total.unwrap_or(f64::NAN),
        );
    }
    Ok(())
}
