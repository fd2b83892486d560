//! Configuration: TOML with presets, units and strict keys, error messages for people, and a JSON Schema.
//!
//! [`resolve()`] combines defaults, a preset, a file and options and checks the whole. The outcome,
//! [`Resolved`], holds every value, where it came from, and the typed settings that the stack reads. The keys
//! themselves are declared by the parts that read them (`ftlab_core::config`); no code here knows a key by name.
//!
//! ```
//! use ftlab_config::{Base, Override, resolve};
//!
//! let slower = Override {
//!     origin: "--set flash.read=70us".into(),
//!     key: "flash.read".into(),
//!     value: "70us".into(),
//! };
//! let resolved = resolve(Base::Preset("map-plus"), &[slower]).unwrap();
//! assert_eq!(resolved.settings.flash.read.mean(), 70_000);
//!
//! let text = "[host]\nschduler = \"noop\"\n";
//! let error = resolve(Base::Text { name: "a.toml", text }, &[]).unwrap_err();
//! assert_eq!(error.headline(), "a.toml:2: host.schduler: unknown key; did you mean host.scheduler?");
//! ```

mod catalog;
mod document;
mod error;
mod input;
mod presets;
mod resolve;
mod schema;
mod stated;
mod suggest;
mod table;
mod value;
mod write;

pub use error::ConfigError;
pub use input::{Input, open, read_text};
pub use presets::{Preset, presets};
pub use resolve::{Base, Override, Resolved, resolve};
pub use schema::{components, reference_markdown, schema};
pub use table::read_toml;
