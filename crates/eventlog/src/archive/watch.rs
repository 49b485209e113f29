//! Reads the end line of an archive as the bytes pass by.

use std::io::{self, Write};

use super::format::{LINE_LIMIT_BYTES, Line};

/// Receives the bytes of an archive, and knows at its end what was left out of it.
pub struct ArchiveWatch {
    decoder: zstd::stream::write::Decoder<'static, LastLine>,
}

impl ArchiveWatch {
    /// Watches an archive from its first byte on.
    ///
    /// # Errors
    /// The decoder can't be allocated.
    pub fn new() -> io::Result<Self> {
        let decoder = zstd::stream::write::Decoder::new(LastLine::default())?;
        Ok(Self { decoder })
    }

    /// What was left out; empty if the archive has no end line.
    pub fn left_out(mut self) -> io::Result<Vec<String>> {
        self.decoder.flush()?;
        let last = &self.decoder.get_ref().last;
        match serde_json::from_slice(last) {
            Ok(Line::End(end)) => Ok(end.left_out),
            _ => Ok(Vec::new()),
        }
    }
}

impl Write for ArchiveWatch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.decoder.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.decoder.flush()
    }
}

/// The last complete line.
#[derive(Default)]
struct LastLine {
    last: Vec<u8>,
    current: Vec<u8>,
}

impl Write for LastLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.current.len() + piece.len() <= LINE_LIMIT_BYTES {
                self.current.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                std::mem::swap(&mut self.last, &mut self.current);
                self.current.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for ArchiveWatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ArchiveWatch").finish_non_exhaustive()
    }
}
