//! The protocol of the live device in one program.

mod common;
#[allow(dead_code)] // the hostile clients use the rest
#[path = "common/messages.rs"]
mod messages;

mod bytes;
mod extended;
mod streams;
