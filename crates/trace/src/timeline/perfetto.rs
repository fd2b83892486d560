//! Writes tracks and slices as packets of a Perfetto trace.
//!
//! Source: `TracePacket`, `TrackDescriptor`, `TrackEvent`, `DebugAnnotation` and `InternedData` in Perfetto's
//! `protos/perfetto/trace`. Names appear once in the file, in its first packet, and are referred to by number.
//! Events of the same instant are drawn on a track in the order of the file.

use super::encoder::Message;
use super::names::{ARGS, Arg, Category, Name, text};
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
    pub const NAME_TEXT: u32 = 23;
    pub const COUNTER_VALUE: u32 = 30;
    pub const FLOW: u32 = 47;
    /// Values of `Type`.
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

/// The sequence to which all packets belong.
const SEQUENCE: u64 = 1;

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
    /// Number of the track; not 0.
    pub uuid: u64,
    /// Number of the parent track; 0: none.
    pub parent: u64,
    /// Name of the track; siblings with the same name are drawn as one track.
    pub name: &'a str,
    /// The track's place among its siblings.
    pub rank: u64,
    /// Whether the track shows values instead of slices.
    pub counter: bool,
}

/// Writes the packet that all others rely on: every name to which slices refer, with those of a controller if there
/// is one.
pub fn names(out: &mut Message, controller: bool, rare: bool) {
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
            for category in Category::all(controller) {
                add(interned::CATEGORIES, category.iid(), category.text());
            }
            for name in Name::all(controller, rare) {
                add(interned::NAMES, name.iid(), &name.text());
            }
            for (arg, name) in ARGS {
                add(interned::ANNOTATION_NAMES, arg as u64, name);
            }
            for (iid, value) in text::all(rare) {
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

/// Begins a slice. The tenant for which it runs, unless empty, becomes part of its name, so that viewers, which colour
/// slices by name, give each tenant a colour.
pub fn begin(
    out: &mut Message,
    time_ns: u64,
    track: u64,
    (name, category, tenant): (Name, Category, &str),
    args: impl FnOnce(&mut Args),
) {
    event(out, time_ns, event::BEGIN, track, |fields| {
        match tenant {
            "" => fields.uint(event::NAME, name.iid()),
            _ => fields.text(event::NAME_TEXT, &format!("{} ({tenant})", name.text())),
        }
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
