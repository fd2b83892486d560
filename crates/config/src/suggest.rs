//! "Did you mean": the nearest valid name.

use crate::catalog::{Catalog, leaf_of, table_of};

/// Returns the candidate closest to `name`, if it is close enough to be meant.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: String = name.chars().take(80).collect::<String>().to_lowercase();
    let length = name.chars().count();
    let allowed = (length / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let lower = candidate.to_lowercase();
        // A name that begins with the only letter of another is not meant to be that one.
        let extends =
            name.len() >= 3 && lower.len() >= 2 && (lower.starts_with(&name) || name.starts_with(&lower));
        let distance = strsim::damerau_levenshtein(&name, &lower);
        if (distance <= allowed && distance < length || extends)
            && best.is_none_or(|(least, _)| distance < least)
        {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Advice about an unknown key, for the message.
pub(crate) struct Advice {
    /// The keys that may be meant, best first; several if the same name occurs in several tables.
    pub keys: Vec<&'static str>,
    /// Whether the name is right and the table is wrong.
    pub misplaced: bool,
    /// A list of the keys of the table that the path names, if there is such a table.
    pub note: Option<String>,
}

/// Looks for the key meant by `path`.
pub(crate) fn key(catalog: &Catalog, path: &str) -> Advice {
    let (table, leaf) = (table_of(path), leaf_of(path));
    let of_tenant = catalog.of_tenant(path);
    let paths = || match of_tenant.is_empty() {
        true => catalog.keys.iter().map(|key| key.path).collect::<Vec<_>>().into_iter(),
        false => of_tenant.clone().into_iter(),
    };
    let known_table = table.is_empty() || catalog.is_table(table);
    let same_leaf: Vec<&'static str> = paths().filter(|known| leaf_of(known) == leaf).collect();
    let in_table = || paths().filter(|known| table_of(known) == table);
    let (keys, misplaced) = if !same_leaf.is_empty() {
        match nearest(path, same_leaf.iter().copied()) {
            // The table is misspelt: this is the only key of that name in the table that is meant.
            Some(meant) if !known_table => (vec![meant], false),
            _ => (same_leaf, known_table),
        }
    } else if let Some(meant) = paths().find(|known| known.replace('.', "_") == path.replace("__", "_")) {
        // Underscores in the place of dots, or a keyword of Python.
        (vec![meant], false)
    } else if table.is_empty() && nearest(leaf, ["preset"]).is_some() {
        (vec!["preset"], false)
    } else if let Some(meant) = nearest(leaf, in_table().map(leaf_of)) {
        (in_table().filter(|known| leaf_of(known) == meant).collect(), false)
    } else if let Some(meant) = (!known_table).then(|| nearest(path, paths())).flatten() {
        (vec![meant], false)
    } else if let Some(meant) = nearest(leaf, paths().map(leaf_of)) {
        (paths().filter(|known| leaf_of(known) == meant).collect(), false)
    } else {
        (Vec::new(), false)
    };
    let note = known_table.then(|| keys_of(catalog, table)).filter(|_| keys.is_empty());
    Advice { keys, misplaced, note }
}

/// Returns "\[host\] has queue_depth, scheduler, ...".
pub(crate) fn keys_of(catalog: &Catalog, table: &str) -> String {
    let of_tenant = catalog.of_tenant(&format!("{table}."));
    let of_table = of_tenant.into_iter().filter(|path| table_of(path) == table).map(leaf_of);
    let mut names: Vec<_> = of_table.collect();
    if names.is_empty() {
        names.extend(catalog.in_table(table).map(|key| leaf_of(key.path)));
    }
    if table.is_empty() {
        format!("outside tables: preset, {}; tables: {}", names.join(", "), tables(catalog))
    } else {
        format!("[{table}] has {}", names.join(", "))
    }
}

/// Returns "\[workload\], \[host\], ...".
pub(crate) fn tables(catalog: &Catalog) -> String {
    catalog.tables.iter().map(|table| format!("[{table}]")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::catalog;

    fn keys(path: &str) -> Vec<&'static str> {
        key(catalog(), path).keys
    }

    #[test]
    fn finds_the_name_meant() {
        assert_eq!(nearest("nop", ["noop", "row", "map"]), Some("noop"));
        assert_eq!(nearest("MAP+", ["map", "map+"]), Some("map+"));
        assert_eq!(nearest("amph", ["amphibian", "map"]), Some("amphibian"));
        assert_eq!(nearest("cfq", ["noop", "row", "hp"]), None);
        assert_eq!(nearest("", ["noop"]), None);
    }

    #[test]
    fn finds_the_key_meant() {
        assert_eq!(keys("host.schduler"), ["host.scheduler"]);
        assert_eq!(keys("hots.scheduler"), ["host.scheduler"]);
        assert_eq!(keys("scheduler"), ["host.scheduler", "device.scheduler"]);
        assert_eq!(keys("flash.mapping_cache"), ["ftl.mapping_cache"]);
        assert!(key(catalog(), "flash.mapping_cache").misplaced);
        assert_eq!(keys("ftl.maping_cache"), ["ftl.mapping_cache"]);
        assert_eq!(keys("mapping_cach"), ["ftl.mapping_cache"]);
        assert_eq!(keys("ftl.over_prov"), ["ftl.over_provisioning"]);
        assert_eq!(keys("Host.Scheduler"), ["host.scheduler"]);
        assert_eq!(keys("presets"), ["preset"]);
        assert_eq!(keys("host_scheduler"), ["host.scheduler"]);
        assert_eq!(keys("device__write_buffer"), ["device.write_buffer"]);
        assert_eq!(keys("ftl.zzzzz"), [] as [&str; 0]);
        assert!(
            key(catalog(), "flash.zzzz").note.unwrap().starts_with("[flash] has channels, chips_per_channel")
        );
    }
}
