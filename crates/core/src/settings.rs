//! All settings of a run: what the parts declare, gathered, and checked against each other.

use crate::config::{Contradiction, Key, Section, Values, over, section};
use crate::files::settings as files;

pub use crate::device::settings::{Device, Precondition, PreconditionKind, WriteOrder};
pub use crate::files::settings::Files;
pub use crate::flash::{Endurance, Flash};
pub use crate::ftl::background::GcBackground;
pub use crate::ftl::settings::Ftl;
pub use crate::host::settings::Host;
pub use crate::metrics::Results;
pub use crate::workload::settings::{Arrival, BurstOps, OutOfRange, Pattern, Replay, Synthetic, Workload};

section! {
    /// Everything that a run reads. Each floor's settings are a field of those above, and reached through
    /// them: a function takes those of its own floor.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// The file host's, and all below.
        below: files::Settings;
        /// What the result holds.
        results: Results;
    }
}

over!(Settings, below: files::Settings);

impl Settings {
    /// Reads the typed settings out of complete, individually checked values.
    ///
    /// # Errors
    /// [`Contradiction`] where values do not fit together.
    ///
    /// # Panics
    /// If a key with a default is missing from `values` or holds another kind's value.
    pub fn from_values(values: &Values) -> Result<Settings, Contradiction> {
        let settings = Settings::read(values);
        crate::ftl::check::geometry(&settings)?;
        crate::host::check::check(&settings, values)?;
        files::check(&settings)?;
        crate::device::sched::check(&settings)?;
        crate::flash::variation::check(&settings.flash)?;
        crate::ftl::check(&settings)?;
        Ok(settings)
    }

    /// Keys that the chosen parts ignore, each with the reason.
    pub fn ignored(&self) -> Vec<Contradiction> {
        crate::host::check::ignored(self)
    }
}

/// Every key of this build.
pub fn all() -> Vec<Key> {
    crate::config::section::keys::<Settings>()
}

/// Whether the state of the flash at time 0 depends on a key, so that a saved state is that of its
/// value alone. A key of `[ftl]` or `[flash]` does unless its declaration says that it does not.
pub fn shapes_state(path: &str) -> bool {
    let device = path == "seed" || path.starts_with("device.precondition");
    let shape = path.starts_with("ftl.") || path.starts_with("flash.");
    device || (shape && all().iter().any(|key| key.path == path && key.in_state))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
