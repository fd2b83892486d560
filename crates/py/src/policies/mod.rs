//! Policies written in Python: a host scheduler, a victim policy, a placement, a replacement policy of the
//! mapping cache.
//!
//! The core calls them like any other part. Mistakes that their code may make are caught here and end the run
//! ([`crate::errors::end`]) with a message that `ftlab.policies` makes.

mod object;
pub mod placement;
pub mod replacement;
pub mod scheduler;
pub mod victims;
