//! Flash translation layers.

use crate::config::{Choice, Contradiction, Key, Kind, Settings};

/// Names for `ftl.kind`.
pub fn choices() -> Vec<Choice> {
    const LIST: &[(&str, &str)] = &[
        ("page", "full page map in RAM"),
        ("dftl", "demand-cached page map (Gupta et al., ASPLOS 2009)"),
        ("cdftl", "two-level demand-cached page map (Qin et al., RTAS 2011)"),
    ];
    LIST.iter().map(|&(name, doc)| Choice { name, doc }).collect()
}

/// Names for `ftl.gc`.
pub fn gc_choices() -> Vec<Choice> {
    vec![Choice { name: "greedy", doc: "the block with the fewest valid pages" }]
}

fn cache_policies() -> Vec<Choice> {
    vec![
        Choice { name: "slru", doc: "segmented LRU, protected : probationary = 1 : 7" },
        Choice { name: "lru", doc: "one LRU list" },
    ]
}

fn flush_choices() -> Vec<Choice> {
    vec![Choice { name: "eviction", doc: "when a dirty entry leaves the mapping cache" }]
}

/// Keys of the registered FTLs.
pub fn keys() -> Vec<Key> {
    vec![
        Key {
            path: "ftl.cache_policy",
            kind: Kind::Choice(cache_policies),
            default: "slru",
            words: &[],
            doc: "Replacement in the mapping cache of dftl.",
        },
        Key {
            path: "ftl.flush",
            kind: Kind::Choice(flush_choices),
            default: "eviction",
            words: &[],
            doc: "When dirty mappings are written back.",
        },
        Key {
            path: "ftl.batch_update",
            kind: Kind::Bool,
            default: "true",
            words: &[],
            doc: "A write-back cleans every cached dirty entry of its translation page.",
        },
        Key {
            path: "ftl.background_flush",
            kind: Kind::Bool,
            default: "false",
            words: &[],
            doc: "Write dirty entries back while nothing is pending.",
        },
    ]
}

/// Checks that the chosen FTL fits the geometry.
///
/// # Errors
/// [`Contradiction`] naming the key to change.
pub fn check(_settings: &Settings) -> Result<(), Contradiction> {
    Ok(())
}
