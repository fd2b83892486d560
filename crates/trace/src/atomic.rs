//! Output files that appear by rename: when they are complete, or before more is written to them.

pub use crate::lines::reason;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Permissions of a new file, before the user's mask.
pub const NEW: u32 = 0o666;
/// Bytes that are buffered.
const BUFFER: usize = 64 << 10;

/// Files being written next to their targets; a process that is killed leaves them behind.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forget(finished: &Path) {
    unfinished().retain(|file| file != finished);
}

/// Removes all files that are still being written, for a process that ends right afterwards without
/// unwinding, for example on a signal. No such file can be finished any more.
pub fn discard_unfinished() {
    unfinished().drain(..).for_each(|file| drop(std::fs::remove_file(file)));
}

/// An output that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot write: {}", path.display(), reason(source))]
pub struct OutputError {
    path: PathBuf,
    source: io::Error,
}

impl OutputError {
    /// Makes the error for the target `path`.
    pub fn new(path: &Path, source: io::Error) -> OutputError {
        OutputError { path: path.to_owned(), source }
    }

    /// Returns the system's error.
    pub fn io_error(&self) -> &io::Error {
        &self.source
    }
}

/// A buffered output file. Data is written to a file next to the target, which replaces the target in
/// [`OutputFile::finish`] and is removed if that is never called. A target that exists and is not a regular file
/// (`/dev/full`, a pipe) is written in place.
#[derive(Debug)]
pub struct OutputFile {
    /// The target's path, as the user gave it.
    path: PathBuf,
    /// The file next to the target, and the target with links resolved.
    rename: Option<(PathBuf, PathBuf)>,
    file: BufWriter<File>,
}

impl OutputFile {
    /// Starts an output to `path`.
    ///
    /// # Errors
    /// If the target is a directory or may not be written, or a file cannot be created in its folder.
    pub fn create(path: &Path) -> Result<OutputFile, OutputError> {
        let fail = |error| OutputError::new(path, error);
        let (file, rename) = match path.metadata() {
            Ok(meta) if meta.is_file() => {
                // A read-only target is refused rather than replaced; a link keeps pointing to its target.
                OpenOptions::new().write(true).open(path).map_err(fail)?;
                let target = path.canonicalize().map_err(fail)?;
                let (file, beside) = create_beside(&target, NEW).map_err(fail)?;
                let kept = file.set_permissions(meta.permissions());
                if let Err(error) = kept {
                    let _ = std::fs::remove_file(&beside);
                    forget(&beside);
                    return Err(fail(error));
                }
                (file, Some((beside, target)))
            }
            Ok(meta) if meta.is_dir() => return Err(fail(io::ErrorKind::IsADirectory.into())),
            Ok(_) => (OpenOptions::new().write(true).open(path).map_err(fail)?, None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // If a link points to nothing yet, its target is created.
                let target = match path.read_link() {
                    Ok(link) => path.parent().unwrap_or(Path::new("")).join(link),
                    Err(_) => path.to_owned(),
                };
                let (file, beside) = create_beside(&target, NEW).map_err(fail)?;
                (file, Some((beside, target)))
            }
            Err(error) => return Err(fail(error)),
        };
        Ok(OutputFile { path: path.to_owned(), rename, file: BufWriter::with_capacity(BUFFER, file) })
    }

    /// Starts an output whose name ftlab makes of another, with the permissions `mode`. Whatever has that name is
    /// replaced: a link too, since its target is nothing that the user has named.
    ///
    /// # Errors
    /// If a file cannot be created in its folder.
    pub fn replace(path: &Path, mode: u32) -> Result<OutputFile, OutputError> {
        let (file, beside) = create_beside(path, mode).map_err(|error| OutputError::new(path, error))?;
        let rename = Some((beside, path.to_owned()));
        Ok(OutputFile { path: path.to_owned(), rename, file: BufWriter::with_capacity(BUFFER, file) })
    }

    /// Writes `bytes` as the rest of the file, and finishes it.
    ///
    /// # Errors
    /// If writing or moving fails; the target is then as it was.
    pub fn complete_with(mut self, bytes: &[u8]) -> Result<(), OutputError> {
        self.write_all(bytes).map_err(|error| OutputError::new(&self.path, error))?;
        self.finish()
    }

    /// Writes what is buffered, and moves the file to its place.
    ///
    /// # Errors
    /// If writing or moving fails; the target is then as it was.
    pub fn finish(mut self) -> Result<(), OutputError> {
        self.complete().map_err(|error| OutputError::new(&self.path, error))
    }

    /// Moves the file to its place with what is written so far, and returns it, to be written further.
    ///
    /// # Errors
    /// If writing or moving fails; the target is then as it was.
    pub fn place(mut self) -> Result<File, OutputError> {
        let placed = self.complete().and_then(|()| self.file.get_ref().try_clone());
        placed.map_err(|error| OutputError::new(&self.path, error))
    }

    fn complete(&mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some((beside, target)) = &self.rename {
            // Errors of delayed allocation show now, and not after the rename.
            self.file.get_ref().sync_all()?;
            std::fs::rename(beside, target)?;
            forget(beside);
            self.rename = None;
        }
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some((beside, _)) = &self.rename {
            // Nothing can be done about a failure here; the target is untouched either way.
            let _ = std::fs::remove_file(beside);
            forget(beside);
        }
    }
}

/// Writes `bytes` as the whole content of `path`.
///
/// # Errors
/// Those of [`OutputFile::create`] and [`OutputFile::finish`].
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    OutputFile::create(path)?.complete_with(bytes)
}

fn create_beside(target: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    loop {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}-{serial}.part", std::process::id()));
        let beside = target.with_file_name(beside);
        unfinished().push(beside.clone());
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside) {
            Ok(file) => return Ok((file, beside)),
            Err(error) => {
                forget(&beside);
                if error.kind() != io::ErrorKind::AlreadyExists {
                    return Err(error);
                }
            }
        }
    }
}
