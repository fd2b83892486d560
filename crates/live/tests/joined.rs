//! The protocol of the live device in one program.

mod common;
#[path = "common/messages.rs"]
mod messages;

mod bytes;
mod extended;
mod streams;
