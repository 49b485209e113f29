//! The sources of mounts, held by descriptors, and how they are mounted.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::super::error::ViewStep;
use super::super::spec::Mount;
use super::overlay::Layers;
use super::{Refusal, mount_points, refused};

/// A mount whose sources are open.
#[derive(Debug)]
pub(super) enum Source<'spec> {
    Overlay { layers: Layers, at: &'spec Path },
    Bind { tree: OwnedFd, at: &'spec Path },
    Hidden { at: &'spec Path },
    Terminals { at: &'spec Path },
}

impl<'spec> Source<'spec> {
    pub(super) fn open(mount: &'spec Mount) -> Result<Self, Refusal> {
        Ok(match mount {
            Mount::Overlay {
                lower,
                upper,
                work,
                at,
            } => Self::Overlay {
                layers: Layers {
                    lower: lower.iter().map(|path| layer(path)).collect::<Result<_, _>>()?,
                    upper: layer(upper)?,
                    work: layer(work)?,
                },
                at,
            },
            Mount::Bind { source, at } => Self::Bind {
                tree: tree(source)?,
                at,
            },
            Mount::ReadOnly { source, at } => {
                let tree = tree(source)?;
                make_read_only(&tree).map_err(refused(ViewStep::Bind, at))?;
                Self::Bind { tree, at }
            }
            Mount::Hidden { at } => Self::Hidden { at },
            Mount::Terminals { at } => Self::Terminals { at },
        })
    }

    /// Mounts it at its mount point.
    pub(super) fn mount(self) -> Result<(), Refusal> {
        match self {
            Self::Overlay { layers, at } => {
                let place = place(at)?;
                layers.mount(&place).map_err(refused(ViewStep::Overlay, at))
            }
            Self::Bind { tree, at } => {
                let place = place(at)?;
                attach(&tree, &place).map_err(refused(ViewStep::Bind, at))
            }
            Self::Hidden { at } => {
                let place = place(at)?;
                nothing()
                    .and_then(|nothing| attach(&nothing, &place))
                    .map_err(refused(ViewStep::Hide, at))
            }
            Self::Terminals { at } => {
                let place = mount_points::existing(at).map_err(refused(ViewStep::Place, at))?;
                terminals()
                    .or_else(|_| nothing())
                    .and_then(|terminals| attach(&terminals, &place))
                    .map_err(refused(ViewStep::Hide, at))
            }
        }
    }
}

fn place(at: &Path) -> Result<OwnedFd, Refusal> {
    mount_points::made(at).map_err(refused(ViewStep::Place, at))
}

fn layer(path: &Path) -> Result<OwnedFd, Refusal> {
    let refused = refused(ViewStep::Source, path);
    if !path.is_absolute() {
        return Err(refused(Errno::INVAL));
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(refused)
}

/// A directory with everything mounted below it: a mount that covers something can't be left out of a copy here.
fn tree(path: &Path) -> Result<OwnedFd, Refusal> {
    let directory = layer(path)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(directory, c"", flags).map_err(refused(ViewStep::Source, path))
}

/// The argument of the call below, as the kernel defines it.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Makes a detached tree read-only, with everything mounted in it.
fn make_read_only(tree: &OwnedFd) -> io::Result<()> {
    let attributes = Attributes {
        set: u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits()),
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    let flags = OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::AT_RECURSIVE;
    #[expect(unsafe_code, reason = "neither `std` nor rustix knows this call")]
    // SAFETY: the kernel reads an empty path and as many bytes of `attributes` as it has, and keeps neither.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags.bits(),
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An empty directory that can't be written.
fn nothing() -> Result<OwnedFd, Errno> {
    let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, c"mode", c"0700")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// A new set of terminals. Old kernels need to be told that it is separate.
fn terminals() -> Result<OwnedFd, Errno> {
    let context = fsopen(c"devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_flag(&context, c"newinstance")?;
    fsconfig_set_string(&context, c"mode", c"0620")?;
    fsconfig_set_string(&context, c"ptmxmode", c"0666")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Attaches a detached mount at its mount point.
pub(super) fn attach(mount: &OwnedFd, place: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, c"", place, c"", flags)
}
