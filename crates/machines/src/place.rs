//! Where a home is, and whether two places can be one home.
//!
//! A home that was copied has the id of the first one, and on a shared log both would take the other's work for what an
//! earlier daemon of their own left behind. No single mark tells a copy from a home that was moved, restored, or is in a
//! container that is made again; so what is known of a place is compared mark by mark, and where that decides nothing, it is
//! the lease of the other daemon that does.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

/// What sets one place apart from another.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// A hash of the id of the machine. Containers often have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    /// Which start of the kernel it is. Machines that were cloned share their id, and never this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// The name of the host. Each container has its own.
    host: String,
    /// The state directory.
    pub(crate) path: PathBuf,
    /// The file with the id of the home. A copy is another file, a home that was moved is the same one.
    file: FileMark,
}

/// One file, as its file system tells it from others. Nothing that copies a file can copy these.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
struct FileMark {
    inode: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made_at_ns: Option<u64>,
}

/// What one place is to the home that was last seen at another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Relation {
    /// The same place. There, one daemon at a time has the lock of the home.
    Same,
    /// The same home, as far as can be told: it was moved or restored, or the machine was started again. So nobody else
    /// has it, unless somebody is seen to.
    Moved,
    /// A copy.
    Copy,
}

impl Place {
    /// The place of a home: its state directory, and the file with its id.
    ///
    /// # Errors
    /// Either is not there or cannot be looked at.
    pub fn of(state: &Path, id_file: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(id_file)?;
        let since_1970 = |made_at: std::time::SystemTime| made_at.duration_since(UNIX_EPOCH).ok();
        // Some file systems do not know when a file was made.
        let made_at = metadata.created().ok().and_then(since_1970);
        Ok(Self {
            machine: machine_id(Path::new("/etc/machine-id")),
            kernel: line_of(Path::new("/proc/sys/kernel/random/boot_id")),
            host: crate::host_name(),
            path: fs::canonicalize(state)?,
            file: FileMark {
                inode: metadata.ino(),
                made_at_ns: made_at.and_then(|made_at| u64::try_from(made_at.as_nanos()).ok()),
            },
        })
    }

    /// What this place is to the one that was seen last. `is_still_there` says whether that one, if it is on this machine,
    /// still has a home with this id.
    pub(crate) fn relation(
        &self,
        seen: Option<&Place>,
        is_still_there: impl FnOnce(&Path) -> bool,
    ) -> Relation {
        // An earlier version of Tidelock did not say.
        let Some(seen) = seen else {
            return Relation::Moved;
        };
        if self == seen {
            return Relation::Same;
        }
        if self.file == seen.file {
            return Relation::Moved;
        }
        match (&self.machine, &seen.machine) {
            (Some(ours), Some(theirs)) if ours != theirs => Relation::Copy,
            (Some(_), Some(_)) if self.path != seen.path && is_still_there(&seen.path) => Relation::Copy,
            _ => Relation::Moved,
        }
    }
}

/// A hash, since the id itself is not for others to know.
fn machine_id(file: &Path) -> Option<String> {
    let id = line_of(file).filter(|id| id != "uninitialized")?;
    let hash = blake3::derive_key("tidelock 2026 machine of a home", id.as_bytes());
    Some(blake3::Hash::from_bytes(hash).to_hex()[..32].to_owned())
}

fn line_of(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    Some(text.trim().to_owned()).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(machine: &str, path: &str, inode: u64) -> Place {
        Place {
            machine: Some(machine.to_owned()).filter(|machine| !machine.is_empty()),
            kernel: Some("k".to_owned()),
            host: "h".to_owned(),
            path: PathBuf::from(path),
            file: FileMark {
                inode,
                made_at_ns: None,
            },
        }
    }

    #[test]
    fn a_copy_is_told_from_a_home_that_was_moved_or_restored() {
        let seen = place("m", "/a", 1);
        let restarted = Place {
            kernel: Some("another".to_owned()),
            ..seen.clone()
        };
        for (ours, is_still_there, expected) in [
            (seen.clone(), true, Relation::Same),
            (restarted, true, Relation::Moved),
            // Restored from a backup.
            (place("m", "/a", 2), true, Relation::Moved),
            // Moved, by name or by copying and removing.
            (place("m", "/b", 1), true, Relation::Moved),
            (place("m", "/b", 2), false, Relation::Moved),
            // A copy beside the first one, and one on another machine.
            (place("m", "/b", 2), true, Relation::Copy),
            (place("n", "/a", 2), false, Relation::Copy),
            // Containers without an id, and with one that is made with each of them, on one volume.
            (place("", "/a", 2), true, Relation::Moved),
            (place("n", "/a", 1), true, Relation::Moved),
        ] {
            let found = ours.relation(Some(&seen), |_| is_still_there);
            assert_eq!(found, expected, "{ours:?}");
        }
        assert_eq!(seen.relation(None, |_| true), Relation::Moved);
    }

    #[test]
    fn a_machine_without_an_id_has_none() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("machine-id");
        assert_eq!(machine_id(&file), None);
        for text in ["", "\n", "uninitialized\n"] {
            fs::write(&file, text).unwrap();
            assert_eq!(machine_id(&file), None, "{text:?}");
        }
        fs::write(&file, "3d1219c7\n").unwrap();
        let hash = machine_id(&file).unwrap();
        assert!(hash.len() == 32 && !hash.contains("3d1219c7"), "{hash}");
    }
}
