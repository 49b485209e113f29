//! A lock file: one holder at a time, and a record of who that is.
//!
//! The kernel's lock on the open file decides, and it ends with its holder. The record in the file (pid, start
//! time, boot id of the machine, and a note) only serves messages. A record that a killed process left behind
//! excludes nobody and isn't believed. The file is never removed, because a lock on a removed file would exclude
//! nobody.
//!
//! Don't take the lock to find out whether it is free: another process that wants it at that moment would be
//! refused. Use [`read_holder`].

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

/// A record has a few hundred bytes. Anything longer isn't a record.
const RECORD_LIMIT_BYTES: u64 = 4096;
/// What a holder appends to its record when it releases the lock.
const CLEAN_END: &str = "released\n";

/// A lock that is held until it is dropped or its process ends.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

impl FileLock {
    /// Takes the lock of a file without waiting. The file is created if necessary, and the note goes into its
    /// record.
    pub fn take(path: &Path, note: &str) -> Result<Self, LockError> {
        let failed = |source| LockError::File {
            path: path.to_owned(),
            source,
        };
        // `std` opens every descriptor with close-on-exec, so no child can keep the lock.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                // A record whose process is gone was left by a killed holder and says nothing about the current
                // one.
                let holder = read_holder(path).filter(|holder| holder.liveness() == Liveness::Alive);
                return Err(LockError::Taken {
                    holder: holder.map(Box::new),
                });
            }
            Err(source) => return Err(failed(source.into())),
        }
        let mut lock = Self { file };
        lock.write_record(note).map_err(failed)?;
        Ok(lock)
    }

    fn write_record(&mut self, note: &str) -> io::Result<()> {
        let pid = std::process::id();
        let record = Record {
            pid,
            start_time_ticks: start_time_ticks(pid).ok_or_else(|| {
                io::Error::other("the start time of this process cannot be read from /proc")
            })?,
            machine_boot_id: machine_boot_id(),
            note: note.to_owned(),
        };
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&line)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // The record stays as long as the lock: whoever finds the lock taken must also find whom to wait for. If
        // this line can't be written, the holder only looks as if it had been killed. The lock itself is released
        // with the descriptor.
        drop(self.file.write_all(CLEAN_END.as_bytes()));
    }
}

/// The process that holds, or last held, a lock.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holder {
    /// The process id.
    pub pid: u32,
    /// When the process started, in clock ticks since the machine booted. It distinguishes two processes with the
    /// same pid.
    pub start_time_ticks: u64,
    /// The boot of the machine; empty if the system doesn't tell.
    pub machine_boot_id: String,
    /// The note of the holder.
    pub note: String,
    end: RecordedEnd,
}

/// What a record says about the end of its holder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RecordedEnd {
    /// Nothing: the holder is running, or it ended without being able to say so.
    NotSaid,
    /// The holder released the lock.
    Clean,
}

/// Whether a recorded process still exists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Liveness {
    /// A process with this pid and start time exists, in this boot of the machine.
    Alive,
    /// The process has ended, though its pid may be in use again.
    Gone,
}

impl Holder {
    /// Whether the record says that the lock was released. A killed holder couldn't say so.
    pub fn has_ended_cleanly(&self) -> bool {
        self.end == RecordedEnd::Clean
    }

    /// Asks the system whether exactly this process still exists.
    pub fn liveness(&self) -> Liveness {
        let is_this_run = self.machine_boot_id == machine_boot_id();
        if is_this_run && start_time_ticks(self.pid) == Some(self.start_time_ticks) {
            Liveness::Alive
        } else {
            Liveness::Gone
        }
    }
}

/// Reads who holds, or last held, the lock of a file. `None` if nobody ever did, or if the record isn't complete.
pub fn read_holder(path: &Path) -> Option<Holder> {
    let mut text = String::new();
    File::open(path)
        .ok()?
        .take(RECORD_LIMIT_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    let (line, end) = text.split_once('\n')?;
    let record: Record = serde_json::from_str(line).ok()?;
    Some(Holder {
        pid: record.pid,
        start_time_ticks: record.start_time_ticks,
        machine_boot_id: record.machine_boot_id,
        note: record.note,
        end: if end == CLEAN_END {
            RecordedEnd::Clean
        } else {
            RecordedEnd::NotSaid
        },
    })
}

/// When a process started, in clock ticks since the machine booted. `None` if there is no such process, or if it
/// is a zombie without threads.
pub fn start_time_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_start_time_ticks(&stat)
}

fn parse_start_time_ticks(stat: &str) -> Option<u64> {
    // The second field is the program's name in parentheses, which may itself contain spaces and parentheses.
    // After the last one comes field 3, the state.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let (state, threads, start_time) = (field(3)?, field(20)?, field(22)?);
    // A process that has ended holds no lock anymore, but only once its last thread is gone: the first thread can
    // be a zombie while others still hold the lock.
    if matches!(state, "Z" | "X") && matches!(threads, "0" | "1") {
        return None;
    }
    start_time.parse().ok()
}

/// The boot of the machine; empty if the kernel doesn't tell.
fn machine_boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// The content of the lock file.
#[derive(Debug, Deserialize, Serialize)]
struct Record {
    pid: u32,
    start_time_ticks: u64,
    machine_boot_id: String,
    note: String,
}

/// A lock wasn't taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("the lock is held by {}", describe(.holder.as_deref()))]
    Taken {
        /// The holder, if its record is complete.
        holder: Option<Box<Holder>>,
    },
    /// The lock file couldn't be opened, locked or written.
    #[error("the lock file `{}` cannot be used", path.display())]
    File {
        /// The lock file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

fn describe(holder: Option<&Holder>) -> String {
    holder.map_or_else(
        || "a process that has not said who it is yet".to_owned(),
        |holder| format!("process {}", holder.pid),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock_file() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("some.lock");
        (directory, path)
    }

    #[test]
    fn the_second_is_refused_and_told_who_the_first_is() {
        let (_directory, path) = lock_file();
        let lock = FileLock::take(&path, "the first").unwrap();
        let Err(LockError::Taken { holder: Some(holder) }) = FileLock::take(&path, "the second") else {
            panic!("the lock was given twice, or without a name");
        };
        let expected = Holder {
            pid: std::process::id(),
            start_time_ticks: start_time_ticks(std::process::id()).unwrap(),
            machine_boot_id: machine_boot_id(),
            note: "the first".to_owned(),
            end: RecordedEnd::NotSaid,
        };
        assert_eq!((&*holder, holder.liveness()), (&expected, Liveness::Alive));
        assert!(!holder.has_ended_cleanly());

        // The record stays, so that there is no moment at which the lock is taken and nobody is named.
        drop(lock);
        let end = RecordedEnd::Clean;
        assert_eq!(read_holder(&path), Some(Holder { end, ..expected }));
        FileLock::take(&path, "").unwrap();
    }

    #[test]
    fn a_record_that_was_left_behind_keeps_nobody_out() {
        let (_directory, path) = lock_file();
        let mine = Record {
            pid: std::process::id(),
            start_time_ticks: start_time_ticks(std::process::id()).unwrap(),
            machine_boot_id: machine_boot_id(),
            note: "a long note, so that the next record is shorter".to_owned(),
        };
        let other_process = Record {
            start_time_ticks: 0,
            machine_boot_id: machine_boot_id(),
            note: String::new(),
            ..mine
        };
        let other_run_of_the_machine = Record {
            machine_boot_id: "another".to_owned(),
            ..mine
        };
        for record in [other_process, other_run_of_the_machine] {
            fs::write(&path, serde_json::to_string(&record).unwrap() + "\n").unwrap();
            assert_eq!(read_holder(&path).unwrap().liveness(), Liveness::Gone);
            // Somebody has the lock and has not written its record yet: nobody is named.
            let silent = File::open(&path).unwrap();
            flock(&silent, FlockOperation::NonBlockingLockExclusive).unwrap();
            let refused = FileLock::take(&path, "").unwrap_err();
            assert!(matches!(refused, LockError::Taken { holder: None }), "{refused}");
            drop(silent);
            let _lock = FileLock::take(&path, "").unwrap();
            assert_eq!(read_holder(&path).unwrap().liveness(), Liveness::Alive);
        }
    }

    #[test]
    fn unreadable_records_are_nobody() {
        let (_directory, path) = lock_file();
        assert_eq!(read_holder(&path), None);
        for text in ["", "{", "{\"pid\":1}", "\u{0}"] {
            fs::write(&path, text).unwrap();
            assert_eq!(read_holder(&path), None, "{text:?}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_lock_is_refused() {
        let (directory, path) = lock_file();
        std::os::unix::fs::symlink(directory.path().join("elsewhere"), &path).unwrap();
        assert!(matches!(FileLock::take(&path, ""), Err(LockError::File { .. })));
    }

    #[test]
    fn the_start_time_is_found_behind_any_program_name() {
        let fields =
            |threads: u32| format!("4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 {threads} 21 4711 23 24");
        for (stat, expected) in [
            (format!("7 (cat) S {}", fields(1)), Some(4711)),
            (format!("7 (a) Z (b c) R {}", fields(9)), Some(4711)),
            (format!("7 (cat) Z {}", fields(1)), None),
            (format!("7 (cat) Z {}", fields(2)), Some(4711)),
            ("7 (cat) S 1 2".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(parse_start_time_ticks(&stat), expected, "{stat}");
        }
    }
}
