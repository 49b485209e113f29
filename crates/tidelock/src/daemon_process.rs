//! The daemon as a process: waits for its end, or signals it to end when it does not answer.
//!
//! A process is identified by a descriptor that is opened first and checked afterwards, so we never wait for or
//! signal another process that got the same pid in the meantime.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use daemon::{Home, Liveness, Owner, read_owner};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

#[derive(Debug)]
pub(crate) struct DaemonProcess {
    pub(crate) owner: Owner,
    descriptor: OwnedFd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Ended,
    StillThere,
}

impl DaemonProcess {
    /// Finds the process that holds the lock of `home`, if it is alive.
    pub(crate) fn find(home: &Home) -> io::Result<Option<DaemonProcess>> {
        let Some(owner) = read_owner(home) else {
            return Ok(None);
        };
        let Some(pid) = i32::try_from(owner.pid).ok().and_then(Pid::from_raw) else {
            return Ok(None);
        };
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => descriptor,
            Err(Errno::SRCH | Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Check only now: the descriptor can no longer refer to another process.
        Ok((owner.liveness() == Liveness::Alive).then_some(DaemonProcess { owner, descriptor }))
    }

    /// Waits until the process has ended and released everything it held.
    pub(crate) fn wait(&self, limit: Duration) -> io::Result<Waited> {
        let timeout = Timespec::try_from(limit).map_err(io::Error::other)?;
        let mut watched = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let ready = retry_on_intr(|| poll(&mut watched, Some(&timeout)))?;
        Ok(if ready == 0 {
            Waited::StillThere
        } else {
            Waited::Ended
        })
    }

    pub(crate) fn terminate(&self) -> io::Result<()> {
        match pidfd_send_signal(&self.descriptor, Signal::TERM) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
