//! The lock that ensures that many clients start only one daemon.
//!
//! A client that starts a daemon holds it from the last check until the daemon serves, so the next client finds a
//! daemon that answers. The kernel releases it when its holder dies. The daemon itself never inherits it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use daemon::Home;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::{Errno, retry_on_intr};
use thiserror::Error;

/// The right to start a daemon. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct StartLock {
    /// The lock is bound to this descriptor, which is closed on exec.
    _file: File,
}

impl StartLock {
    /// Takes the lock, and waits up to `limit` for its current holder.
    pub(crate) fn take(home: &Home, limit: Duration) -> Result<StartLock, StartLockError> {
        let path = home.start_lock();
        let unusable = |source| StartLockError::Unusable {
            path: path.clone(),
            source,
        };
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(unusable)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(StartLock { _file: file }),
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(unusable(error.into())),
        }
        // There is no `flock` with a deadline. If we give up on this thread, it releases the lock as soon as
        // it gets
        // it, because the file has no receiver by then.
        let (sender, receiver) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("start-lock".to_owned())
            .spawn(move || {
                let outcome = retry_on_intr(|| flock(&file, FlockOperation::LockExclusive)).map(|()| file);
                drop(sender.send(outcome));
            })
            .map_err(unusable)?;
        match receiver.recv_timeout(limit) {
            Ok(Ok(file)) => Ok(StartLock { _file: file }),
            Ok(Err(error)) => Err(unusable(error.into())),
            Err(_) => Err(StartLockError::Busy { limit }),
        }
    }
}

/// Why this process may not start a daemon.
#[derive(Debug, Error)]
pub(crate) enum StartLockError {
    #[error("the lock file `{path}` cannot be used", path = .path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error("another process has been starting a daemon for {} s and isn't done yet", .limit.as_secs())]
    Busy { limit: Duration },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_waited_for_with_a_bound() {
        let temporary = tempfile::tempdir().unwrap();
        let home = Home {
            runtime: temporary.path().join("run"),
            state: temporary.path().join("state"),
        };
        home.prepare().unwrap();
        let held = StartLock::take(&home, Duration::ZERO).unwrap();

        let limit = Duration::from_millis(10);
        assert!(matches!(
            StartLock::take(&home, limit),
            Err(StartLockError::Busy { .. })
        ));

        let waiter = thread::spawn({
            let home = home.clone();
            move || StartLock::take(&home, Duration::from_secs(20)).map(drop)
        });
        drop(held);
        waiter.join().unwrap().unwrap();
    }
}
