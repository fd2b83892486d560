//! What a run reports for a timeline.

use crate::device::{Served, Service, Span, Stage};
use crate::flash::parallel::{MultiPlane, Parallel, Place};
use crate::flash::{Cause, Operation};
use crate::request::Request;
use crate::settings::Settings;
use crate::util::NONE;
use crate::workload::Op;
use crate::workload::settings::By;

/// A request that was handed to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Number of the request, from 1 in trace order.
    pub id: u64,
    /// Arrival at the host, ns.
    pub arrival_ns: u64,
    /// Time at which the request was handed to the device, ns.
    pub dispatch_ns: u64,
    /// Operation.
    pub op: Op,
    /// First byte on the simulated device.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
    /// First logical page.
    pub lpn: u32,
    /// Number of logical pages; 0 if there are none.
    pub pages: u32,
    /// Stream of the request.
    pub stream: u16,
}

impl Dispatch {
    fn of(request: &Request) -> Dispatch {
        Dispatch {
            id: request.id,
            arrival_ns: request.arrival_ns,
            dispatch_ns: request.dispatch_ns,
            op: request.op,
            offset: request.offset,
            size: request.size,
            lpn: request.pages.first,
            pages: request.pages.pages,
            stream: request.pages.stream,
        }
    }
}

/// A stretch of time in which a LUN worked and, while its data was transferred, also its channel's bus.
///
/// While a timeline is drawn, every flash operation is reported separately: once for its cells, and once for each
/// transfer of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Number of the chip.
    pub chip: u32,
    /// Number of the chip's channel.
    pub channel: u32,
    /// Track: the LUN at work, in the order of [`Tracks::luns`].
    pub lun: u32,
    /// The part at work: the cells, or the bus before or after them.
    pub stage: Stage,
    /// Whether the cells were suspended and go on later with the same operation.
    pub suspended: bool,
    /// The flash operation that the chip performs.
    pub operation: Operation,
    /// Why the operation happens.
    pub cause: Cause,
    /// Number of a program or erase, from 0 in the order in which the FTL decided them; `None` for a read.
    pub number: Option<u32>,
    /// Logical page for which the operation is done, if one is known: a copy of garbage collection, for example, is
    /// done for the page whose write needed the room.
    pub lpn: Option<u32>,
    /// The request for which the operation is done; `None` for work of the device's own.
    pub request: Option<Dispatch>,
    /// When the work began, ns.
    pub begin_ns: u64,
    /// When the work ended, ns.
    pub end_ns: u64,
}

impl Activity {
    pub(super) fn of(span: &Span, place: Place, request: Option<&Request>) -> Activity {
        let label = &span.label;
        Activity {
            chip: place.chip,
            channel: place.channel,
            lun: span.lun,
            stage: span.stage,
            suspended: span.suspended,
            operation: label.operation,
            cause: label.cause,
            number: (label.number != NONE).then_some(label.number),
            lpn: (label.lpn != NONE).then_some(label.lpn),
            request: request.map(Dispatch::of),
            begin_ns: span.begin_ns,
            end_ns: span.end_ns,
        }
    }
}

/// A stretch of time in which the link or a core served a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handling {
    /// Track: the direction of the link, or the core, in the order of [`Tracks::controller`].
    pub server: u32,
    /// What the server did.
    pub service: Service,
    /// The request whose command was served.
    pub request: Dispatch,
    /// When the service began, ns.
    pub begin_ns: u64,
    /// When the service ended, ns.
    pub end_ns: u64,
}

impl Handling {
    pub(super) fn of(served: &Served, request: &Request) -> Handling {
        let &Served { server, service, begin_ns, end_ns, .. } = served;
        Handling { server, service, request: Dispatch::of(request), begin_ns, end_ns }
    }
}

/// Something that works on one thing at a time: a chip, or a die or plane if those work on their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// Number of the channel.
    pub channel: u32,
    /// "chip 3", "chip 3 die 1" or "chip 3 die 1 plane 0".
    pub name: String,
    /// The track's rank among the tracks of the channel.
    pub rank: u32,
}

/// The tracks of a device's timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracks {
    /// Names of the directions of the link and of the cores, if there are any.
    pub controller: Vec<String>,
    /// Whether there is a write buffer, whose pages in use are reported.
    pub buffer: bool,
    /// Number of channels.
    pub channels: u32,
    /// The tracks of the chips, dies or planes.
    pub luns: Vec<Track>,
    /// Whether cells and transfers of one track may overlap.
    pub overlap: bool,
    /// Whether there may be operations with rare causes ([`Cause::is_rare`]).
    pub rare: bool,
    /// The tenants' names, by stream; empty if every stream is a tenant, `None` if there are no tenants.
    pub tenants: Option<Vec<String>>,
}

impl Tracks {
    /// Returns the tracks of a device.
    pub fn new(settings: &Settings) -> Tracks {
        let flash = &settings.flash;
        let tenants: Vec<_> = settings.tenants.0.iter().map(|tenant| tenant.name.clone()).collect();
        let told_apart = !tenants.is_empty() || settings.workload.tenants == By::Stream;
        let Parallel { cache_program, cache_read, multi_plane, interleave, .. } = flash.parallel;
        let track = |place: &Place| {
            let chip = format!("chip {}", place.chip);
            let die = format!("{chip} die {}", place.die % flash.dies_per_chip);
            let name = match (multi_plane, interleave) {
                (MultiPlane::Off, false) => chip,
                (MultiPlane::Off, true) => die,
                _ => format!("{die} plane {}", place.plane % flash.planes_per_die),
            };
            Track { channel: place.channel, name, rank: place.plane }
        };
        Tracks {
            controller: settings.device.controller.servers(),
            buffer: settings.device.buffer.bytes > 0,
            channels: flash.channels,
            luns: settings.spread().places().iter().map(track).collect(),
            overlap: cache_program || cache_read,
            rare: settings.ftl.slc_cache.is_some() || settings.ftl.refresh.is_some(),
            tenants: told_apart.then_some(tenants),
        }
    }
}
