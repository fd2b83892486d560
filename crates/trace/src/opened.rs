//! Files as they are opened, with or without compression, and errors about them.

use ftlab_core::workload::SourceError;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Opens a file; returns how it is compressed, and its bytes without that.
///
/// # Errors
/// The file's error, also if it is empty.
pub(crate) fn decompressed(path: &Path) -> io::Result<(Option<&'static str>, Box<dyn Read + Send>)> {
    let mut file = File::open(path)?;
    let mut magic = [0; 10];
    let length = read_full(&mut file, &mut magic, &|_| true)?;
    if length == 0 {
        return Err(io::Error::other("the file is empty"));
    }
    let whole = BufReader::with_capacity(64 << 10, io::Cursor::new(magic).take(length as u64).chain(file));
    Ok(decompress(&magic[..length], whole))
}

fn decompress(
    magic: &[u8],
    input: impl BufRead + Send + 'static,
) -> (Option<&'static str>, Box<dyn Read + Send>) {
    /// Memory limit of the xz decoder, which is enough for every preset of xz (`-9` needs 65 MiB).
    const XZ_LIMIT_KIB: u32 = 1 << 20;
    match magic {
        [0x1f, 0x8b, ..] => (Some("gzip"), Box::new(flate2::bufread::MultiGzDecoder::new(input))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            let decoder = zstd::Decoder::with_buffer(input).expect("there is memory for a decoder");
            (Some("zstd"), Box::new(decoder))
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            (Some("xz"), Box::new(lzma_rust2::XzReader::new_mem_limit(input, true, XZ_LIMIT_KIB)))
        }
        // "BZh", the level, and the magic of the first block or of the end.
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, ..] => {
            (Some("bzip2"), Box::new(bzip2::bufread::MultiBzDecoder::new(input)))
        }
        _ => (None, Box::new(input)),
    }
}

/// Reads until the buffer is full, the file ends or, after a signal, `go_on` returns false.
pub(crate) fn read_full(
    input: &mut (impl Read + ?Sized),
    mut buffer: &mut [u8],
    go_on: &dyn Fn(bool) -> bool,
) -> io::Result<usize> {
    let mut total = 0;
    while !buffer.is_empty() {
        match input.read(buffer) {
            Ok(0) => break,
            Ok(read) => {
                total += read;
                buffer = &mut buffer[read..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted && go_on(true) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

/// Returns the system's message, without the number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = match text.find(" (os error ") {
        Some(at) => &text[..at],
        None => &text,
    };
    text.lines().next().unwrap_or("unknown").to_owned()
}

/// Makes an error about a file.
pub(crate) fn input_error(place: &str, message: &str) -> SourceError {
    SourceError::Input(format!("{place}: {message}"))
}
