//! The resolved configuration as text: for results, and as a file that resolves to the same values.

use crate::Resolved;
use crate::catalog::{catalog, leaf_of, table_of};
use crate::stated;
use ftlab_core::config::{Value, Values};
use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};

impl Resolved {
    /// Returns nested tables in the order of the stack, with `preset` first if there is one. Values are
    /// written as in a file: "16KiB", "35us", 128, true.
    pub fn to_json(&self) -> Json {
        let mut root = Map::new();
        if let Some(preset) = &self.preset {
            root.insert("preset".into(), preset.as_str().into());
        }
        let known = catalog().keys.iter().filter(|key| !is_of_tenant(key.path));
        let known = known.filter_map(|key| self.values.get_key_value(key.path));
        for (path, value) in known.chain(of_tenants(&self.values)) {
            let mut table = &mut root;
            let mut names = path.split('.').peekable();
            while let Some(name) = names.next() {
                if names.peek().is_none() {
                    table.insert(name.into(), stated::to_json(value));
                    break;
                }
                let inner = table.entry(name).or_insert_with(|| Json::Object(Map::new()));
                table = inner.as_object_mut().expect("no key's path is a table's");
            }
        }
        Json::Object(root)
    }

    /// Returns a TOML file that states every value, and so resolves to the same values.
    pub fn to_toml(&self) -> String {
        let preset = self.preset.as_ref().map(|name| format!("preset = {}\n", stated::quoted(name)));
        preset.unwrap_or_default() + &canonical(&self.values)
    }

    /// Returns 32 hexadecimal digits that are equal for equal values, whatever preset, file and options they
    /// came from.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(canonical(&self.values).as_bytes());
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns every value, table by table, each in its canonical spelling.
fn canonical(values: &Values) -> String {
    let mut text = String::new();
    for table in std::iter::once("").chain(catalog().tables.iter().map(String::as_str)) {
        let mut header = if table.is_empty() { String::new() } else { format!("\n[{table}]\n") };
        for key in catalog().in_table(table).filter(|key| !is_of_tenant(key.path)) {
            if let Some(value) = values.get(key.path) {
                text.push_str(&std::mem::take(&mut header));
                text.push_str(&format!("{} = {}\n", leaf_of(key.path), stated::to_toml(value)));
            }
        }
    }
    let mut open = "";
    for (path, value) in of_tenants(values) {
        let table = table_of(path);
        if std::mem::replace(&mut open, table) != table {
            text.push_str(&format!("\n[{table}]\n"));
        }
        text.push_str(&format!("{} = {}\n", leaf_of(path), stated::to_toml(value)));
    }
    text
}

/// Whether a key is a tenant's, or declared for all tenants.
fn is_of_tenant(path: &str) -> bool {
    path.starts_with("tenant.")
}

/// Returns the values that were stated for tenants, table by table.
fn of_tenants(values: &Values) -> impl Iterator<Item = (&&'static str, &Value)> {
    let mut found: Vec<_> = values.iter().filter(|(path, _)| is_of_tenant(path)).collect();
    found.sort_by_key(|(path, _)| (table_of(path), **path));
    found.into_iter()
}
