//! `[tenant.NAME]`: several loads at once, each with a part of the addresses, a weight and a class of its own.
//!
//! A tenant's table holds the keys below and those of `[workload]`, such as `trace` or `synthetic.requests`, without
//! that table's name. Tenants are numbered from 0 in the order of their names; the number is the stream of their
//! requests ([`super::Record::stream`]).

use super::settings::Workload;
use crate::config::form::Formed;
use crate::config::section::{ANY_TIME, Section, count, defaults, keys};
use crate::config::{ByteRange, Contradiction, Key, Kind, Values, choice, path, section};

/// The table whose keys stand for those of every tenant; a tenant may have this name too, if it has a load.
pub const PLACEHOLDER: &str = "NAME";

/// The largest number of tenants.
pub const MOST: usize = 256;

choice! {
    /// `priority` of a tenant.
    pub enum Class {
        /// before all others
        Urgent = "urgent",
        /// first among those that share by weight
        High = "high",
        /// second among those that share by weight
        Medium = "medium",
        /// last among those that share by weight
        Low = "low",
    }
}

section! {
    /// The keys of a tenant that no workload has.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Own {
        /// The tenant's part of the addresses, in which its own begin at 0; side-by-side: the device is divided evenly,
        /// in the order of the names.
        range: Option<ByteRange> = "tenant.NAME.range", RANGE or "side-by-side", "side-by-side";
        /// Number of requests that the tenant may send in its turn, or its share, where arbiter or scheduler go by
        /// weights.
        weight: u32 = "tenant.NAME.weight", count(1, 1 << 16), "1";
        /// Class of the tenant, where the arbiter or the order at a die go by classes.
        priority: Class = "tenant.NAME.priority", "medium";
        /// Places in the tenant's pending queue (host.queues = "per-tenant"), and the number of requests that a closed
        /// replay keeps outstanding.
        queue_depth: Option<u32> = "tenant.NAME.queue_depth", count(1, 1 << 30) or "host", "host";
        /// When the tenant begins.
        start_ns: u64 = "tenant.NAME.start", ANY_TIME, "0ns";
        /// How long the tenant sends requests.
        duration_ns: Option<u64> = "tenant.NAME.duration", ANY_TIME or "unlimited", "unlimited";
    }
}

const RANGE: Kind = Kind::Form { form: &ByteRange::FORM, min: 0, max: 1 << 60 };

/// A tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its load: a trace, a generator or clients.
    pub workload: Workload,
    /// Whether its load is clients: a fio job, or a benchmark (whose keys belong to the layer above).
    pub clients: bool,
    /// Its other keys.
    pub own: Own,
}

/// All tenants, in the order of their names; empty if the requests have one sender.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tenants(pub Vec<Tenant>);

impl Tenants {
    /// Returns the part of the addresses of each tenant, of a device with `user_bytes`; parts begin at multiples of
    /// `page_bytes`.
    pub fn ranges(&self, user_bytes: u64, page_bytes: u64) -> Vec<ByteRange> {
        let count = self.0.len() as u64;
        let each = user_bytes / page_bytes / count.max(1) * page_bytes;
        let side = |at: u64| ByteRange { from: at * each, to: (at + 1) * each };
        (0..).zip(&self.0).map(|(at, tenant)| tenant.own.range.unwrap_or_else(|| side(at))).collect()
    }
}

/// Returns the path of the key that a tenant's key stands for: `workload.trace` for `tenant.a.trace`, and
/// `tenant.NAME.weight` for `tenant.a.weight`; `None` if the path is not below a tenant's table.
pub fn stands_for(path: &str) -> Option<String> {
    let (_, leaf) = path.strip_prefix("tenant.")?.split_once('.')?;
    let own = format!("tenant.{PLACEHOLDER}.{leaf}");
    if keys::<Own>().iter().any(|key| key.path == own) {
        return Some(own);
    }
    Some(format!("workload.{leaf}"))
}

/// Whether a tenant may have a key of `[workload]`: the division into tenants is not its own.
pub fn may_have(path: &str) -> bool {
    path.starts_with("workload.") && !["workload.tenants", "workload.streams"].contains(&path)
}

/// What a tenant's load may be, as the last parts of the keys that choose it.
pub const LOADS: [&str; 4] = ["trace", "synthetic.requests", "fio_job", CLIENTS];

/// The key that chooses a benchmark.
const CLIENTS: &str = "benchmark.kind";

/// Whether a load was stated for a tenant with the name [`PLACEHOLDER`].
pub fn has_load(values: &Values) -> bool {
    LOADS.iter().any(|leaf| values.contains_key(&*format!("tenant.{PLACEHOLDER}.{leaf}")))
}

/// Returns the tenants that have values, in the order of their names: for each its name and its values, under the paths
/// of the keys that they stand for.
pub fn stated(values: &Values) -> Vec<(String, Values)> {
    let mut tenants: Vec<(String, Values)> = Vec::new();
    for (path, value) in values {
        let Some((name, _)) = path.strip_prefix("tenant.").and_then(|rest| rest.split_once('.')) else {
            continue;
        };
        if name == PLACEHOLDER && !has_load(values) {
            continue;
        }
        if tenants.last().is_none_or(|(last, _)| last != name) {
            tenants.push((name.to_owned(), Values::new()));
        }
        let key = stands_for(path).expect("the path is below a tenant's table");
        tenants.last_mut().expect("one was pushed").1.insert(self::path(&key), value.clone());
    }
    tenants.sort_by(|one, other| one.0.cmp(&other.0));
    tenants
}

/// Declares the keys under [`PLACEHOLDER`], which have no values themselves.
impl Section for Tenants {
    fn declare(found: &mut Vec<Key>) {
        Own::declare(found);
    }

    fn read(values: &Values) -> Tenants {
        let tenant = |(name, stated): (String, Values)| {
            let mut values = defaults::<Own>();
            values.extend(defaults::<Workload>());
            values.extend(stated);
            let chosen = |leaf: &str| values.contains_key(&*format!("workload.{leaf}"));
            Tenant {
                name,
                workload: Workload::read(&values),
                clients: chosen("fio_job") || chosen(CLIENTS),
                own: Own::read(&values),
            }
        };
        Tenants(stated(values).into_iter().map(tenant).collect())
    }
}

/// Lets a message about a key of `[workload]` be about a tenant's.
pub fn of_tenant(name: &str, Contradiction { key, message }: Contradiction) -> Contradiction {
    let own = key.strip_prefix("workload.").map_or(key, |leaf| path_of(name, leaf));
    Contradiction { key: own, message: told_of(name, &message) }
}

/// Returns a message about a load as one about a tenant's: it names the tenant's keys.
pub fn told_of(name: &str, message: &str) -> String {
    message.replace("workload.", &format!("tenant.{name}."))
}

/// Returns the path of a tenant's key, for messages.
pub fn path_of(name: &str, leaf: &str) -> &'static str {
    path(&format!("tenant.{name}.{leaf}"))
}
