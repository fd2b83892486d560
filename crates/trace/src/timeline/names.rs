//! Names, categories and arguments of a timeline's slices.

use ftlab_core::flash::{Cause, Operation};
use ftlab_core::workload::Op;

/// Names of slices, except those of flash operations.
#[derive(Clone, Copy, Debug)]
pub enum Name {
    /// A request, by its operation.
    Request(Op),
    /// The time before dispatch to the device.
    Wait,
    /// The time in the device.
    Access,
    /// A transfer of data to the chip, or over the link to the device.
    DataIn,
    /// A transfer of data from the chip, or over the link to the host.
    DataOut,
    /// The transfer of a command over the link.
    Command,
    /// The work of a core on a command.
    Work,
    /// The transfer of an answer over the link.
    Answer,
    /// The work of cells: the operation and its cause.
    Cells(Operation, Cause),
}

impl Name {
    const OPS: u64 = Op::ALL.len() as u64;
    const CELLS: u64 = Name::OPS + 5;
    const CONTROLLER: u64 = Name::CELLS + (Operation::ALL.len() * Cause::COMMON) as u64;
    const RARE: u64 = Name::CONTROLLER + 3;

    /// Returns the number of the name, which is not 0: 0 stands for no name.
    pub fn iid(self) -> u64 {
        match self {
            Name::Request(op) => 1 + op as u64,
            Name::Wait => Name::OPS + 1,
            Name::Access => Name::OPS + 2,
            Name::DataIn => Name::OPS + 3,
            Name::DataOut => Name::OPS + 4,
            Name::Command => Name::CONTROLLER,
            Name::Work => Name::CONTROLLER + 1,
            Name::Answer => Name::CONTROLLER + 2,
            Name::Cells(operation, cause) if cause.is_rare() => {
                let rare = (Cause::ALL.len() - Cause::COMMON) as u64;
                Name::RARE + operation as u64 * rare + (cause as usize - Cause::COMMON) as u64
            }
            Name::Cells(operation, cause) => {
                Name::CELLS + operation as u64 * Cause::COMMON as u64 + cause as u64
            }
        }
    }

    /// Returns the name.
    pub fn text(self) -> String {
        match self {
            Name::Request(op) => op.name().to_owned(),
            Name::Wait => "wait".to_owned(),
            Name::Access => "access".to_owned(),
            Name::DataIn => "data in".to_owned(),
            Name::DataOut => "data out".to_owned(),
            Name::Command => "command".to_owned(),
            Name::Work => "work".to_owned(),
            Name::Answer => "answer".to_owned(),
            Name::Cells(operation, cause) => format!("{} {}", operation.name(), cause.name()),
        }
    }

    /// Returns all names in the order of their numbers, with those of a `controller`, if there is one, and those with
    /// rare causes, if there may be any.
    pub fn all(controller: bool, rare: bool) -> impl Iterator<Item = Name> {
        let of = |rare| {
            let causes = move || Cause::ALL.into_iter().filter(move |cause| cause.is_rare() == rare);
            Operation::ALL.into_iter().flat_map(move |op| causes().map(move |c| Name::Cells(op, c)))
        };
        Op::ALL
            .into_iter()
            .map(Name::Request)
            .chain([Name::Wait, Name::Access, Name::DataIn, Name::DataOut])
            .chain(of(false))
            .chain([Name::Command, Name::Work, Name::Answer].into_iter().filter(move |_| controller))
            .chain(of(true).filter(move |_| rare))
    }
}

/// The category of a slice, for searching.
#[derive(Clone, Copy, Debug)]
pub enum Category {
    /// A request or a part of it.
    Request,
    /// A transfer of data on a bus.
    Bus,
    /// Work of cells, by operation.
    Cells(Operation),
    /// A transfer over the link.
    Link,
    /// Work of a core of the controller.
    Core,
}

impl Category {
    const ALL: [Category; 7] = [
        Category::Request,
        Category::Bus,
        Category::Cells(Operation::Read),
        Category::Cells(Operation::Program),
        Category::Cells(Operation::Erase),
        Category::Link,
        Category::Core,
    ];

    /// Returns all categories in the order of their numbers, with those of a `controller` last, if there is one.
    pub fn all(controller: bool) -> impl Iterator<Item = Category> {
        let all = Category::ALL.into_iter();
        all.filter(move |one| controller || !matches!(one, Category::Link | Category::Core))
    }

    pub fn iid(self) -> u64 {
        match self {
            Category::Request => 1,
            Category::Bus => 2,
            Category::Cells(operation) => 3 + operation as u64,
            Category::Link => 3 + Operation::ALL.len() as u64,
            Category::Core => 4 + Operation::ALL.len() as u64,
        }
    }

    /// Returns the category's name.
    pub fn text(self) -> &'static str {
        match self {
            Category::Request => "request",
            Category::Bus => "bus",
            Category::Cells(operation) => operation.name(),
            Category::Link => "link",
            Category::Core => "core",
        }
    }
}

/// Arguments of a slice.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub enum Arg {
    /// Number of the request, from 1 in trace order.
    Request = 1,
    /// Offset of the first byte.
    Offset,
    /// Number of bytes.
    Size,
    /// Number of the logical page, or of the first one.
    Lpn,
    /// Number of logical pages.
    Pages,
    /// Number of the chip.
    Chip,
    /// Whole length of a slice that the window cuts off, ns.
    WholeNs,
    /// Arrival at the host, ns.
    ArrivalNs,
    /// Time from arrival to dispatch, ns.
    WaitNs,
    /// Time from arrival to completion, ns.
    LatencyNs,
    /// Number of mapping-cache misses.
    MappingMisses,
    /// Number of the batch, from 1.
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

/// Every argument, with its name.
pub const ARGS: [(Arg, &str); 16] = [
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
pub mod text {
    use super::{Cause, Op, Operation};

    pub fn op(op: Op) -> u64 {
        1 + op as u64
    }

    pub fn cause(cause: Cause) -> u64 {
        let before = if cause.is_rare() { Operation::ALL.len() } else { 0 };
        (1 + Op::ALL.len() + before) as u64 + cause as u64
    }

    pub fn operation(operation: Operation) -> u64 {
        1 + (Op::ALL.len() + Cause::COMMON) as u64 + operation as u64
    }

    /// Returns all strings in the order of their indices, with rare causes last, if there may be any.
    pub fn all(rare: bool) -> impl Iterator<Item = (u64, &'static str)> {
        let causes = |rare| Cause::ALL.into_iter().filter(move |one| one.is_rare() == rare);
        Op::ALL
            .map(|one| (op(one), one.name()))
            .into_iter()
            .chain(causes(false).map(|one| (cause(one), one.name())))
            .chain(Operation::ALL.map(|one| (operation(one), one.name())))
            .chain(causes(true).filter(move |_| rare).map(|one| (cause(one), one.name())))
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
