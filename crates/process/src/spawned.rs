//! A helper process: our own program under another name, with a socket as its standard input. The name says what
//! it is.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use tokio::net::UnixStream;

use crate::identity::Identity;
use crate::pidfd::WatchedProcess;
use crate::spec::KeeperProgram;

/// A process that runs, or has ended and isn't reaped yet.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) identity: Identity,
    child: std::process::Child,
    pidfd: WatchedProcess,
}

impl Spawned {
    /// Starts a helper, and connects to it. The label is shown in process lists.
    pub(crate) async fn start(
        program: &KeeperProgram,
        name: &'static str,
        label: String,
    ) -> io::Result<(Self, UnixStream)> {
        let program = match program {
            KeeperProgram::ThisProgram => Path::new("/proc/self/exe").to_owned(),
            KeeperProgram::At(path) => path.clone(),
        };
        // A fork and an exec take a millisecond or more, for which no other task should wait.
        tokio::task::spawn_blocking(move || FreshProcess::new(&program, name, &label))
            .await
            .map_err(io::Error::other)??
            .register()
    }

    /// Waits until it has ended. It isn't reaped, so its pid is still its own.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub(crate) async fn ended(&self) {
        self.pidfd.ended().await;
    }

    /// Whether it has exited with success.
    pub(crate) fn ended_well(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::PidFd(self.as_fd()), options);
        matches!(status, Ok(Some(status)) if status.exit_status() == Some(0))
    }

    /// Kills it. If it has ended, this does nothing.
    pub(crate) fn kill(&self) {
        // It is a child that wasn't reaped, so the only error is that it has already ended.
        let _ = pidfd_send_signal(self.as_fd(), Signal::KILL);
    }

    /// Reaps it, if it has ended.
    pub(crate) fn reap(mut self) {
        drop(self.child.try_wait());
    }
}

impl AsFd for Spawned {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// A process that has just been started and isn't registered with the runtime yet.
#[derive(Debug)]
struct FreshProcess {
    child: std::process::Child,
    pidfd: OwnedFd,
    identity: Identity,
    socket: std::os::unix::net::UnixStream,
}

impl FreshProcess {
    fn new(program: &Path, name: &str, label: &str) -> io::Result<Self> {
        let (socket, theirs) = std::os::unix::net::UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let mut child = Command::new(program)
            .arg0(name)
            .arg(label)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        match hold(&child) {
            Ok((pidfd, identity)) => Ok(Self {
                child,
                pidfd,
                identity,
                socket,
            }),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    fn register(mut self) -> io::Result<(Spawned, UnixStream)> {
        let made =
            WatchedProcess::new(self.pidfd).and_then(|pidfd| Ok((pidfd, UnixStream::from_std(self.socket)?)));
        match made {
            Ok((pidfd, socket)) => {
                let spawned = Spawned {
                    identity: self.identity,
                    child: self.child,
                    pidfd,
                };
                Ok((spawned, socket))
            }
            Err(error) => {
                end(&mut self.child);
                Err(error)
            }
        }
    }
}

fn hold(child: &std::process::Child) -> io::Result<(OwnedFd, Identity)> {
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let identity = Identity::of(child.id()).ok_or(io::ErrorKind::NotFound)?;
    Ok((pidfd, identity))
}

/// Kills a process that has nothing to do yet.
fn end(child: &mut std::process::Child) {
    drop(child.kill());
    drop(child.wait());
}
