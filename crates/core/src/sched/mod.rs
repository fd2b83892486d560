//! I/O schedulers of the host.

use crate::config::{Choice, Key, Kind};

/// Names for `host.scheduler`.
pub fn choices() -> Vec<Choice> {
    const LIST: &[(&str, &str)] = &[
        ("noop", "arrival order"),
        ("row", "reads over writes, alternating while both wait"),
        ("amphibian", "as row, smallest request first"),
        ("hp", "requests whose mappings are cached first"),
        ("rb", "batches of requests that share a translation page"),
        ("map", "hp for hits, rb for misses"),
        ("map+", "map with the densest batch first"),
    ];
    LIST.iter().map(|&(name, doc)| Choice { name, doc }).collect()
}

/// Keys of the registered schedulers.
pub fn keys() -> Vec<Key> {
    vec![Key {
        path: "host.alternate",
        kind: Kind::Bool,
        default: "false",
        words: &[],
        doc: "hp, rb, map, map+: alternate reads and writes as row does.",
    }]
}
