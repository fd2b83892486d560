//! Tracks and slices as packets of a Perfetto trace.
//!
//! Source: `TracePacket`, `TrackDescriptor`, `TrackEvent`, `DebugAnnotation` and `InternedData` in Perfetto's
//! `protos/perfetto/trace`. Names appear once in the file, in its first packet, and are referred to by number.
//! Events of the same instant are drawn on a track in the order of the file.

use super::encoder::Message;
use ftlab_core::flash::{Cause, Operation};
use ftlab_core::workload::Op;

/// `Trace.packet`.
const PACKET: u32 = 1;

mod packet {
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    /// `SEQ_INCREMENTAL_STATE_CLEARED`, `SEQ_NEEDS_INCREMENTAL_STATE`.
    pub const FLAG_CLEARED: u64 = 1;
    pub const FLAG_NEEDS_STATE: u64 = 2;
}

mod descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PARENT: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const CHILD_ORDERING: u32 = 11;
    pub const RANK: u32 = 12;
    /// `ChildTracksOrdering.EXPLICIT`: by rank.
    pub const BY_RANK: u64 = 3;
    /// `CounterDescriptor.unit`, and its `UNIT_COUNT`.
    pub const UNIT: u32 = 3;
    pub const UNIT_COUNT: u64 = 2;
}

mod event {
    pub const CATEGORY: u32 = 3;
    pub const ANNOTATION: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME: u32 = 10;
    pub const TRACK: u32 = 11;
    pub const COUNTER_VALUE: u32 = 30;
    pub const FLOW: u32 = 47;
    /// `Type`.
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
    pub const COUNTER: u64 = 4;
}

mod annotation {
    pub const NAME: u32 = 1;
    pub const UINT: u32 = 3;
    pub const TEXT: u32 = 17;
}

mod interned {
    pub const CATEGORIES: u32 = 1;
    pub const NAMES: u32 = 2;
    pub const ANNOTATION_NAMES: u32 = 3;
    pub const TEXTS: u32 = 29;
    pub const IID: u32 = 1;
    pub const VALUE: u32 = 2;
}

/// All packets belong to one sequence.
const SEQUENCE: u64 = 1;

/// Names of slices, except those of flash operations.
#[derive(Clone, Copy, Debug)]
pub enum Name {
    /// A request, by its operation.
    Request(Op),
    /// The time before dispatch to the device.
    Wait,
    /// The time in the device.
    Access,
    /// Data to the chip.
    DataIn,
    /// Data from the chip.
    DataOut,
    /// Cells at work.
    Cells(Operation, Cause),
}

impl Name {
    const OPS: u64 = 4;
    const CELLS: u64 = Name::OPS + 5;

    /// Returns the number of the name; 0 means none.
    fn iid(self) -> u64 {
        match self {
            Name::Request(op) => 1 + op as u64,
            Name::Wait => Name::OPS + 1,
            Name::Access => Name::OPS + 2,
            Name::DataIn => Name::OPS + 3,
            Name::DataOut => Name::OPS + 4,
            Name::Cells(operation, cause) => {
                Name::CELLS + operation as u64 * Cause::ALL.len() as u64 + cause as u64
            }
        }
    }

    fn text(self) -> String {
        match self {
            Name::Request(op) => op_name(op).to_owned(),
            Name::Wait => "wait".to_owned(),
            Name::Access => "access".to_owned(),
            Name::DataIn => "data in".to_owned(),
            Name::DataOut => "data out".to_owned(),
            Name::Cells(operation, cause) => format!("{} {}", operation.name(), cause.name()),
        }
    }

    fn all() -> impl Iterator<Item = Name> {
        let cells =
            Operation::ALL.into_iter().flat_map(|op| Cause::ALL.into_iter().map(move |c| Name::Cells(op, c)));
        OPS.into_iter()
            .map(Name::Request)
            .chain([Name::Wait, Name::Access, Name::DataIn, Name::DataOut])
            .chain(cells)
    }
}

const OPS: [Op; 4] = [Op::Read, Op::Write, Op::Trim, Op::Flush];

fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Trim => "trim",
        Op::Flush => "flush",
    }
}

/// The category of a slice, for searching.
#[derive(Clone, Copy, Debug)]
pub enum Category {
    /// A request or a part of it.
    Request,
    /// Data on a bus.
    Bus,
    /// Cells at work, by operation.
    Cells(Operation),
}

impl Category {
    const ALL: [Category; 5] = [
        Category::Request,
        Category::Bus,
        Category::Cells(Operation::Read),
        Category::Cells(Operation::Program),
        Category::Cells(Operation::Erase),
    ];

    fn iid(self) -> u64 {
        match self {
            Category::Request => 1,
            Category::Bus => 2,
            Category::Cells(operation) => 3 + operation as u64,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Category::Request => "request",
            Category::Bus => "bus",
            Category::Cells(operation) => operation.name(),
        }
    }
}

/// Arguments of a slice.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub enum Arg {
    /// Number of the request, from 1 in trace order.
    Request = 1,
    /// First byte.
    Offset,
    /// Bytes.
    Size,
    /// Logical page.
    Lpn,
    /// Number of logical pages.
    Pages,
    /// Chip.
    Chip,
    /// Length of a slice that the window cut, ns.
    WholeNs,
    /// Arrival at the host, ns.
    ArrivalNs,
    /// Time from arrival to dispatch, ns.
    WaitNs,
    /// Time from arrival to completion, ns.
    LatencyNs,
    /// Mapping-cache misses.
    MappingMisses,
    /// Batch, from 1.
    Batch,
    /// Operation of the request.
    Op,
    /// Cause of the flash operation.
    Cause,
    /// The flash operation.
    Operation,
    /// 1: a read-only device refused the request.
    Failed,
}

const ARGS: [(Arg, &str); 16] = [
    (Arg::Request, "request"),
    (Arg::Offset, "offset"),
    (Arg::Size, "size"),
    (Arg::Lpn, "lpn"),
    (Arg::Pages, "pages"),
    (Arg::Chip, "chip"),
    (Arg::WholeNs, "whole_ns"),
    (Arg::ArrivalNs, "arrival_ns"),
    (Arg::WaitNs, "wait_ns"),
    (Arg::LatencyNs, "latency_ns"),
    (Arg::MappingMisses, "mapping_misses"),
    (Arg::Batch, "batch"),
    (Arg::Op, "op"),
    (Arg::Cause, "cause"),
    (Arg::Operation, "operation"),
    (Arg::Failed, "failed"),
];

/// Indices of the strings that arguments hold: operations of requests, causes, flash operations.
mod text {
    use super::{Cause, OPS, Op, Operation, op_name};

    pub fn op(op: Op) -> u64 {
        1 + op as u64
    }

    pub fn cause(cause: Cause) -> u64 {
        1 + OPS.len() as u64 + cause as u64
    }

    pub fn operation(operation: Operation) -> u64 {
        1 + (OPS.len() + Cause::ALL.len()) as u64 + operation as u64
    }

    pub fn all() -> impl Iterator<Item = (u64, &'static str)> {
        OPS.map(|one| (op(one), op_name(one)))
            .into_iter()
            .chain(Cause::ALL.map(|one| (cause(one), one.name())))
            .chain(Operation::ALL.map(|one| (operation(one), one.name())))
    }
}

/// The arguments of an event that is being written.
pub struct Args<'a>(&'a mut Message);

impl Args<'_> {
    /// Adds a number.
    pub fn uint(&mut self, arg: Arg, value: u64) {
        self.add(arg, annotation::UINT, value);
    }

    /// Adds the operation of a request.
    pub fn op(&mut self, op: Op) {
        self.add(Arg::Op, annotation::TEXT, text::op(op));
    }

    /// Adds the cause of a flash operation.
    pub fn cause(&mut self, cause: Cause) {
        self.add(Arg::Cause, annotation::TEXT, text::cause(cause));
    }

    /// Adds a flash operation.
    pub fn operation(&mut self, operation: Operation) {
        self.add(Arg::Operation, annotation::TEXT, text::operation(operation));
    }

    /// Connects the slice with the request's other slices, in the order in which they begin.
    pub fn flow(&mut self, request: u64) {
        self.0.fixed(event::FLOW, request);
    }

    fn add(&mut self, arg: Arg, field: u32, value: u64) {
        self.0.message(event::ANNOTATION, |message| {
            message.uint(annotation::NAME, arg as u64);
            message.uint(field, value);
        });
    }
}

/// A track in the hierarchy.
#[derive(Clone, Copy, Debug)]
pub struct Track<'a> {
    /// Its number, not 0.
    pub uuid: u64,
    /// Number of the parent track; 0: none.
    pub parent: u64,
    /// Its name; siblings with the same name are drawn as one track.
    pub name: &'a str,
    /// Its place among its siblings.
    pub rank: u64,
    /// Whether it holds values instead of slices.
    pub counter: bool,
}

/// Writes the packet that all others rely on: every name to which slices refer.
pub fn names(out: &mut Message) {
    out.message(PACKET, |message| {
        message.uint(packet::SEQUENCE, SEQUENCE);
        message.uint(packet::SEQUENCE_FLAGS, packet::FLAG_CLEARED);
        message.message(packet::INTERNED_DATA, |data| {
            let mut add = |field, iid, value: &str| {
                data.message(field, |entry| {
                    entry.uint(interned::IID, iid);
                    entry.text(interned::VALUE, value);
                });
            };
            for category in Category::ALL {
                add(interned::CATEGORIES, category.iid(), category.text());
            }
            for name in Name::all() {
                add(interned::NAMES, name.iid(), &name.text());
            }
            for (arg, name) in ARGS {
                add(interned::ANNOTATION_NAMES, arg as u64, name);
            }
            for (iid, value) in text::all() {
                add(interned::TEXTS, iid, value);
            }
        });
    });
}

/// Announces a track.
pub fn track(out: &mut Message, track: &Track) {
    out.message(PACKET, |message| {
        message.uint(packet::SEQUENCE, SEQUENCE);
        message.message(packet::TRACK_DESCRIPTOR, |fields| {
            fields.uint(descriptor::UUID, track.uuid);
            fields.text(descriptor::NAME, track.name);
            if track.parent != 0 {
                fields.uint(descriptor::PARENT, track.parent);
            }
            if track.counter {
                fields.message(descriptor::COUNTER, |counter| {
                    counter.uint(descriptor::UNIT, descriptor::UNIT_COUNT);
                });
            }
            fields.uint(descriptor::CHILD_ORDERING, descriptor::BY_RANK);
            fields.uint(descriptor::RANK, track.rank);
        });
    });
}

fn event(out: &mut Message, time_ns: u64, kind: u64, track: u64, fill: impl FnOnce(&mut Message)) {
    out.message(PACKET, |message| {
        message.uint(packet::TIMESTAMP, time_ns);
        message.uint(packet::SEQUENCE, SEQUENCE);
        message.uint(packet::SEQUENCE_FLAGS, packet::FLAG_NEEDS_STATE);
        message.message(packet::TRACK_EVENT, |fields| {
            fields.uint(event::TYPE, kind);
            fields.uint(event::TRACK, track);
            fill(fields);
        });
    });
}

/// Begins a slice.
pub fn begin(
    out: &mut Message,
    time_ns: u64,
    track: u64,
    (name, category): (Name, Category),
    args: impl FnOnce(&mut Args),
) {
    event(out, time_ns, event::BEGIN, track, |fields| {
        fields.uint(event::NAME, name.iid());
        fields.uint(event::CATEGORY, category.iid());
        args(&mut Args(fields));
    });
}

/// Ends the innermost slice of a track.
pub fn end(out: &mut Message, time_ns: u64, track: u64, args: impl FnOnce(&mut Args)) {
    event(out, time_ns, event::END, track, |fields| args(&mut Args(fields)));
}

/// Gives a counter a new value.
pub fn counter(out: &mut Message, time_ns: u64, track: u64, value: u64) {
    event(out, time_ns, event::COUNTER, track, |fields| fields.uint(event::COUNTER_VALUE, value));
}

#[cfg(test)]
#[path = "perfetto_tests.rs"]
mod tests;
