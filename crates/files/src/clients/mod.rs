//! Clients above the file system: benchmarks and fio-like jobs.
//!
//! A client is asked for its next [`Step`] when the one before it is done: a closed loop. It refers to files by its
//! own numbers, which the host maps to inodes.

mod dbench;
pub mod fio;
mod keys;
mod postmark;
mod random_write;

pub use keys::{Kind, Parameters};

/// Number by which a client refers to one of its files.
pub type FileId = u32;

/// What a client asks of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOp {
    /// Makes an empty file in the client's directory, or truncates an existing one.
    Create(FileId),
    /// Looks up a name or a handle, opens a file or lists a directory; costs only the host's time.
    Lookup,
    /// Changes attributes of a file.
    SetAttributes(FileId),
    /// Closes a file.
    Close(FileId),
    /// Reads from a file.
    Read {
        /// The file.
        file: FileId,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        size: u64,
    },
    /// Writes to a file.
    Write {
        /// The file.
        file: FileId,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        size: u64,
    },
    /// Makes a file's data, and all its metadata, durable.
    Fsync(FileId),
    /// Makes a file's data, and the metadata needed to find it, durable.
    Fdatasync(FileId),
    /// Writes past the page cache, and is over when the data would survive a power cut (FUA).
    WriteThrough {
        /// The file.
        file: FileId,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        size: u64,
    },
    /// Tells the drive that these bytes of a file hold nothing any more.
    Trim {
        /// The file.
        file: FileId,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        size: u64,
    },
    /// Renames a file within its directory.
    Rename(FileId),
    /// Deletes a file.
    Unlink(FileId),
    /// Gives a file space without writing to it; done before the load, and takes no time.
    Allocate {
        /// The file, which is created.
        file: FileId,
        /// Number of bytes.
        size: u64,
    },
    /// Takes the first file of the client with this number for its own; done before the load, and takes no time.
    Share(u32),
    /// Drops a file's clean pages from the page cache; done before the load, and takes no time.
    Forget(FileId),
}

impl FileOp {
    /// Names of the kinds of operations in results, by [`FileOp::kind`].
    pub const KINDS: [&'static str; 10] =
        ["create", "lookup", "set_attributes", "close", "read", "write", "fsync", "rename", "unlink", "trim"];

    /// Returns the index of this operation in [`FileOp::KINDS`]; `None` for an operation that only prepares the load.
    pub fn kind(&self) -> Option<usize> {
        Some(match self {
            FileOp::Create(_) => 0,
            FileOp::Lookup => 1,
            FileOp::SetAttributes(_) => 2,
            FileOp::Close(_) => 3,
            FileOp::Read { .. } => 4,
            FileOp::Write { .. } | FileOp::WriteThrough { .. } => 5,
            FileOp::Fsync(_) | FileOp::Fdatasync(_) => 6,
            FileOp::Rename(_) => 7,
            FileOp::Unlink(_) => 8,
            FileOp::Trim { .. } => 9,
            FileOp::Allocate { .. } | FileOp::Share(_) | FileOp::Forget(_) => return None,
        })
    }

    /// Returns the number of bytes that the operation reads, and the number that it writes.
    pub fn bytes(&self) -> [u64; 2] {
        match *self {
            FileOp::Read { size, .. } => [size, 0],
            FileOp::Write { size, .. } | FileOp::WriteThrough { size, .. } => [0, size],
            _ => [0, 0],
        }
    }
}

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Performs an operation; the client is asked for its next step when the operation has ended.
    Do(FileOp),
    /// Starts a read or write that bypasses the page cache (a write only to space that the file already has). The
    /// client is asked for its next step immediately, so that it can have several of these operations in flight.
    Start(FileOp),
    /// Waits until one of the started operations has ended.
    Await,
    /// Waits until this time, ns.
    Until(u64),
    /// Waits until every client has reached this step.
    Gather,
    /// Begins a run: what follows is measured as one run.
    Begin,
    /// Ends the run.
    End,
    /// Ends the client: it has no more steps.
    Done,
}

/// What a client is told when it is asked for its next step.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The current time, ns.
    pub now_ns: u64,
    /// Number of operations of [`Step::Start`] that are still in flight.
    pub outstanding: u32,
}

/// One client.
#[derive(Clone, Debug)]
pub enum Client {
    /// PostMark.
    PostMark(postmark::PostMark),
    /// SysBench's and FileBench's random writes.
    RandomWrite(random_write::RandomWrite),
    /// DBench.
    DBench(Box<dbench::DBench>),
    /// A worker of a fio job.
    Fio(Box<fio::Worker>),
    /// A fixed list of steps, taken one after another.
    Script(std::vec::IntoIter<Step>),
}

impl Client {
    /// Returns the next step.
    pub fn next(&mut self, moment: Moment) -> Step {
        match self {
            Client::PostMark(client) => client.next(),
            Client::RandomWrite(client) => client.next(moment),
            Client::DBench(client) => client.next(moment),
            Client::Fio(client) => client.next(moment),
            Client::Script(steps) => steps.next().unwrap_or(Step::Done),
        }
    }
}

/// The clients of a run, and when the run is measured.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Name of the benchmark.
    pub name: &'static str,
    /// The clients, each with a directory of its own.
    pub clients: Vec<Client>,
    /// Beginning and end of the measurement, ns; `None`: the clients' steps [`Step::Begin`] and [`Step::End`] mark
    /// them.
    pub window_ns: Option<(u64, u64)>,
    /// The parameters that the result shows: names and values.
    pub parameters: Vec<(&'static str, String)>,
}

impl Clients {
    /// Makes one client for each list of steps, which performs that list.
    pub fn scripts(scripts: Vec<Vec<Step>>) -> Clients {
        let clients = scripts.into_iter().map(|steps| Client::Script(steps.into_iter())).collect();
        Clients { name: "script", clients, window_ns: None, parameters: Vec::new() }
    }
}
