//! A view that is wanted.

use std::path::PathBuf;

/// A view that is wanted: a user namespace and a mount namespace of its own, with these mounts, in this order.
///
/// All paths are absolute. Sources (`lower`, `upper`, `work`, `source`) are looked up before anything is mounted, so they
/// are what the daemon sees, also where a mount of the view covers them. Places (`at`, `root`) are looked up in the view
/// as it is by then, and no part of them may be a symbolic link: what lies in a layer could otherwise lead elsewhere.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ViewSpec {
    /// What is mounted, in this order.
    pub mounts: Vec<Mount>,
    /// The directory that the daemon itself wants to reach in the view.
    pub root: PathBuf,
}

/// One mount of a view.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Mount {
    /// Layers, of which only the uppermost is written.
    ///
    /// It is mounted as `volatile`: nothing waits for the disk, neither an `fsync` in the view nor the end of the view,
    /// which would otherwise write out the whole file system. A crash of the daemon loses nothing; a crash of the machine
    /// may lose or damage what was written in the last half minute.
    Overlay {
        /// The lower layers, the uppermost first, at least one. At most 500, as the kernel has it.
        lower: Vec<PathBuf>,
        /// The layer that is written.
        upper: PathBuf,
        /// A directory on the same file system as `upper`, empty or used for the same `upper` before. Two views at once
        /// must not have it.
        work: PathBuf,
        /// Where it is seen. It is made if it is not there, in what is seen there by then.
        at: PathBuf,
    },
    /// A directory, seen at another place as well, with what is mounted below it.
    Bind {
        /// The directory.
        source: PathBuf,
        /// Where it is seen. It is made if it is not there.
        at: PathBuf,
    },
    /// The same, where nothing can be written, by anybody in the view.
    ReadOnly {
        /// The directory.
        source: PathBuf,
        /// Where it is seen. It is made if it is not there.
        at: PathBuf,
    },
    /// Nothing: an empty directory that cannot be written.
    Hidden {
        /// What is hidden. It is made if it is not there, so that it stays hidden when it comes.
        at: PathBuf,
    },
    /// Terminals of the view's own, in place of everybody's: what is opened inside cannot be written from elsewhere, nor
    /// the other way round. Where the kernel gives none, it is the same as [`Hidden`](Self::Hidden).
    Terminals {
        /// Where they are seen. It has to be there.
        at: PathBuf,
    },
}
