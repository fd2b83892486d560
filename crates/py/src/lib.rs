//! The Python extension module `ftlab._core`: thin glue between the Python package and the Rust
//! crates. Nothing is simulated or decided here.

mod columns;
mod config;
mod crash;
mod errors;
mod live;
mod load;
mod observe;
mod policies;
mod run;
mod simulation;
mod source;
mod state;
mod trace;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use pyo3::pyfunction;

    #[pymodule_export]
    use crate::columns::Column;
    #[pymodule_export]
    use crate::config::{Config, components, presets, read_toml, reference, resolve, resolve_text, schema};
    #[pymodule_export]
    use crate::crash::crash;
    #[pymodule_export]
    use crate::errors::{InternalError, OutputError, UserError};
    #[pymodule_export]
    use crate::live::LiveServer;
    #[pymodule_export]
    use crate::policies::placement::add_placement;
    #[pymodule_export]
    use crate::policies::replacement::add_replacement;
    #[pymodule_export]
    use crate::policies::scheduler::{Request, add_host_scheduler};
    #[pymodule_export]
    use crate::policies::victims::add_victim_policy;
    #[pymodule_export]
    use crate::run::{RunResult, prepare, run};
    #[pymodule_export]
    use crate::simulation::{Completion, Simulation};
    #[pymodule_export]
    use crate::state::{Device, discard_unfinished};
    #[pymodule_export]
    use crate::trace::{
        TraceChunks, trace_check, trace_chunks, trace_convert_csv, trace_files, trace_head, trace_info,
    };

    /// Returns the peak resident memory of this process, bytes; None where it is unknown.
    #[pyfunction]
    fn peak_rss_bytes() -> Option<u64> {
        ftlab_embed::peak_rss_bytes()
    }

    #[pymodule_init]
    fn init(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        use pyo3::prelude::PyModuleMethods;
        ftlab_embed::install_panic_hook();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
