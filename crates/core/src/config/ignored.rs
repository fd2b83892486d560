//! Keys that the chosen parts ignore: a user who set one of them is told, with the reason.

use super::Contradiction;
use super::section::{Section, keys};

/// The ignored keys, collected layer by layer; the first reason found for a key is kept.
#[derive(Debug, Default)]
pub struct Ignored {
    found: Vec<Contradiction>,
}

impl Ignored {
    /// Marks keys as ignored unless they are `used`; `why` says what in the configuration makes them ignored.
    pub fn unless(&mut self, used: bool, keys: &[&'static str], why: &str) {
        let new = keys.iter().filter(|key| !used && !self.has(key)).copied().collect::<Vec<_>>();
        self.found
            .extend(new.into_iter().map(|key| Contradiction { key, message: format!("ignored: {why}") }));
    }

    /// Marks all keys of a section, except those in `apart`, as ignored unless they are `used`; see
    /// [`Ignored::unless`].
    pub fn section<S: Section>(&mut self, used: bool, apart: &[&str], why: &str) {
        let paths = keys::<S>().into_iter().map(|key| key.path);
        self.unless(used, &paths.filter(|path| !apart.contains(path)).collect::<Vec<_>>(), why);
    }

    /// Adds an ignored key, with the whole message.
    pub fn add(&mut self, ignored: Contradiction) {
        self.found.push(ignored);
    }

    /// Whether a key is among the ignored keys.
    fn has(&self, key: &str) -> bool {
        self.found.iter().any(|found| found.key == key)
    }

    /// Returns the ignored keys, each with the reason.
    pub fn into_vec(self) -> Vec<Contradiction> {
        self.found
    }
}
