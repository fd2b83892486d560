//! The settings of the stack: what the parts declare, collected and checked against each other.

use crate::config::section::keys;
use crate::config::{Contradiction, Ignored, Value, Values, over, section};
use crate::device::array::order;
use crate::host::settings as host;

pub use crate::device::energy::Settings as Energy;
pub use crate::device::settings::{Device, Precondition, PreconditionKind, Withheld, WriteOrder};
pub use crate::flash::{Endurance, Flash};
pub use crate::ftl::settings::Ftl;
pub use crate::ftl::settings::GcBackground;
pub use crate::host::settings::Host;
pub use crate::metrics::Results;
pub use crate::workload::settings::{
    Arrival, BurstOps, ObjectUnit, OutOfRange, Pattern, Replay, StreamsOf, Synthetic, Workload,
};

section! {
    /// Settings of the stack, from the block layer down. Each layer's settings have those of the layer below as a
    /// field; a function takes the settings of its own layer.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// Settings of the host and of everything below it.
        below: host::Settings;
        /// Settings of the result.
        results: Results;
    }
}

over!(Settings, below: host::Settings);

impl Settings {
    /// Lets the device have the order of flash operations that the arbiter is made for, unless another one than the
    /// default is chosen.
    pub fn complete(&mut self) {
        if let Some(order) = crate::host::check::order_of_arbiter(self)
            && self.order.name == order::Keys::default().name
        {
            self.order.name = order.into();
        }
    }

    /// Returns the value that [`Settings::complete`] has put in the place of one of `values`, if it has, and why that
    /// key may not be stated.
    pub fn replaced(&self, values: &Values) -> Option<(Value, Contradiction)> {
        crate::host::check::replaced(self, values)
    }

    /// Checks the parts against each other; the settings were read from `values`.
    ///
    /// # Errors
    /// [`Contradiction`] where values do not fit together.
    pub fn check(&self, values: &Values) -> Result<(), Contradiction> {
        crate::ftl::check::geometry(self)?;
        crate::host::check::check(self, values)?;
        crate::device::check::check(self)?;
        self.device.precondition.check()?;
        self.device.buffer.check(self.ftl.logical_page_bytes)?;
        crate::flash::cells::check(&self.flash)?;
        crate::flash::variation::check(&self.flash)?;
        crate::flash::errors::rates::check(&self.flash)?;
        crate::ftl::check::refresh(self)?;
        self.energy.check(&self.flash)?;
        crate::ftl::check(self)
    }

    /// Returns the keys that the chosen parts ignore, each with the reason.
    pub fn ignored(&self) -> Ignored {
        let mut found = Ignored::default();
        crate::host::check::ignored(self, &mut found);
        crate::device::check::ignored(self, &mut found);
        self.device.controller.ignored(&mut found);
        self.device.buffer.ignored(&mut found);
        self.device.precondition.ignored(self, &mut found);
        crate::ftl::check::ignored(self, &mut found);
        crate::flash::cells::ignored(&self.flash, &mut found);
        self.order.ignored(&mut found);
        crate::flash::parallel::ignored(&self.flash, &mut found);
        crate::flash::errors::rates::ignored(&self.flash, &mut found);
        found
    }
}

/// Whether the state of the flash at time 0 depends on a key, so that a saved state is valid only for the key's
/// value. A key of `[ftl]` or `[flash]` counts unless its declaration says otherwise.
pub fn shapes_state(path: &str) -> bool {
    let device = path == "seed" || path.starts_with("device.precondition");
    let shape = path.starts_with("ftl.") || path.starts_with("flash.");
    device || (shape && keys::<Settings>().iter().any(|key| key.path == path && key.in_state))
}
