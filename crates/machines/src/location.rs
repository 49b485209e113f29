//! The location of a home, and whether two locations can be the same home.
//!
//! A copied home has the same id as the original. On a shared log, each would take the other's work for what its
//! own earlier daemon left behind. No single mark distinguishes a copy from a home that was moved, restored, or
//! is in a recreated container. So all marks of a location are compared, and if they don't decide, the lease of
//! the other daemon does.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

/// What distinguishes one location from another.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct HomeLocation {
    /// A hash of the machine id. Containers often have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    /// The boot id of the kernel. Cloned machines share their machine id, but never this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// The host name. Each container has its own.
    host: String,
    /// The state directory.
    pub(crate) path: PathBuf,
    /// The file with the id of the home. A copy is another file; a moved home has the same one.
    file: FileMark,
}

/// Identifies a file within its file system. Copying a file doesn't copy these.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
struct FileMark {
    inode: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made_at_ns: Option<u64>,
}

/// How a location relates to the one where the home was last seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LocationRelation {
    /// The same location, where a lock ensures one daemon at a time.
    Same,
    /// The same home, as far as can be told: it was moved or restored, or the machine was rebooted. So nobody
    /// else has it, unless somebody is seen to.
    Moved,
    Copy,
}

impl HomeLocation {
    /// The location of a home, given its state directory and the file with its id.
    ///
    /// # Errors
    /// One of them doesn't exist or can't be read.
    pub fn of(state: &Path, id_file: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(id_file)?;
        let since_1970 = |made_at: std::time::SystemTime| made_at.duration_since(UNIX_EPOCH).ok();
        // Some file systems don't record when a file was created.
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

    /// How this location relates to the last one. `is_still_there` tells whether that one, if it is on this
    /// machine, still has a home with this id.
    pub(crate) fn relation(
        &self,
        seen: Option<&HomeLocation>,
        is_still_there: impl FnOnce(&Path) -> bool,
    ) -> LocationRelation {
        // Earlier versions of Tidelock didn't record it.
        let Some(seen) = seen else {
            return LocationRelation::Moved;
        };
        if self == seen {
            return LocationRelation::Same;
        }
        if self.file == seen.file {
            return LocationRelation::Moved;
        }
        match (&self.machine, &seen.machine) {
            (Some(ours), Some(theirs)) if ours != theirs => LocationRelation::Copy,
            (Some(_), Some(_)) if self.path != seen.path && is_still_there(&seen.path) => {
                LocationRelation::Copy
            }
            _ => LocationRelation::Moved,
        }
    }
}

/// A hash, because the id itself is private.
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

    fn place(machine: &str, path: &str, inode: u64) -> HomeLocation {
        HomeLocation {
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
        let restarted = HomeLocation {
            kernel: Some("another".to_owned()),
            ..seen.clone()
        };
        for (ours, is_still_there, expected) in [
            (seen.clone(), true, LocationRelation::Same),
            (restarted, true, LocationRelation::Moved),
            // Restored from a backup.
            (place("m", "/a", 2), true, LocationRelation::Moved),
            // Moved, by name or by copying and removing.
            (place("m", "/b", 1), true, LocationRelation::Moved),
            (place("m", "/b", 2), false, LocationRelation::Moved),
            // A copy beside the first one, and one on another machine.
            (place("m", "/b", 2), true, LocationRelation::Copy),
            (place("n", "/a", 2), false, LocationRelation::Copy),
            // Containers without an id, and with one that is made with each of them, on one volume.
            (place("", "/a", 2), true, LocationRelation::Moved),
            (place("n", "/a", 1), true, LocationRelation::Moved),
        ] {
            let found = ours.relation(Some(&seen), |_| is_still_there);
            assert_eq!(found, expected, "{ours:?}");
        }
        assert_eq!(seen.relation(None, |_| true), LocationRelation::Moved);
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
