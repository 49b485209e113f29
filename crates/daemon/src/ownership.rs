//! One daemon per home: the home's lock file, with a record of which daemon holds it.
//!
//! The lock is the source of truth; the record is for messages, and for callers that wait for the owner to exit. Never
//! take this lock to find out whether it is free, because a daemon that starts at that moment would be refused. Use
//! [`read_owner`].

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eventlog::{FileLock, Holder, Liveness, LockError, read_holder};
use protocol::BootId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::home::Home;
use crate::times::now_ms;

/// The right to be the daemon of a home. Dropping it releases the lock.
#[derive(Debug)]
pub struct Ownership {
    _lock: FileLock,
}

impl Ownership {
    /// Takes the lock of `home` without waiting, and records the owner.
    ///
    /// # Errors
    /// [`OwnershipError::Taken`] if another daemon holds it; the other variants if the file can't be used.
    pub fn take(home: &Home, boot_id: BootId) -> Result<Ownership, OwnershipError> {
        let path = home.daemon_lock();
        let note = Note {
            boot_id: boot_id.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since_unix_ms: now_ms(),
        };
        let note = serde_json::to_string(&note).map_err(|source| OwnershipError::File {
            path: path.clone(),
            source: source.into(),
        })?;
        match FileLock::take(&path, &note) {
            Ok(lock) => Ok(Ownership { _lock: lock }),
            Err(LockError::Taken { holder }) => Err(OwnershipError::Taken {
                owner: holder.and_then(|holder| Owner::read(*holder)).map(Box::new),
            }),
            Err(LockError::File { path, source }) => Err(OwnershipError::File { path, source }),
        }
    }
}

/// Who holds, or last held, the lock of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The process id.
    pub pid: u32,
    /// The id of the daemon's boot.
    pub boot_id: BootId,
    /// The version of the daemon.
    pub version: String,
    /// When it took the lock.
    pub since: SystemTime,
    holder: Holder,
}

impl Owner {
    fn read(holder: Holder) -> Option<Owner> {
        let note: Note = serde_json::from_str(&holder.note).ok()?;
        Some(Owner {
            pid: holder.pid,
            boot_id: note.boot_id.parse().ok()?,
            version: note.version,
            since: UNIX_EPOCH + Duration::from_millis(note.since_unix_ms),
            holder,
        })
    }

    /// Whether the record says that the daemon stopped cleanly. One that was killed couldn't record that.
    #[must_use]
    pub fn has_stopped_cleanly(&self) -> bool {
        self.holder.has_ended_cleanly()
    }

    /// Checks whether this exact process is still running.
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        self.holder.liveness()
    }
}

/// Reads who holds, or last held, the lock of `home`. `None` if it was never held, or if the record is missing or only
/// partially written.
#[must_use]
pub fn read_owner(home: &Home) -> Option<Owner> {
    Owner::read(read_holder(&home.daemon_lock())?)
}

/// What a daemon writes into the lock file, besides its process.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    boot_id: String,
    version: String,
    since_unix_ms: u64,
}

/// Why this process is not the daemon of its home.
#[derive(Debug, Error)]
pub enum OwnershipError {
    /// Another daemon holds the lock.
    #[error("another daemon is running here: {}", describe(.owner.as_deref()))]
    Taken {
        /// The owner, if it has recorded itself yet.
        owner: Option<Box<Owner>>,
    },
    /// The lock file couldn't be opened, locked or written.
    #[error("the lock file `{path}` cannot be used", path = .path.display())]
    File {
        /// The lock file.
        path: PathBuf,
        /// The error from the system.
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

    #[test]
    fn the_second_daemon_is_refused_and_told_who_the_first_is() {
        let temporary = tempfile::tempdir().unwrap();
        let home = Home {
            runtime: temporary.path().join("run"),
            state: temporary.path().join("state"),
        };
        home.prepare().unwrap();
        assert_eq!(read_owner(&home), None);
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

        drop(ownership);
        assert!(read_owner(&home).unwrap().has_stopped_cleanly());
        let second = BootId::generate();
        let _ownership = Ownership::take(&home, second).unwrap();
        assert_eq!(read_owner(&home).unwrap().boot_id, second);
    }

    #[test]
    fn somebody_who_is_no_daemon_has_no_name() {
        let temporary = tempfile::tempdir().unwrap();
        let home = Home {
            runtime: temporary.path().to_owned(),
            state: temporary.path().to_owned(),
        };
        let _other = FileLock::take(&home.daemon_lock(), "not a daemon's note").unwrap();
        assert!(matches!(
            Ownership::take(&home, BootId::generate()),
            Err(OwnershipError::Taken { owner: None })
        ));
    }
}
