//! Configurations, their errors and their schema, in one program.

mod errors;
mod properties;
mod resolve;
mod schema;
