//! Cases of a drive of today: 8 channels x 4 dies of TLC, word lines of three pages of 16 KiB, logical pages of 4 KiB.
//! One case for each part alone, and one with all of them.

use crate::Case;

type Keys = &'static [(&'static str, &'static str)];

/// The keys of the drive without any of the parts: 4 GiB of flash, of which a quarter is withheld.
const DRIVE: Keys = &[
    ("ftl.kind", "page"),
    ("ftl.logical_page", "4KiB"),
    ("ftl.over_provisioning", "25%"),
    ("host.scheduler", "noop"),
    ("host.queue_depth", "32"),
    ("device.queue_depth", "32"),
    ("flash.channels", "8"),
    ("flash.chips_per_channel", "4"),
    ("flash.blocks_per_plane", "43"),
    ("flash.pages_per_block", "192"),
    ("flash.page", "16KiB"),
    ("flash.cell", "tlc"),
    ("flash.programming", "word-line"),
    ("flash.read", "56us/77us/106us"),
    ("flash.program", "700us"),
    ("flash.transfer", "1ns"),
];

const fn case(name: &'static str, doc: &'static str, keys: Keys) -> Case {
    Case { name, doc, common: DRIVE, keys }
}

/// The cases; the requests of the two halves of the device are of two streams.
pub(crate) const CASES: &[Case] = &[
    case("drive", "TLC, 8 channels x 4 chips, word lines, queue depth 32", &[]),
    case(
        "drive-link",
        "as drive, link and cores",
        &[("device.link", "3.2GB/s"), ("device.cores", "4"), ("device.command_time", "1us")],
    ),
    case("drive-buffer", "as drive, 8 MiB of write buffer", &[("device.write_buffer", "8MiB")]),
    case("drive-slc", "as drive, SLC cache", &[("ftl.slc_cache", "128MiB"), ("flash.slc_program", "200us")]),
    case(
        "drive-errors",
        "as drive, read errors",
        &[("flash.errors.process", "tlc-72-layer"), ("flash.pe_cycles", "3000")],
    ),
    case("drive-streams", "as drive, two streams", &[("ftl.placement", "stream"), ("ftl.fronts", "3")]),
    case(
        "drive-energy",
        "as drive, energy",
        &[("energy.read", "10uJ/12uJ/15uJ"), ("energy.program", "100uJ")],
    ),
    case(
        "drive-all",
        "as drive, with all of that",
        &[
            ("device.link", "3.2GB/s"),
            ("device.cores", "4"),
            ("device.command_time", "1us"),
            ("device.write_buffer", "8MiB"),
            ("ftl.slc_cache", "128MiB"),
            ("flash.slc_program", "200us"),
            ("flash.errors.process", "tlc-72-layer"),
            ("flash.pe_cycles", "3000"),
            ("ftl.placement", "stream"),
            ("ftl.fronts", "3"),
            ("energy.read", "10uJ/12uJ/15uJ"),
            ("energy.program", "100uJ"),
        ],
    ),
];
