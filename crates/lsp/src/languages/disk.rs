//! Texts on disk, and whether they have changed since.

use std::{
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Open without waiting for a writer, so that a pipe named like a source file can't block us.
const NON_BLOCKING: i32 = 0o4000;

/// A file that cannot be read as a text.
#[derive(Debug, thiserror::Error)]
pub enum ReadTextError {
    #[error("`{}` cannot be read: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` is not a file", path.display())]
    NotAFile {
        /// The path that isn't a regular file.
        path: PathBuf,
    },
    #[error("`{}` is not UTF-8", path.display())]
    NotUtf8 { path: PathBuf },
    #[error("`{}` has {bytes} bytes; the limit is {limit}", path.display())]
    TooLarge { path: PathBuf, bytes: u64, limit: u64 },
}

/// A file that changed this shortly before it was read may change again without a new timestamp: file system clocks
/// move in steps of up to ten milliseconds.
const TICK: Duration = Duration::from_millis(20);

/// Tells two states of a file apart without reading it, and whether the comparison can be trusted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stamp {
    look: Look,
    trust: Trust,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Trust {
    Settled,
    /// It may have changed since without a new timestamp.
    Racing,
}

/// The metadata of a file. The time of the last status change can't be set back, unlike the modification time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Look {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Look {
    fn new(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Stamp {
    fn new(metadata: &Metadata, now: SystemTime) -> Self {
        let look = Look::new(metadata);
        let seconds = u64::try_from(look.changed.0).unwrap_or_default();
        let nanoseconds = u32::try_from(look.changed.1).unwrap_or_default();
        let changed = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        // A time in the future proves nothing.
        let trust = match now.duration_since(changed) {
            Ok(age) if age > TICK => Trust::Settled,
            _ => Trust::Racing,
        };
        Self { look, trust }
    }

    pub(crate) fn is_still(&self, path: &Path) -> bool {
        self.trust == Trust::Settled
            && std::fs::metadata(path).is_ok_and(|metadata| Look::new(&metadata) == self.look)
    }
}

/// Reads a text and the stamp it had before the read, so that a change during the read makes the stamps differ. Blocks.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<(Arc<str>, Stamp), ReadTextError> {
    let failed = |source| ReadTextError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::options()
        .read(true)
        .custom_flags(NON_BLOCKING)
        .open(path)
        .map_err(failed)?;
    let now = SystemTime::now();
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(ReadTextError::NotAFile {
            path: path.to_owned(),
        });
    }
    let too_large = |bytes| ReadTextError::TooLarge {
        path: path.to_owned(),
        bytes,
        limit,
    };
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    let text = String::from_utf8(bytes).map_err(|_| ReadTextError::NotUtf8 {
        path: path.to_owned(),
    })?;
    Ok((text.into(), Stamp::new(&metadata, now)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_small_texts_in_files_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("text"), "grün").unwrap();
        fs::write(path("binary"), [0xff, 0xfe]).unwrap();
        fs::write(path("large"), "12345678").unwrap();
        for (name, expected) in [
            ("text", "grün"),
            ("binary", "is not UTF-8"),
            ("large", "has 8 bytes; the limit is 7"),
            ("", "is not a file"),
            ("absent", "No such file or directory (os error 2)"),
        ] {
            let read = read_text(&path(name), 7);
            let told = read.map_or_else(|error| error.to_string(), |(text, _)| text.to_string());
            assert!(told.ends_with(expected), "{name}: {told}");
        }
    }

    #[test]
    fn a_file_that_was_changed_or_replaced_is_not_still_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "one").unwrap();
        let metadata = fs::metadata(&path).unwrap();
        let later = SystemTime::now() + 2 * TICK;
        let (settled, racing) = (
            Stamp::new(&metadata, later),
            Stamp::new(&metadata, SystemTime::now()),
        );
        assert!(settled.is_still(&path));
        assert!(!racing.is_still(&path));
        let other = directory.path().join("b");
        fs::write(&other, "two").unwrap();
        let opened = fs::File::options().write(true).open(&other).unwrap();
        opened.set_modified(metadata.modified().unwrap()).unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(!settled.is_still(&path));
        fs::remove_file(&path).unwrap();
        assert!(!settled.is_still(&path));
    }
}
