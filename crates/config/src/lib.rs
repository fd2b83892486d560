//! Configuration: TOML with presets, units, strict keys; errors for people; JSON Schema.
