//! The machines that share a log: each home with its name, and which life of its daemon is the one that counts.
//!
//! - `record`: what the log says of a home. It is declared and written here alone.
//! - `place`: where a home is, and whether two places can be one home.
//! - `claim`: the identity of a home, which one daemon has at a time, and whether that daemon is there.
//! - `names`: what people call the machines.
//!
//! **What must not happen here:** a decision about work. Who takes over what of a daemon that is gone is for those who own the
//! work, under leases of their own.

mod claim;
mod names;
mod place;
mod record;

use std::path::Path;

use protocol::{BootId, HomeId};

pub use claim::{ClaimError, Claimed, Elsewhere, Presence, TakenOver, claim, presence};
pub use names::{Label, Machines, host_name};
pub use place::Place;
pub use record::unreadable_head;

/// One life of the daemon of a home.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Identity {
    /// The home. It has one daemon at a time.
    pub home: HomeId,
    /// Which life of it.
    pub boot: BootId,
}

/// This machine, as it tells others about itself.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What it is called.
    pub name: String,
    /// Where its home is.
    pub place: Place,
    /// Whether a state directory is that of a home.
    pub is_at: fn(&Path, HomeId) -> bool,
}
