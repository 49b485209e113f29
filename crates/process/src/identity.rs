//! Identifies processes: a pid alone may be reused, but a pid with its start time is one process.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;

use crate::proc_table::Stat;

/// One process, in this boot of the machine.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    /// When it started, in ticks since the boot.
    pub(crate) start_ticks: u64,
}

impl Identity {
    /// The process that has this pid now.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Stat::read(pid).map(|stat| stat.identity())
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SignalResult {
    /// It was sent to exactly that process.
    Yes,
    /// The process has ended, or isn't the expected one.
    Gone,
}

/// A process held by a descriptor, which stays valid whatever happens to its pid.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) pidfd: OwnedFd,
}

impl Target {
    /// Opens a descriptor of a process, and then checks again that it is the one that was seen.
    pub(crate) fn hold(seen: Identity, still_meant: impl FnOnce(&Stat) -> bool) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(seen.pid).ok()?)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let now = Stat::read(seen.pid)?;
        (now.identity() == seen && still_meant(&now)).then_some(Self { pidfd })
    }

    pub(crate) fn signal(&self, signal: Signal) -> SignalResult {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) => SignalResult::Yes,
            Err(error) => {
                // A process of another user is below us only if it became so on purpose; it can't be signalled.
                debug_assert!(matches!(error, Errno::SRCH | Errno::PERM), "{error}");
                SignalResult::Gone
            }
        }
    }
}

/// The boot of the machine. Pids and start times mean nothing in another one.
pub(crate) fn machine_boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
