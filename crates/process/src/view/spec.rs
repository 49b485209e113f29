//! The description of a view.

use std::path::PathBuf;

/// The description of a view: a user namespace and a mount namespace with these mounts, in this order.
///
/// All paths are absolute. Sources (`lower`, `upper`, `work`, `source`) are resolved before anything is mounted,
/// so they are what the daemon sees, even where a mount of the view covers them. Mount points (`at`, `root`) are
/// resolved in the view as it is by then, and no part of them may be a symbolic link: the content of a layer
/// could otherwise lead elsewhere.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ViewSpec {
    /// The mounts, in this order.
    pub mounts: Vec<Mount>,
    /// The directory that the daemon itself needs to reach in the view.
    pub root: PathBuf,
}

/// One mount of a view.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Mount {
    /// Layers, of which only the top one is written.
    ///
    /// It is mounted as `volatile`: nothing waits for the disk, neither an `fsync` in the view nor the end of the
    /// view, which would otherwise flush the whole file system. A crash of the daemon loses nothing; a crash of
    /// the machine may lose or damage what was written in the last half minute.
    Overlay {
        /// The lower layers, topmost first: at least one, and at most 500, the limit of the kernel.
        lower: Vec<PathBuf>,
        /// The layer that is written.
        upper: PathBuf,
        /// A directory on the same file system as `upper`, empty or used for the same `upper` before. Two views
        /// must not use it at the same time.
        work: PathBuf,
        /// The mount point. It is created if it is missing, in what is visible there by then.
        at: PathBuf,
    },
    /// A directory that is also visible in another place, with everything mounted below it.
    Bind {
        /// The directory.
        source: PathBuf,
        /// The mount point. It is created if it is missing.
        at: PathBuf,
    },
    /// The same, but read-only for everyone in the view.
    ReadOnly {
        /// The directory.
        source: PathBuf,
        /// The mount point. It is created if it is missing.
        at: PathBuf,
    },
    /// An empty read-only directory.
    Hidden {
        /// What is hidden. It is created if it is missing, so that it stays hidden if it appears later.
        at: PathBuf,
    },
    /// Terminals of the view's own, instead of the host's: terminals opened inside can't be written from outside,
    /// nor the other way round. If the kernel provides none, it is the same as [`Hidden`](Self::Hidden).
    Terminals {
        /// The mount point. It must exist.
        at: PathBuf,
    },
}
