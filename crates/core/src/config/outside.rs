//! Parts from outside: makers of parts that are in no registry, by the key that names them.
//!
//! The layer that a part belongs to declares what a maker of such parts is. All simulations of a process share one
//! table.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

type Maker = Arc<dyn Any + Send + Sync>;

static MAKERS: RwLock<BTreeMap<(&'static str, String), Maker>> = RwLock::new(BTreeMap::new());

/// Lets these keys name, as `name`, the part that `maker` makes. A part of the same name that was added before is
/// replaced in simulations that begin later.
pub fn add<M: Any + Send + Sync>(keys: &[&'static str], name: &str, maker: M) {
    let maker: Maker = Arc::new(maker);
    let mut makers = MAKERS.write().unwrap_or_else(PoisonError::into_inner);
    makers.extend(keys.iter().map(|&key| ((key, name.to_owned()), Arc::clone(&maker))));
}

/// Whether `name` is a part from outside that the key may name.
pub fn has(key: &'static str, name: &str) -> bool {
    MAKERS.read().unwrap_or_else(PoisonError::into_inner).contains_key(&(key, name.to_owned()))
}

/// Returns the maker of the part with this name.
///
/// # Panics
/// If there is none: checked settings name only existing parts.
pub(crate) fn maker<M: Any + Send + Sync>(key: &'static str, name: &str) -> Arc<M> {
    let makers = MAKERS.read().unwrap_or_else(PoisonError::into_inner);
    let maker = makers.get(&(key, name.to_owned())).cloned();
    let found = maker.and_then(|maker| maker.downcast().ok());
    found.unwrap_or_else(|| panic!("{key}: no part is registered as {name}"))
}
