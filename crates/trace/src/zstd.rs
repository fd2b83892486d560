//! A zstd file as a stream: frames one after another, skippable ones passed over.
//!
//! ruzstd's own reader stops after one frame and leaves the checksum to the caller.

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{BufRead, Error, ErrorKind, Read, Result};

/// Decodes all frames of `input`.
pub(crate) struct Frames<R: BufRead> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Frames<R> {
    /// Starts at the first frame of `input`.
    pub(crate) fn new(input: R) -> Frames<R> {
        Frames { input, decoder: FrameDecoder::new(), in_frame: false }
    }

    fn start_frame(&mut self) -> Result<()> {
        match self.decoder.reset(&mut self.input) {
            Ok(()) => self.in_frame = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let length = u64::from(length);
                let skipped = std::io::copy(&mut (&mut self.input).take(length), &mut std::io::sink())?;
                if skipped < length {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
            }
            Err(error) => return Err(Error::other(error)),
        }
        Ok(())
    }

    fn end_frame(&mut self) -> Result<()> {
        self.in_frame = false;
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            return Err(Error::new(ErrorKind::InvalidData, "checksum mismatch"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame {
                if self.input.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                self.start_frame()?;
            } else if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            } else if self.decoder.is_finished() {
                self.end_frame()?;
            } else {
                self.decoder
                    .decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(Error::other)?;
            }
        }
    }
}
