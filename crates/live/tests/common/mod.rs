//! Small devices, and a client that stores its replies.

use std::sync::{Arc, Mutex};

use ftlab_config::{Base, Override, Resolved, resolve};
use ftlab_core::sim::Prepared;
use ftlab_live::engine::Sink;

/// Makes the device of a few MiB on which `ftlab crash` cuts the power, with these keys changed.
pub fn device(keys: &[(&str, &str)]) -> (Resolved, Prepared) {
    let set = |&(key, value): &(&str, &str)| Override {
        origin: "test".into(),
        key: key.into(),
        value: value.into(),
    };
    let overrides: Vec<Override> = keys.iter().map(set).collect();
    let resolved =
        resolve(Base::Preset("crash"), &overrides).unwrap_or_else(|error| panic!("{keys:?}: {error}"));
    let prepared = Prepared::new(&resolved.settings, &mut (), false).unwrap();
    (resolved, prepared)
}

/// A client that keeps its replies.
#[derive(Default)]
pub struct Kept(Mutex<Vec<Vec<u8>>>);

impl Kept {
    /// Takes and returns the replies that have arrived.
    #[allow(dead_code)] // not every test reads them
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Sink for Kept {
    fn put(&self, reply: Vec<u8>, _: usize) {
        self.0.lock().unwrap().push(reply);
    }

    fn kick(&self) {}

    fn lose(&self) {}
}

/// Makes a client, and returns it in the form that the test uses and in the one that the engine uses.
#[allow(dead_code)] // not every test has one
pub fn client() -> (Arc<Kept>, Arc<dyn Sink>) {
    let kept = Arc::new(Kept::default());
    (kept.clone(), kept)
}
