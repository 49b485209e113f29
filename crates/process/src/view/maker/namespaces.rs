//! Creates namespaces.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::super::error::ViewStep;
use super::{Refusal, refused};

const USER_NAMESPACE: &str = "/proc/self/ns/user";
const MOUNT_NAMESPACE: &str = "/proc/self/ns/mnt";

/// Moves this process into a new user namespace and a new mount namespace, and returns both. The user and the
/// group stay the same. Mounts made here aren't visible outside, and later mounts outside aren't visible here,
/// where they could cover our own.
pub(super) fn enter_new() -> Result<[OwnedFd; 2], Refusal> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare().map_err(refused(ViewStep::Namespaces, Path::new(USER_NAMESPACE)))?;
    // Without this, giving up a group could be used to access a file that is closed to that group.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1\n"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1\n"))?;
    let everywhere = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change(c"/", everywhere).map_err(refused(ViewStep::Privacy, Path::new("/")))?;
    // Now, because a mount may cover `/proc`.
    Ok([open(USER_NAMESPACE)?, open(MOUNT_NAMESPACE)?])
}

#[expect(unsafe_code, reason = "no safe way to get namespaces of one's own")]
fn unshare() -> io::Result<()> {
    // SAFETY: descriptors stay shared, and this process has one thread anyway.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) }.map_err(io::Error::from)
}

fn write(path: &str, line: &str) -> Result<(), Refusal> {
    fs::write(path, line).map_err(refused(ViewStep::Identity, Path::new(path)))
}

fn open(path: &str) -> Result<OwnedFd, Refusal> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(refused(ViewStep::Namespaces, Path::new(path)))
}
