//! Readers, writers and whole runs from a configuration, in one program.

mod common;

mod brought;
mod completions;
mod formats;
mod fuzz;
mod input;
mod pipeline;
mod recognised;
mod shared;
mod streams;
