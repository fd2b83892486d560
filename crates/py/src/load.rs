//! What a run's requests come from: a source, tenants with a source each, or clients.

use ftlab_core::metrics::Report;
use ftlab_core::sim::{self, Prepared, RunError};
use ftlab_core::workload::{Source, SourceError};
use ftlab_files::clients::Clients;
use ftlab_files::settings::Settings;
use pyo3::prelude::*;

use crate::errors::Fault;
use crate::observe::Watch;
use crate::source::{self, Opened, Raised};

/// Where the requests of a run come from.
pub enum Load {
    /// Clients of a benchmark or a fio job.
    Clients(Box<Clients>),
    /// A load for each tenant.
    Tenants(Vec<ftlab_files::Load>),
    /// One source.
    Source(Box<dyn Source + Send>),
}

impl Load {
    /// Opens the load of a configuration, with what collects the exceptions that Python code raises in it. For `chunks`
    /// and `only` see [`crate::run::run`].
    ///
    /// # Errors
    /// [`Fault::User`] if there is no load, or it is at fault.
    pub fn open(
        settings: &Settings,
        chunks: Option<Py<PyAny>>,
        only: Option<&str>,
    ) -> Result<(Load, Raised), Fault> {
        if let Some(clients) = source::clients(settings, settings.user_bytes())? {
            return Ok((Load::Clients(Box::new(clients)), Raised::default()));
        }
        if !settings.tenants.0.is_empty() {
            let (loads, raised) = source::of_tenants(settings, only)?;
            return Ok((Load::Tenants(loads), raised));
        }
        let Opened { source, raised } = match only {
            Some(stream) => source::of_stream(settings, chunks, stream)?,
            None => source::of_settings(settings, chunks)?,
        };
        Ok((Load::Source(source), raised))
    }

    /// Whether the load's requests may have streams.
    ///
    /// # Errors
    /// The source's error.
    pub fn has_streams(&mut self) -> Result<bool, SourceError> {
        match self {
            Load::Source(source) => source.has_streams(),
            Load::Tenants(_) => Ok(true),
            Load::Clients(_) => Ok(false),
        }
    }

    /// Runs the load on a device.
    ///
    /// # Errors
    /// Those of [`sim::run`].
    pub fn run(self, settings: &Settings, device: Prepared, watch: &mut Watch) -> Result<Report, RunError> {
        match self {
            Load::Clients(clients) => ftlab_files::run(settings, device, *clients, watch),
            Load::Tenants(loads) => ftlab_files::run_tenants(settings, device, loads, watch),
            Load::Source(mut source) => sim::run_prepared(settings, device, &mut *source, watch),
        }
    }
}
