//! How a command enters a view, and drops its privileges.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, LinkNameSpaceType, clear_ambient_capability_set,
    move_into_link_name_space, remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

#[derive(Debug)]
pub(super) struct Namespaces {
    pub(super) user: OwnedFd,
    pub(super) mount: OwnedFd,
}

impl Namespaces {
    /// Moves this process into the view. It has one thread, as the kernel requires. Its working directory is the
    /// root afterwards.
    pub(super) fn enter(&self) -> io::Result<()> {
        // The user namespace comes first: it gives the right to enter the other one.
        move_into_link_name_space(self.user.as_fd(), Some(LinkNameSpaceType::User))?;
        move_into_link_name_space(self.mount.as_fd(), Some(LinkNameSpaceType::Mount))?;
        Ok(())
    }
}

/// Drops all privileges beyond those of the user, for this process and everything that it starts. Entering a user
/// namespace grants every capability there, including the one to unmount, and root would keep them.
pub(super) fn give_up_rights() -> io::Result<()> {
    clear_ambient_capability_set()?;
    // The kernel shows which capability is the last one by refusing the next.
    for number in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let nothing = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, nothing)?;
    set_no_new_privs(true)?;
    Ok(())
}
