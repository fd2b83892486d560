//! What is counted for each tenant.

use crate::device::Share;
use crate::metrics::{Recorder, Tenant, TenantFlash};
use crate::request::Request;
use crate::settings::Settings;
use crate::workload::settings::By;

/// The figures of the tenants' requests, by stream.
pub(super) struct Tenants {
    /// Names of the tenants; empty if the tenants are streams.
    names: Vec<String>,
    /// For each stream that has appeared, its figures.
    recorders: Vec<Option<Box<Recorder>>>,
}

impl Tenants {
    /// Makes empty figures, if there are tenants.
    pub(super) fn new(settings: &Settings) -> Option<Tenants> {
        let names: Vec<_> = settings.tenants.0.iter().map(|tenant| tenant.name.clone()).collect();
        let told_apart = !names.is_empty() || settings.workload.tenants == By::Stream;
        let recorders = names.iter().map(|_| Some(Box::new(Recorder::new(0)))).collect();
        told_apart.then_some(Tenants { names, recorders })
    }

    /// Counts a completed request.
    pub(super) fn complete(&mut self, request: &Request, now_ns: u64) {
        let stream = usize::from(request.pages.stream);
        if stream >= self.recorders.len() {
            self.recorders.resize_with(stream + 1, || None);
        }
        let recorder = self.recorders[stream].get_or_insert_with(|| Box::new(Recorder::new(0)));
        recorder.count(request, now_ns);
    }
}

impl Tenants {
    /// Returns the figures of each tenant, and the work of the device's own, given the flash's whole work and each
    /// stream's; with `bins`, histograms are included.
    pub(super) fn report(
        &self,
        whole: Share,
        of_stream: impl Fn(u16) -> Share,
        elapsed_ns: u64,
        bins: bool,
    ) -> (Vec<Tenant>, TenantFlash) {
        let (mut rest, mut found) = (whole, Vec::new());
        for (stream, recorder) in (0u16..=u16::MAX).zip(&self.recorders) {
            let Some(recorder) = recorder else { continue };
            let flash = of_stream(stream);
            rest = rest.since(flash);
            let name = self.names.get(usize::from(stream)).cloned().unwrap_or_else(|| stream.to_string());
            found.push(Tenant::new(name, recorder, (flash, whole), elapsed_ns, bins));
        }
        (found, TenantFlash::new(rest, whole))
    }
}
