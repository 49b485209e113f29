//! What is known about an image beside what is in it.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use serde::{Deserialize, Serialize};

use crate::scan::random_name;
use crate::stat_cache::FileTime;

/// What is known about an image. The time of its file is when the image was used last.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(super) struct Info {
    /// The boot of the machine in which it was made or found sound. In another boot, parts of it may be missing.
    pub(super) boot: String,
    /// Whether it was on the disk, whole, when this was written.
    pub(super) is_settled: bool,
    /// The sum of the sizes of its files. On the disk it may take less, since images share files.
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

    /// What stands in an image. A file that is damaged says nothing.
    pub(super) fn read(image: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(image.join(NAME)).ok()?).ok()
    }

    pub(super) fn write(&self, image: &Path) -> io::Result<()> {
        let passing = image.join(random_name());
        let written = fs::write(&passing, serde_json::to_vec(self)?);
        written.and_then(|()| fs::rename(&passing, image.join(NAME)))
    }

    /// Whether the image can be used without looking at it.
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

/// The boot of the machine that this is; empty if the system does not say.
fn this_boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}
