//! Policies written in Python: a host scheduler, a victim policy, a replacement of mapping-cache entries.
//!
//! The core calls them like any part. Mistakes that they may make are caught here and end the run
//! ([`crate::errors::end`]) with a message that `ftlab.policies` makes.

mod object;
pub mod replacement;
pub mod scheduler;
pub mod victims;
