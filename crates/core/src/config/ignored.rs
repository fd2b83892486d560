//! Keys that the chosen parts ignore: what a user must hear who set one of them, and why it has no effect.

use super::Contradiction;
use super::section::{Section, keys};

/// Gathers such keys, floor by floor; the first reason found for a key stays.
#[derive(Debug, Default)]
pub struct Ignored {
    found: Vec<Contradiction>,
}

impl Ignored {
    /// Unless they are `used`, the keys are ignored; `why` says what of the configuration makes it so.
    pub fn unless(&mut self, used: bool, keys: &[&'static str], why: &str) {
        let new = keys.iter().filter(|key| !used && !self.has(key)).copied().collect::<Vec<_>>();
        self.found
            .extend(new.into_iter().map(|key| Contradiction { key, message: format!("ignored: {why}") }));
    }

    /// The same of all keys of a section, those in `apart` excepted.
    pub fn section<S: Section>(&mut self, used: bool, apart: &[&str], why: &str) {
        let paths = keys::<S>().into_iter().map(|key| key.path);
        self.unless(used, &paths.filter(|path| !apart.contains(path)).collect::<Vec<_>>(), why);
    }

    /// Whether a key is among them.
    fn has(&self, key: &str) -> bool {
        self.found.iter().any(|found| found.key == key)
    }

    /// The keys, each with the reason.
    pub fn into_vec(self) -> Vec<Contradiction> {
        self.found
    }
}
