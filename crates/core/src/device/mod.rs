//! The device: its queue, its chips and channel buses.

use crate::config::Choice;

/// Names for `device.scheduler`.
pub fn choices() -> Vec<Choice> {
    vec![Choice { name: "noop", doc: "the oldest request issues once the chips it touches are idle" }]
}
