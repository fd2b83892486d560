//! Policies written in Python: a host scheduler, a victim policy, a replacement of mapping-cache entries.
//!
//! The core calls them like any part. What they may do wrong is checked here, and ends the run
//! ([`crate::errors::end`]) with a message that `ftlab.policies` makes.

mod object;
pub mod replacement;
pub mod scheduler;
pub mod victims;
