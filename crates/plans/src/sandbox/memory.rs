//! A cache of what was read: a file isn't read again while its stat data is unchanged.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::SystemTime;

use eventlog::BlobId;

use crate::{Entry, FileKind, FileStat, RelPath};

/// How old a file's last change must be when it is read, to be trusted later. File system clocks tick every ten
/// milliseconds at the slowest; a write within the same tick would leave no trace.
const FRESH_NS: i128 = 20_000_000;
/// The first bytes of a saved memory. Another layout gets another number.
const MAGIC: &[u8; 8] = b"tlmem\0\0\x01";
/// The size of what follows each path in the file: device, inode, size, two times, mode, hash.
const RECORD_BYTES: usize = 8 + 8 + 8 + 16 + 16 + 4 + 32;

/// Files by path, with their stat data when they were read.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    files: HashMap<RelPath, (FileStat, Entry)>,
}

/// A moment, on the clock that file systems use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment(i128);

impl Moment {
    /// The current moment. It is compared with times that the kernel wrote into files, so it must be the kernel's own
    /// clock.
    pub(super) fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self(since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)))
    }

    /// Whether a file with this stat data, read now or later, can be told apart from one that is written after this
    /// moment.
    pub(super) fn is_after(self, stat: &FileStat) -> bool {
        stat.changed_ns.saturating_add(FRESH_NS) < self.0
    }
}

impl Memory {
    /// The content of a file, if its stat data hasn't changed since it was read.
    pub(super) fn recall(&self, path: &RelPath, stat: &FileStat) -> Option<&Entry> {
        let (known, entry) = self.files.get(path)?;
        is_same(known, stat).then_some(entry)
    }

    /// Records a file that was read after this moment, with this stat data before and after.
    pub(super) fn learn(&mut self, path: &RelPath, stat: FileStat, entry: &Entry, moment: Moment) {
        if moment.is_after(&stat) {
            self.files.insert(path.clone(), (stat, entry.clone()));
        } else {
            self.files.remove(path);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.files.extend(other.files);
    }

    pub(super) fn forget(&mut self, path: &RelPath) {
        self.files.remove(path);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(MAGIC)?;
        for (path, (stat, entry)) in &self.files {
            let Entry::File { hash, .. } = entry else { continue };
            let length = u16::try_from(path.as_bytes().len()).map_err(io::Error::other)?;
            file.write_all(&length.to_le_bytes())?;
            file.write_all(path.as_bytes())?;
            for number in [stat.device, stat.inode, stat.size] {
                file.write_all(&number.to_le_bytes())?;
            }
            for time in [stat.modified_ns, stat.changed_ns] {
                file.write_all(&time.to_le_bytes())?;
            }
            file.write_all(&stat.mode.to_le_bytes())?;
            file.write_all(hash.as_bytes())?;
        }
        file.flush()
    }

    /// Loads what [`save`](Self::save) wrote. A damaged or missing file loads as empty, which only costs time.
    pub(super) fn load(path: &Path) -> Self {
        let read = || -> io::Result<Self> {
            let mut file = BufReader::new(File::open(path)?);
            let mut magic = [0; MAGIC.len()];
            file.read_exact(&mut magic)?;
            if magic != *MAGIC {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut memory = Self::default();
            while let Some((path, stat, entry)) = read_record(&mut file)? {
                memory.files.insert(path, (stat, entry));
            }
            Ok(memory)
        };
        read().unwrap_or_default()
    }
}

fn read_record(file: &mut impl Read) -> io::Result<Option<(RelPath, FileStat, Entry)>> {
    let mut length = [0; 2];
    match file.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut path = vec![0; usize::from(u16::from_le_bytes(length))];
    file.read_exact(&mut path)?;
    let path = RelPath::from_bytes(&path).map_err(|bad| io::Error::new(io::ErrorKind::InvalidData, bad))?;
    let mut record = [0; RECORD_BYTES];
    file.read_exact(&mut record)?;
    let mut rest = record.as_slice();
    let (device, inode, size) = (
        u64::from_le_bytes(next(&mut rest)?),
        u64::from_le_bytes(next(&mut rest)?),
        u64::from_le_bytes(next(&mut rest)?),
    );
    let (modified_ns, changed_ns) = (
        i128::from_le_bytes(next(&mut rest)?),
        i128::from_le_bytes(next(&mut rest)?),
    );
    let mode = u32::from_le_bytes(next(&mut rest)?);
    let hash = BlobId::from_bytes(next(&mut rest)?);
    let stat = FileStat {
        kind: FileKind::File,
        size,
        mode,
        modified_ns,
        changed_ns,
        device,
        inode,
        links: 1,
    };
    Ok(Some((path, stat, Entry::File { hash, size, mode })))
}

/// The next bytes of a record.
fn next<const N: usize>(rest: &mut &[u8]) -> io::Result<[u8; N]> {
    let (first, after) = rest.split_first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
    *rest = after;
    Ok(*first)
}

/// Whether a file wasn't touched between two stats. Its number of names isn't part of its content.
fn is_same(one: &FileStat, other: &FileStat) -> bool {
    FileStat { links: 0, ..*one } == FileStat { links: 0, ..*other }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        text.parse().unwrap()
    }

    #[test]
    fn only_what_is_old_enough_and_untouched_is_recalled() {
        let stat = FileStat {
            kind: FileKind::File,
            size: 3,
            mode: 0o644,
            modified_ns: 5,
            changed_ns: 1_000_000_000,
            device: 1,
            inode: 2,
            links: 1,
        };
        let entry = Entry::File {
            hash: BlobId::from_bytes([7; 32]),
            size: 3,
            mode: 0o644,
        };
        let later = |ns| Moment(stat.changed_ns + ns);
        let mut memory = Memory::default();
        memory.learn(&path("fresh"), stat, &entry, later(FRESH_NS));
        memory.learn(&path("old"), stat, &entry, later(FRESH_NS + 1));
        assert_eq!(memory.len(), 1);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("memory");
        memory.save(&file).unwrap();
        for memory in [memory, Memory::load(&file)] {
            assert_eq!(memory.recall(&path("fresh"), &stat), None);
            assert_eq!(memory.recall(&path("old"), &stat), Some(&entry));
            for touched in [
                FileStat { size: 4, ..stat },
                FileStat { mode: 0o600, ..stat },
                FileStat {
                    modified_ns: 6,
                    ..stat
                },
                FileStat {
                    changed_ns: 6,
                    ..stat
                },
                FileStat { inode: 6, ..stat },
                FileStat { device: 6, ..stat },
            ] {
                assert_eq!(memory.recall(&path("old"), &touched), None);
            }
            assert_eq!(
                memory.recall(&path("old"), &FileStat { links: 2, ..stat }),
                Some(&entry)
            );
        }
        std::fs::write(&file, b"tlmem\0\0\x01\x09\0short").unwrap();
        assert_eq!(Memory::load(&file).len(), 0);
    }
}
