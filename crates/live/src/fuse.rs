//! The device as a file: `disk`, together with `stats.json` and `health.json`.
//!
//! `disk` is opened for direct I/O, so that the kernel caches no page of it and every request comes here.

mod answer;

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenAccMode, OpenFlags, ReplyAttr,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, TimeOrNow,
    WriteFlags,
};
use rustix::fs::{FallocateFlags, OFlags};
use rustix::mount::UnmountFlags;

use crate::LiveError;
use crate::control::{Describe, described};
use crate::engine::{Asked, Sink};
use crate::nbd::{self, Command, Flags, Form};
use crate::shared::Shared;
use answer::{Answer, Pending, State};

/// How long the kernel may cache attributes, which never change.
const FOREVER: Duration = Duration::from_secs(3600);
/// Upper bound on the number of background requests (those that no process waits for) that the kernel sends at a time:
/// as many as a loop device keeps in flight.
const MOST_BACKGROUND: u16 = 128;
/// Bytes of each request into which a longer fallocate is split.
const PART_BYTES: u64 = 1 << 30;
/// How long the device waits for the unmount when it ends.
const UNMOUNT: Duration = Duration::from_secs(1);

/// The files in the directory; their inode numbers begin at 2.
const FILES: [&str; 3] = ["disk", "stats.json", "health.json"];
const DISK: u64 = 2;
const HEALTH: u64 = 4;

thread_local! {
    /// Whether the system's counts for the thread are read. A thread serves one file system.
    static COUNTED: Cell<bool> = const { Cell::new(false) };
}

/// The file system.
struct Files {
    shared: Arc<Shared>,
    describe: Arc<Describe>,
    /// The text of each open file other than `disk`, by handle, as it was when the file was opened.
    texts: Mutex<HashMap<u64, Arc<[u8]>>>,
    since: SystemTime,
}

impl Files {
    fn attributes(&self, inode: u64) -> FileAttr {
        let directory = inode == INodeNo::ROOT.0;
        let size = if inode == DISK { self.shared.export.size } else { 0 };
        FileAttr {
            ino: INodeNo(inode),
            // Files with text have length 0 and are read to their end, like the system's own in /proc.
            size,
            blocks: size.div_ceil(512),
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind: if directory { FileType::Directory } else { FileType::RegularFile },
            perm: match inode {
                _ if directory => 0o500,
                DISK if !self.shared.export.read_only => 0o600,
                _ => 0o400,
            },
            nlink: 1,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: self.shared.export.preferred,
            flags: 0,
        }
    }

    /// Passes a request of the kernel to the engine, in parts if it is long.
    fn ask(
        &self,
        (command, flags): (Command, u16),
        (offset, length): (u64, u64),
        data: &[u8],
        (process, answer): (u32, Answer),
    ) {
        COUNTED.with(|counted| {
            if !counted.replace(true) {
                self.shared.serving.join();
            }
        });
        let parts = length.div_ceil(PART_BYTES).max(1);
        let state = State { left: parts as usize, error: 0, reply: Vec::new(), answer: Some(answer) };
        let pending = Arc::new(Pending(Mutex::new(state)));
        let sink: Arc<dyn Sink> = pending.clone();
        let mut answered = Vec::new();
        self.shared.with_engine(&mut answered, |engine| {
            // A request that is dropped unanswered fails with EIO.
            if self.shared.stopping.load(Ordering::Relaxed) {
                return Ok(());
            }
            engine.catch_up()?;
            let program = engine.program(process);
            for part in 0..parts {
                let from = part * PART_BYTES;
                let request = nbd::Request {
                    command,
                    flags: Flags(flags),
                    cookie: 0,
                    offset: offset + from,
                    length: (length - from).min(PART_BYTES),
                };
                engine.ask(&Asked {
                    request,
                    data,
                    form: Form::Simple,
                    stream: 0,
                    program,
                    sink: &sink,
                    charged: 0,
                });
            }
            engine.go()
        });
        answered.iter().for_each(|other| other.kick());
        // Refused requests do not go through the simulation, so `pending` may not be in `answered`.
        pending.kick();
    }

    /// Returns the text of a file other than `disk`.
    fn text(&self, inode: u64) -> Arc<[u8]> {
        let mut value = described(&self.shared, &*self.describe);
        if inode == HEALTH {
            value = value["health"].take();
        }
        format!("{value:#}\n").into_bytes().into()
    }

    fn texts(&self) -> MutexGuard<'_, HashMap<u64, Arc<[u8]>>> {
        self.texts.lock().expect("no panic while texts are listed")
    }
}

/// Returns the inode number of a name in the directory.
fn inode(parent: INodeNo, name: &OsStr) -> Option<u64> {
    let place = FILES.iter().position(|file| name == *file).filter(|_| parent == INodeNo::ROOT)?;
    Some(DISK + place as u64)
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without these two settings the device works, but more slowly.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_background(MOST_BACKGROUND);
        Ok(())
    }

    /// Stops the device, because the directory was unmounted.
    fn destroy(&mut self) {
        self.shared.asked_to_stop.store(true, Ordering::Relaxed);
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match inode(parent, name) {
            Some(inode) => reply.entry(&FOREVER, &self.attributes(inode), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(inode.0));
    }

    /// Accepts new attributes: times may be set but are not stored; everything else stays as it is.
    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let attributes = self.attributes(inode.0);
        let changes = mode.is_some() || uid.is_some() || gid.is_some();
        if changes || size.is_some_and(|size| size != attributes.size) {
            return reply.error(Errno::EPERM);
        }
        reply.attr(&FOREVER, &attributes);
    }

    fn open(&self, _: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        let writes = flags.acc_mode() != OpenAccMode::O_RDONLY;
        if inode.0 == DISK {
            return match writes && self.shared.export.read_only {
                true => reply.error(Errno::EROFS),
                false => reply.opened(FileHandle(0), direct),
            };
        }
        if writes {
            return reply.error(Errno::EACCES);
        }
        let (text, mut texts) = (self.text(inode.0), self.texts());
        let handle = (1..).find(|handle| !texts.contains_key(handle)).expect("one is free");
        texts.insert(handle, text);
        reply.opened(FileHandle(handle), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.texts().remove(&handle.0);
        reply.ok();
    }

    fn read(
        &self,
        from: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if inode.0 == DISK {
            let length = u64::from(size).min(self.shared.export.size.saturating_sub(offset));
            return self.ask((Command::Read, 0), (offset, length), &[], (from.pid(), Answer::Data(reply)));
        }
        let text = self.texts().get(&handle.0).cloned().unwrap_or_default();
        let first = text.len().min(offset as usize);
        reply.data(&text[first..text.len().min(first + size as usize)]);
    }

    fn write(
        &self,
        from: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // O_SYNC includes the bit of O_DSYNC.
        let durable = flags.0 as u32 & OFlags::DSYNC.bits() != 0;
        let answer = Answer::Written(reply, data.len() as u32);
        self.ask(
            (Command::Write, u16::from(durable)),
            (offset, data.len() as u64),
            data,
            (from.pid(), answer),
        );
    }

    fn fsync(&self, from: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match inode.0 {
            DISK => self.ask((Command::Flush, 0), (0, 0), &[], (from.pid(), Answer::Done(reply))),
            _ => reply.ok(),
        }
    }

    fn fallocate(
        &self,
        from: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        const NO_HOLE: u16 = 2;
        let flags = match FallocateFlags::from_bits_retain(mode as u32) - FallocateFlags::KEEP_SIZE {
            FallocateFlags::PUNCH_HOLE => 0,
            FallocateFlags::ZERO_RANGE => NO_HOLE,
            // The whole device exists already, so there is nothing to allocate.
            flags if flags.is_empty() && offset.saturating_add(length) <= self.shared.export.size => {
                return reply.ok();
            }
            flags if flags.is_empty() => return reply.error(Errno::ENOSPC),
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        // A hole may extend beyond the end of the device.
        let length = length.min(self.shared.export.size.saturating_sub(offset));
        self.ask((Command::WriteZeroes, flags), (offset, length), &[], (from.pid(), Answer::Done(reply)));
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let own = [(INodeNo::ROOT.0, "."), (INodeNo::ROOT.0, "..")];
        let files = FILES.iter().zip(DISK..).map(|(name, inode)| (inode, *name));
        for (next, (inode, name)) in (1..).zip(own.into_iter().chain(files)).skip(offset as usize) {
            if reply.add(INodeNo(inode), next, self.attributes(inode).kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

/// A mounted directory.
pub struct Mounted {
    directory: PathBuf,
    session: BackgroundSession,
}

impl Mounted {
    /// Mounts the device at a directory.
    ///
    /// # Errors
    /// [`LiveError::User`] if the directory cannot be used, or the system refuses to mount the device.
    pub fn mount(
        directory: &Path,
        shared: Arc<Shared>,
        describe: Arc<Describe>,
    ) -> Result<Mounted, LiveError> {
        let fail = |why: String| LiveError::User(format!("--fuse {}: {why}", directory.display()));
        match std::fs::metadata(directory) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(fail("it is not a directory".into())),
            Err(error) => return Err(fail(error.to_string())),
        }
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("ftlab".into()), MountOption::Subtype("ftlab".into())];
        config.mount_options.extend(shared.export.read_only.then_some(MountOption::RO));
        let files = Files { shared, describe, texts: Mutex::default(), since: SystemTime::now() };
        let mount = || Session::new(files, directory, &config)?.spawn();
        let session =
            mount().map_err(|error| fail(format!("cannot mount (is there /dev/fuse?): {error}")))?;
        Ok(Mounted { directory: directory.canonicalize().unwrap_or(directory.into()), session })
    }

    /// Unmounts the directory. A process that has `disk` open can keep it open.
    pub fn unmount(self) {
        let (done, waits) = mpsc::channel();
        std::thread::spawn(move || {
            let Mounted { directory, session } = self;
            if session.umount_and_join().is_err() {
                // The directory is in use, for example by a loop device.
                let _ = rustix::mount::unmount(&directory, UnmountFlags::DETACH);
            }
            let _ = done.send(());
        });
        let _ = waits.recv_timeout(UNMOUNT);
    }
}
