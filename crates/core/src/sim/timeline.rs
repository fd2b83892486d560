//! What a run tells whoever draws its timeline.

use crate::device::{Part, Span};
use crate::flash::{Cause, Operation};
use crate::request::Request;
use crate::util::NONE;
use crate::workload::Op;

/// A request in the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Number of the request, from 1 in trace order.
    pub id: u64,
    /// Arrival at the host, ns.
    pub arrival_ns: u64,
    /// Handed to the device, ns.
    pub dispatch_ns: u64,
    /// Operation.
    pub op: Op,
    /// First byte on the simulated device.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Its first logical page.
    pub lpn: u32,
    /// Number of its logical pages; 0: none.
    pub pages: u32,
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
        }
    }
}

/// A stretch of time in which a chip, and with its data on the way also its channel's bus, worked.
///
/// While a timeline is drawn every flash operation is reported by itself: once for its cells, and
/// once for each transfer of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Chip; its channel is chip mod channels.
    pub chip: u32,
    /// The cells, or the bus before or after them.
    pub part: Part,
    /// What the chip does.
    pub operation: Operation,
    /// Why.
    pub cause: Cause,
    /// Programs and erases are numbered from 0 in the order in which the FTL decided them; `None` for a
    /// read.
    pub number: Option<u32>,
    /// Logical page it is done for, if one is known: a copy of garbage collection, say, is done for
    /// the page whose write needed the room.
    pub lpn: Option<u32>,
    /// The request it is done for; `None`: a write-back in the background.
    pub request: Option<Dispatch>,
    /// From, ns.
    pub begin_ns: u64,
    /// To, ns.
    pub end_ns: u64,
}

impl Activity {
    pub(super) fn of(span: &Span, request: Option<&Request>) -> Activity {
        let label = &span.label;
        Activity {
            chip: span.chip,
            part: span.part,
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
