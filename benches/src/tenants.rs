//! Cases of tenants: the requests of case `page` on four channels, sent by one, or in equal parts by four tenants with
//! pending queues of their own.

use crate::{Case, PAGE, uniform};
use ftlab_core::host::{Placed, Sender};
use ftlab_core::metrics::Report;
use ftlab_core::settings::Settings;
use ftlab_core::sim::{Prepared, run_tenants};

type Keys = &'static [(&'static str, &'static str)];

const FOUR_CHANNELS: (&str, &str) = ("flash.channels", "4");
const CHIPS: (&str, &str) = ("flash.chips_per_channel", "4");
const BLOCKS: (&str, &str) = ("flash.blocks_per_plane", "256");

/// Keys of four tenants; a tenant's requests are those of the case, whatever number its own generator has.
const TENANTS: Keys = &[
    FOUR_CHANNELS,
    CHIPS,
    BLOCKS,
    ("host.queues", "per-tenant"),
    ("tenant.a.synthetic.requests", "1"),
    ("tenant.a.replay", "closed"),
    ("tenant.b.synthetic.requests", "1"),
    ("tenant.b.replay", "closed"),
    ("tenant.c.synthetic.requests", "1"),
    ("tenant.c.replay", "closed"),
    ("tenant.d.synthetic.requests", "1"),
    ("tenant.d.replay", "closed"),
];

const fn case(name: &'static str, doc: &'static str, keys: Keys) -> Case {
    Case { name, doc, common: PAGE, keys }
}

/// The cases.
pub(crate) const CASES: &[Case] = &[
    case("page-four", "as page, 4 channels x 4 chips", &[FOUR_CHANNELS, CHIPS, BLOCKS]),
    case("page-tenants", "as page-four, four tenants with queues of their own", TENANTS),
];

/// Runs this many requests, an equal part of each tenant.
pub(crate) fn run(settings: &Settings, requests: u64) -> Report {
    let ranges = settings.tenants.ranges(settings.user_bytes(), settings.ftl.logical_page_bytes.into());
    let each = requests / ranges.len() as u64;
    let mut senders = Vec::new();
    for (number, range) in (0..).zip(ranges) {
        let pages = (range.to - range.from) / u64::from(settings.ftl.logical_page_bytes);
        let load = crate::Uniform {
            pages,
            state: uniform(settings, 0).state + u64::from(number),
            ..uniform(settings, each)
        };
        senders.push(Sender::Source(Box::new(Placed::new(Box::new(load), range.from, 0, number))));
    }
    let prepared = Prepared::new(settings, &mut (), false).expect("nothing fails");
    run_tenants(settings, prepared, &mut senders, &mut ()).expect("a sound run")
}
