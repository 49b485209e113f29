//! Files with holes: reading and writing them costs only as much as their data.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use eventlog::{hole_end, is_zero};

pub trait ContentSink: Write {
    /// This many zeros, which don't have to be written.
    fn hole(&mut self, bytes: u64) -> io::Result<()>;
}

impl ContentSink for Vec<u8> {
    fn hole(&mut self, bytes: u64) -> io::Result<()> {
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.resize(self.len() + bytes, 0);
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum FilePiece<'a> {
    Data(&'a [u8]),
    Hole(u64),
}

impl FilePiece<'_> {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Data(data) => data.len() as u64,
            Self::Hole(bytes) => *bytes,
        }
    }
}

/// Reads the next piece of a file from an offset, which is where its cursor is. `None` at the end.
pub(crate) fn next_piece<'a>(
    file: &mut &File,
    at: u64,
    buffer: &'a mut [u8],
) -> io::Result<Option<FilePiece<'a>>> {
    let read = loop {
        match file.read(buffer) {
            Ok(read) => break read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    let (data, next) = (&buffer[..read], at + read as u64);
    if read == 0 {
        return Ok(None);
    }
    // A caller that reads little at a time would check at every step.
    if read < HOLE_FROM_BYTES || !is_zero(data) {
        return Ok(Some(FilePiece::Data(data)));
    }
    let end = hole_end(file, next)?.max(next);
    file.seek(SeekFrom::Start(end))?;
    Ok(Some(FilePiece::Hole(end - at)))
}

/// A run of zeros counts as a hole from this size on.
const HOLE_FROM_BYTES: usize = 64 * 1024;

pub(crate) fn copy_all(mut from: &File, to: &mut dyn ContentSink) -> io::Result<()> {
    let mut buffer = vec![0; 2 * HOLE_FROM_BYTES];
    let mut at = 0;
    while let Some(piece) = next_piece(&mut from, at, &mut buffer)? {
        match piece {
            FilePiece::Data(data) => to.write_all(data)?,
            FilePiece::Hole(bytes) => to.hole(bytes)?,
        }
        at += piece.len();
    }
    Ok(())
}

/// A new file that gets holes where requested.
#[derive(Debug)]
pub(crate) struct SparseFile<'a> {
    file: &'a File,
    ends_with_hole: bool,
}

impl<'a> SparseFile<'a> {
    pub(crate) fn new(file: &'a File) -> Self {
        Self {
            file,
            ends_with_hole: false,
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.ends_with_hole {
            let size = self.file.stream_position()?;
            self.file.set_len(size)?;
        }
        Ok(())
    }
}

impl Write for SparseFile<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.file.write(buffer)?;
        self.ends_with_hole &= written == 0;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl ContentSink for SparseFile<'_> {
    fn hole(&mut self, bytes: u64) -> io::Result<()> {
        let bytes = i64::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.file.seek(SeekFrom::Current(bytes))?;
        self.ends_with_hole = true;
        Ok(())
    }
}
