//! One daemon per home: a lock that the kernel gives back when its holder dies, and a record for people.
//!
//! The lock is the truth. The record in the locked file (pid, start time, boot id, version) says whom to blame
//! in a message, and which process to wait for; it stays as long as the lock is taken. No decision is made on it
//! without asking whether that very process is still alive. The lock file is never removed: a lock on a removed
//! file would exclude nobody.
//!
//! Nobody else may take this lock to find out whether it is free, because a daemon that starts in that moment
//! would be refused. Use [`read_owner`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kernel::BootId;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::home::Home;

/// A record is a few hundred bytes; whatever is longer was not written by a daemon.
const RECORD_LIMIT_BYTES: u64 = 4096;
/// What a daemon adds to its record when it has stopped as it should.
const CLEAN_END: &str = "stopped\n";

/// The right to be the daemon of a home. Dropping it gives the right back.
#[derive(Debug)]
pub struct Ownership {
    file: File,
}

impl Ownership {
    /// Takes the lock of `home`, without waiting, and writes down who has it.
    ///
    /// # Errors
    /// [`OwnershipError::Taken`] when another daemon has it; the other variants when the file cannot be used.
    pub fn take(home: &Home, boot_id: BootId) -> Result<Ownership, OwnershipError> {
        let path = home.daemon_lock();
        // Every descriptor that `std` opens is closed on exec, so no child of the daemon can keep the lock.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(|source| OwnershipError::File {
                path: path.clone(),
                source,
            })?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                // A record whose process is gone was left by a killed daemon, and says nothing about the holder.
                let owner = read_owner(home).filter(|owner| owner.liveness() == Liveness::Alive);
                return Err(OwnershipError::Taken {
                    owner: owner.map(Box::new),
                });
            }
            Err(source) => {
                return Err(OwnershipError::File {
                    path,
                    source: source.into(),
                });
            }
        }
        let mut ownership = Ownership { file };
        ownership
            .write_record(boot_id)
            .map_err(|source| OwnershipError::File { path, source })?;
        Ok(ownership)
    }

    fn write_record(&mut self, boot_id: BootId) -> io::Result<()> {
        let pid = std::process::id();
        let record = Record {
            pid,
            start_time_ticks: start_time_ticks(pid).ok_or_else(|| {
                io::Error::other("the start time of this process cannot be read from /proc")
            })?,
            boot_id: boot_id.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since_unix_ms: unix_ms(SystemTime::now()),
        };
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&line)
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        // The record stays as long as the lock: whoever finds the lock taken must also find whom to wait for. If the
        // last line cannot be written, the run looks as if it had been killed, and nothing else is lost. The lock
        // itself goes with the descriptor.
        drop(self.file.write_all(CLEAN_END.as_bytes()));
    }
}

/// Who holds, or last held, the lock of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process id.
    pub pid: u32,
    /// When the process started, in clock ticks since the machine did. It tells two users of one pid apart.
    pub start_time_ticks: u64,
    /// The daemon's name for this run.
    pub boot_id: BootId,
    /// The version of the daemon.
    pub version: String,
    /// When it took the lock.
    pub since: SystemTime,
    end: RecordedEnd,
}

/// What a record says about the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordedEnd {
    /// Nothing: it goes on, or it ended without being able to say so.
    NotSaid,
    /// It has stopped as it should.
    Clean,
}

/// Whether a recorded process is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// A process with that pid and that start time exists.
    Alive,
    /// It has ended, though its pid may be in use again.
    Gone,
}

impl Owner {
    /// Whether the record says that the daemon stopped as it should. One that was killed could not say so.
    #[must_use]
    pub fn has_stopped_cleanly(&self) -> bool {
        self.end == RecordedEnd::Clean
    }

    /// Asks the system whether this very process is still there.
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        if start_time_ticks(self.pid) == Some(self.start_time_ticks) {
            Liveness::Alive
        } else {
            Liveness::Gone
        }
    }
}

/// Reads who holds, or last held, the lock of `home`. `None` when nobody ever did, or when the record is not yet or
/// only half written.
#[must_use]
pub fn read_owner(home: &Home) -> Option<Owner> {
    let mut text = String::new();
    File::open(home.daemon_lock())
        .ok()?
        .take(RECORD_LIMIT_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    let (line, end) = text.split_once('\n')?;
    let record: Record = serde_json::from_str(line).ok()?;
    Some(Owner {
        pid: record.pid,
        start_time_ticks: record.start_time_ticks,
        boot_id: record.boot_id.parse().ok()?,
        version: record.version,
        since: UNIX_EPOCH + Duration::from_millis(record.since_unix_ms),
        end: if end == CLEAN_END {
            RecordedEnd::Clean
        } else {
            RecordedEnd::NotSaid
        },
    })
}

/// When a process started, in clock ticks since the machine did. `None` when there is no such process, or when
/// all of it has ended and only waits for its parent to take notice.
#[must_use]
pub fn start_time_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_start_time_ticks(&stat)
}

fn parse_start_time_ticks(stat: &str) -> Option<u64> {
    // The second field is the program's name in brackets, and may itself hold spaces and brackets. What follows
    // the last bracket starts with field 3, the state.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let (state, threads, start_time) = (field(3)?, field(20)?, field(22)?);
    // A process that has ended holds no lock and no socket any more, but only when its last thread is gone: the
    // first thread can be a zombie while others still hold them.
    if matches!(state, "Z" | "X") && matches!(threads, "0" | "1") {
        return None;
    }
    start_time.parse().ok()
}

fn unix_ms(time: SystemTime) -> u64 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// The record as it stands in the lock file.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    pid: u32,
    start_time_ticks: u64,
    boot_id: String,
    version: String,
    since_unix_ms: u64,
}

/// Why this process is not the daemon of its home.
#[derive(Debug, Error)]
pub enum OwnershipError {
    /// Another daemon has the lock.
    #[error("another daemon is running here: {}", describe(.owner.as_deref()))]
    Taken {
        /// Who it is, if it has said so yet.
        owner: Option<Box<Owner>>,
    },
    /// The lock file could not be opened, locked or written.
    #[error("the lock file `{path}` cannot be used", path = .path.display())]
    File {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl OwnershipError {
    /// What to do about it, in one sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Taken { .. } => {
                "use it as it is, stop it with `tidelock down`, or set TIDELOCK_HOME to run a second one"
                    .to_owned()
            }
            Self::File { path, .. } => format!(
                "make sure that `{}` is a file of yours on a disk with free space, or set TIDELOCK_HOME",
                path.display()
            ),
        }
    }
}

fn describe(owner: Option<&Owner>) -> String {
    match owner {
        Some(owner) => format!("pid {}, {}, version {}", owner.pid, owner.boot_id, owner.version),
        None => "it has not said who it is yet".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared() -> (tempfile::TempDir, Home) {
        let temporary = tempfile::tempdir().unwrap();
        let home = Home {
            runtime: temporary.path().join("run"),
            state: temporary.path().join("state"),
        };
        home.prepare().unwrap();
        (temporary, home)
    }

    #[test]
    fn the_second_daemon_is_refused_and_told_who_the_first_is() {
        let (_temporary, home) = prepared();
        let first = BootId::generate();
        let ownership = Ownership::take(&home, first).unwrap();

        let Err(OwnershipError::Taken { owner: Some(owner) }) = Ownership::take(&home, BootId::generate())
        else {
            panic!("the lock was given twice, or without a name");
        };
        assert_eq!((owner.pid, owner.boot_id), (std::process::id(), first));
        assert_eq!(owner.liveness(), Liveness::Alive);
        assert_eq!(read_owner(&home), Some((*owner).clone()));
        assert!(!owner.has_stopped_cleanly());

        // The record stays, so that there is no moment at which the lock is taken and nobody is named.
        drop(ownership);
        let after = Owner {
            end: RecordedEnd::Clean,
            ..*owner
        };
        assert_eq!(read_owner(&home), Some(after));
        Ownership::take(&home, BootId::generate()).unwrap();
    }

    #[test]
    fn a_record_left_by_a_killed_daemon_does_not_keep_the_next_one_out() {
        let (_temporary, home) = prepared();
        let record = Record {
            pid: std::process::id(),
            start_time_ticks: 0,
            boot_id: BootId::generate().to_string(),
            version: "0.0.0 with a long name, so that the next record is shorter".to_owned(),
            since_unix_ms: 0,
        };
        let line = serde_json::to_string(&record).unwrap() + "\n";
        fs::write(home.daemon_lock(), line).unwrap();
        assert_eq!(read_owner(&home).unwrap().liveness(), Liveness::Gone);

        let boot_id = BootId::generate();
        let _ownership = Ownership::take(&home, boot_id).unwrap();
        assert_eq!(read_owner(&home).unwrap().boot_id, boot_id);
    }

    #[test]
    fn a_holder_that_has_not_written_its_record_is_not_confused_with_the_last_one() {
        let (_temporary, home) = prepared();
        drop(Ownership::take(&home, BootId::generate()).unwrap());
        let last = fs::read_to_string(home.daemon_lock()).unwrap();
        let (before, after) = last.split_once("\"start_time_ticks\":").unwrap();
        fs::write(
            home.daemon_lock(),
            format!("{before}\"start_time_ticks\":9{after}"),
        )
        .unwrap();
        assert_eq!(read_owner(&home).unwrap().liveness(), Liveness::Gone);
        let holder = File::open(home.daemon_lock()).unwrap();
        flock(&holder, FlockOperation::NonBlockingLockExclusive).unwrap();

        assert!(matches!(
            Ownership::take(&home, BootId::generate()),
            Err(OwnershipError::Taken { owner: None })
        ));
    }

    #[test]
    fn unreadable_records_are_nobody() {
        let (_temporary, home) = prepared();
        assert_eq!(read_owner(&home), None);
        for text in ["", "{", "{\"pid\":1}", "\u{0}"] {
            fs::write(home.daemon_lock(), text).unwrap();
            assert_eq!(read_owner(&home), None, "{text:?}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_lock_is_refused() {
        let (temporary, home) = prepared();
        std::os::unix::fs::symlink(temporary.path().join("elsewhere"), home.daemon_lock()).unwrap();
        assert!(matches!(
            Ownership::take(&home, BootId::generate()),
            Err(OwnershipError::File { .. })
        ));
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
        assert!(start_time_ticks(std::process::id()).is_some());
    }
}
