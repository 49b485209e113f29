//! The machines that share a log: each home with its name, and the current boot of its daemon.
//!
//! - `record`: the record of a home in the log. It is declared and written only here.
//! - `location`: where a home is, and whether two locations can be the same home.
//! - `claim`: the identity of a home, which one daemon has at a time, and whether that daemon is running.
//! - `names`: the names of the machines.
//!
//! **What must not happen here:** a decision about work. The owners of the work decide who takes over from a dead
//! daemon, under their own leases.

mod claim;
mod location;
mod names;

mod record;

use std::path::Path;

use protocol::{BootId, HomeId};

pub use claim::{ClaimError, ElsewherePolicy, IdentityClaim, IdentityTakenOver, Presence, claim, presence};
pub use location::HomeLocation;
pub use names::{MachineLabel, Machines, host_name};
pub use record::unreadable_head;

/// One boot of the daemon of a home.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Identity {
    /// The home. It has one daemon at a time.
    pub home: HomeId,
    /// The boot of the daemon.
    pub boot: BootId,
}

/// This machine, as it describes itself to others.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Where its home is.
    pub place: HomeLocation,
    /// Whether a state directory belongs to a home.
    pub is_at: fn(&Path, HomeId) -> bool,
}
