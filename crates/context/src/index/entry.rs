//! A file as stored in the index.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

use super::numbers::{Front, put};
use crate::path::TreePath;

/// A file that changed less than this ago may change again without looking different: file system clocks are
/// coarse, some have whole seconds.
const UNSETTLED: Duration = Duration::from_secs(2);
/// How far file times may be behind the clock: the system takes them from its last tick.
const TICK: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Stamp {
    pub(super) size: u64,
    /// Nanoseconds since 1970.
    modified: i64,
    changed: i64,
    /// Zero if the file had changed so recently that it may have changed again unnoticed.
    inode: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.size(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
        }
    }

    pub(super) fn of_stat(stat: &Stat) -> Self {
        Self {
            size: stat.st_size.try_into().unwrap_or(0),
            modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64),
            inode: stat.st_ino,
        }
    }

    /// The stamp of a file that was read at this time. If that was too soon after a change, it equals no other
    /// stamp.
    pub(super) fn read_at(self, time: SystemTime) -> Self {
        let settled = since_epoch(time).saturating_sub(UNSETTLED.as_nanos() as i64);
        let inode = if self.changed.max(self.modified) < settled {
            self.inode
        } else {
            0
        };
        Self { inode, ..self }
    }

    pub(super) fn is_since(&self, time: SystemTime) -> bool {
        let time = since_epoch(time).saturating_sub(TICK.as_nanos() as i64);
        self.modified.max(self.changed) >= time
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

fn since_epoch(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(i64::MAX)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Holds {
    Text,
    /// Not text. Such an entry is never shown; it saves reading the file again.
    Nothing,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct FileEntry {
    pub(super) path: TreePath,
    pub(super) stamp: Stamp,
    pub(super) holds: Holds,
}

impl FileEntry {
    /// Appends it to a table. `before` is the previous path in the table.
    pub(super) fn put(&self, bytes: &mut Vec<u8>, before: &str) {
        let path = self.path.as_str();
        let pairs = before.bytes().zip(path.bytes());
        let mut shared = pairs.take_while(|(one, other)| one == other).count();
        while !path.is_char_boundary(shared) {
            shared -= 1;
        }
        put(bytes, shared as u64);
        super::numbers::put_text(bytes, &path[shared..]);
        put(bytes, self.stamp.size);
        put(bytes, self.stamp.modified as u64);
        put(bytes, self.stamp.changed as u64);
        put(bytes, self.stamp.inode);
        put(bytes, u64::from(self.holds == Holds::Text));
    }

    /// Reads one from a table. `before` is the previous path in the table.
    pub(super) fn take(front: &mut Front<'_>, before: &str) -> Option<Self> {
        let shared = front.length()?;
        let mut path = before.get(..shared)?.to_owned();
        path.push_str(front.text()?);
        Some(Self {
            path: TreePath::new(&path).ok()?,
            stamp: Stamp {
                size: front.number()?,
                modified: front.number()? as i64,
                changed: front.number()? as i64,
                inode: front.number()?,
            },
            holds: match front.number()? {
                0 => Holds::Nothing,
                1 => Holds::Text,
                _ => return None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(modified: SystemTime, changed: SystemTime) -> Stamp {
        Stamp {
            size: 1,
            modified: since_epoch(modified),
            changed: since_epoch(changed),
            inode: 7,
        }
    }

    #[test]
    fn a_file_that_changed_a_moment_before_it_was_read_is_read_again() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let ago = |milliseconds| now - Duration::from_millis(milliseconds);
        for (modified, changed, is_settled) in [
            (60_000, 60_000, true),
            (60_000, 2_001, true),
            (60_000, 2_000, false),
            (60_000, 0, false),
            (1_000, 60_000, false),
        ] {
            let stamp = stamp(ago(modified), ago(changed));
            assert_eq!(stamp.read_at(now) == stamp, is_settled, "{modified} {changed}");
        }
        // The clock of a file system may be ahead.
        let ahead = stamp(now + Duration::from_secs(5), now);
        assert_ne!(ahead.read_at(now), ahead);
    }

    #[test]
    fn the_later_of_both_times_counts_and_clocks_are_coarse() {
        let time = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let (before, tick) = (time - Duration::from_secs(1), time - Duration::from_millis(50));
        for (modified, changed, is_since) in [
            (before, before, false),
            (before, time, true),
            (time, before, true),
            (before, tick, true),
        ] {
            assert_eq!(stamp(modified, changed).is_since(time), is_since);
        }
    }
}
