//! Metadata about an image.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use serde::{Deserialize, Serialize};

use crate::scan::random_name;
use crate::stat_cache::FileTime;

/// Metadata about an image. The file's mtime is when the image was last used.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(super) struct Info {
    /// The boot in which it was made or verified. After a reboot, parts of it may be missing.
    pub(super) boot: String,
    /// Whether the whole image was on disk when this was written.
    pub(super) is_settled: bool,
    /// The total size of its files. It may take less disk space, since images share files.
    pub(super) bytes: u64,
}

const NAME: &str = "info";

impl Info {
    pub(super) fn of_this_boot(bytes: u64) -> Self {
        Self {
            boot: this_boot(),
            is_settled: false,
            bytes,
        }
    }

    /// Reads the metadata of an image. `None` if the file is damaged.
    pub(super) fn read(image: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(image.join(NAME)).ok()?).ok()
    }

    pub(super) fn write(&self, image: &Path) -> io::Result<()> {
        let passing = image.join(random_name());
        let written = fs::write(&passing, serde_json::to_vec(self)?);
        written.and_then(|()| fs::rename(&passing, image.join(NAME)))
    }

    /// Whether the image can be used without verifying it.
    pub(super) fn is_trusted(&self) -> bool {
        self.is_settled || (!self.boot.is_empty() && self.boot == this_boot())
    }

    pub(super) fn touch(image: &Path) -> io::Result<()> {
        let moment = |nanoseconds| Timespec {
            tv_sec: 0,
            tv_nsec: nanoseconds,
        };
        let times = Timestamps {
            last_access: moment(UTIME_OMIT),
            last_modification: moment(UTIME_NOW),
        };
        Ok(rustix::fs::utimensat(
            CWD,
            image.join(NAME),
            &times,
            AtFlags::empty(),
        )?)
    }

    pub(super) fn last_use(image: &Path) -> io::Result<FileTime> {
        Ok(FileTime::modified(&rustix::fs::stat(image.join(NAME))?))
    }
}

/// The id of the current boot; empty if the system doesn't report one.
fn this_boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}
