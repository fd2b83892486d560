//! The key table in the forms that the front end asks for.

use ftlab_core::config::Key;
use ftlab_core::workload::tenants;
use ftlab_files::settings;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Every key of this build, found by path and by table.
pub(crate) struct Catalog {
    /// The keys in the order of the stack: root keys, then table by table.
    pub keys: Vec<Key>,
    /// Dotted names of the tables, parents before children.
    pub tables: Vec<String>,
    by_path: BTreeMap<&'static str, usize>,
}

/// Returns the catalog, which is built at first use.
pub(crate) fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(|| Catalog::new(settings::all()))
}

/// Returns the table of a path: "host" of "host.scheduler", "" of "seed".
pub(crate) fn table_of(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(table, _)| table)
}

/// Returns the last part of a path: "scheduler" of "host.scheduler".
pub(crate) fn leaf_of(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, leaf)| leaf)
}

/// Whether a tenant may have this name.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=40).contains(&text.len()) && text.chars().all(plain)
}

impl Catalog {
    fn new(mut keys: Vec<Key>) -> Catalog {
        let mut tables: Vec<String> = Vec::new();
        for key in &keys {
            let table = table_of(key.path);
            let ends = table.match_indices('.').map(|(end, _)| end).chain([table.len()]);
            for end in ends.filter(|end| *end > 0) {
                if !tables.iter().any(|known| known == &table[..end]) {
                    tables.push(table[..end].to_owned());
                }
            }
        }
        // A higher layer may add a table to one of a lower layer: workload.benchmark belongs to the file
        // host.
        let roots: Vec<String> = tables.iter().filter(|table| !table.contains('.')).cloned().collect();
        tables.sort_by_key(|table| roots.iter().position(|root| table.split('.').next() == Some(root)));
        // The registries' keys come last in the core's list; here they move to their tables.
        keys.sort_by_key(|key| {
            tables.iter().position(|table| table == table_of(key.path)).map_or(0, |n| n + 1)
        });
        let by_path = keys.iter().enumerate().map(|(index, key)| (key.path, index)).collect();
        Catalog { keys, tables, by_path }
    }

    /// Returns the key with this path. A tenant's key has the declaration of the key that it stands for.
    pub fn key(&self, path: &str) -> Option<&Key> {
        let key = |path: &str| self.by_path.get(path).map(|&index| &self.keys[index]);
        let named = path.strip_prefix("tenant.").and_then(|rest| rest.split_once('.'));
        if named.is_some_and(|(name, _)| !is_name(name)) {
            return None;
        }
        match tenants::stands_for(path) {
            Some(of) => key(&of).filter(|key| !of.starts_with("workload.") || tenants::may_have(key.path)),
            None => key(path),
        }
    }

    /// Returns the keys that the tenant may have below whose table a path is; none if it is below no tenant's table.
    pub fn of_tenant(&self, path: &str) -> Vec<&'static str> {
        let named = path.strip_prefix("tenant.").and_then(|rest| rest.split_once('.'));
        let Some((name, _)) = named.filter(|(name, _)| is_name(name)) else { return Vec::new() };
        let leaf = |key: &Key| {
            let own = key.path.strip_prefix("tenant.").and_then(|rest| rest.split_once('.'));
            let of_load = key.path.strip_prefix("workload.").filter(|_| tenants::may_have(key.path));
            own.map(|(_, leaf)| leaf).or(of_load)
        };
        self.keys.iter().filter_map(leaf).map(|leaf| tenants::path_of(name, leaf)).collect()
    }

    /// Whether this path names a table.
    pub fn is_table(&self, path: &str) -> bool {
        let known = |path: &str| self.tables.iter().any(|table| table == path);
        match path.strip_prefix("tenant.").map(|rest| rest.split_once('.')) {
            Some(Some((_, table))) => known(&format!("workload.{table}")),
            Some(None) => is_name(&path["tenant.".len()..]),
            None => known(path),
        }
    }

    /// Returns the keys directly in a table ("" for the root).
    pub fn in_table<'a>(&'a self, table: &'a str) -> impl Iterator<Item = &'a Key> + 'a {
        self.keys.iter().filter(move |key| table_of(key.path) == table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_unique_and_no_key_is_a_table() {
        let catalog = catalog();
        assert_eq!(catalog.by_path.len(), catalog.keys.len());
        for key in &catalog.keys {
            assert!(!catalog.is_table(key.path), "{}", key.path);
            assert_ne!(key.path, "preset", "preset is the front's own key");
        }
    }

    #[test]
    fn tables_stand_in_the_order_of_the_stack() {
        let tables = [
            "workload",
            "workload.synthetic",
            "workload.benchmark",
            "tenant",
            "tenant.NAME",
            "host",
            "device",
            "ftl",
            "flash",
            "flash.variation",
            "flash.errors",
            "energy",
            "results",
        ];
        assert_eq!(catalog().tables, tables);
        assert_eq!(catalog().keys[0].path, "seed");
    }
}
