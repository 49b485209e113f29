//! A keeper, as its daemon has it: started, spoken to, waited for, reaped.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::identity::Identity;
use crate::keeper::KEEPER_NAME;
use crate::pidfd::Watched;
use crate::spec::{KeeperProgram, StopPlan};
use crate::wire::{FromKeeper, Inbox, Run, ToKeeper, encode};

/// Enough for any message of a keeper at once.
const READ_BYTES: usize = 8 * 1024;

/// A running keeper. Dropping it closes the socket, upon which the keeper kills its tree and ends.
#[derive(Debug)]
pub(crate) struct KeeperProcess {
    pub(crate) identity: Identity,
    child: std::process::Child,
    pidfd: Watched,
    socket: UnixStream,
    inbox: Inbox,
}

impl KeeperProcess {
    /// Starts a keeper, which then waits for its command. The label is for whoever reads a list of processes.
    pub(crate) async fn start(program: &KeeperProgram, label: String) -> io::Result<Self> {
        let program = match program {
            KeeperProgram::ThisProgram => Path::new("/proc/self/exe").to_owned(),
            KeeperProgram::At(path) => path.clone(),
        };
        // A fork and an exec take a millisecond or more, which no other task should wait for.
        tokio::task::spawn_blocking(move || Spawned::new(&program, &label))
            .await
            .map_err(io::Error::other)??
            .into_keeper()
    }

    /// Sends the command and its standard streams.
    pub(crate) async fn run(&self, run: Run, streams: [OwnedFd; 3]) -> io::Result<()> {
        let bytes = encode(&ToKeeper::Run(Box::new(run)))?;
        let descriptors = streams.each_ref().map(AsFd::as_fd);
        let sent = self
            .socket
            .async_io(Interest::WRITABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                let fits = control.push(SendAncillaryMessage::ScmRights(&descriptors));
                assert!(fits, "the space is made for three descriptors");
                let pieces = [IoSlice::new(&bytes)];
                sendmsg(&self.socket, &pieces, &mut control, SendFlags::NOSIGNAL).map_err(io::Error::from)
            })
            .await?;
        self.write(&bytes[sent..]).await
    }

    /// Tells it to stop the command.
    pub(crate) async fn stop(&self, plan: StopPlan) -> io::Result<()> {
        let whole_ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let message = ToKeeper::Stop {
            polite_ms: whole_ms(plan.polite),
            term_ms: whole_ms(plan.term),
            kill_ms: whole_ms(plan.kill),
        };
        self.write(&encode(&message)?).await
    }

    async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.socket.writable().await?;
            match self.socket.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What it says next. An error means that it says nothing more.
    ///
    /// *Cancel safety*: may be dropped at any time; what has come is kept for the next call.
    pub(crate) async fn next(&mut self) -> io::Result<FromKeeper> {
        loop {
            if let Some(message) = self.inbox.take()? {
                return Ok(message);
            }
            self.socket.readable().await?;
            let mut bytes = [0; READ_BYTES];
            match self.socket.try_read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.inbox.add(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Closes the socket, so that the keeper ends if it has not. Then waits for it.
    pub(crate) fn hang_up(self) -> HungUp {
        HungUp {
            identity: self.identity,
            child: self.child,
            pidfd: self.pidfd,
        }
    }
}

/// A keeper that has nobody to talk to.
#[derive(Debug)]
pub(crate) struct HungUp {
    pub(crate) identity: Identity,
    child: std::process::Child,
    pidfd: Watched,
}

impl HungUp {
    /// Waits until it has ended. It is not reaped, so its pid is still its own.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub(crate) async fn ended(&self) {
        self.pidfd.ended().await;
    }

    /// Whether it has ended, and has seen to its tree first.
    pub(crate) fn ended_well(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::PidFd(self.pidfd.as_fd()), options);
        matches!(status, Ok(Some(status)) if status.exit_status() == Some(0))
    }

    /// Reaps it, if it has ended.
    pub(crate) fn reap(mut self) {
        drop(self.child.try_wait());
    }
}

/// A keeper that has just been started, not yet known to the runtime.
#[derive(Debug)]
struct Spawned {
    child: std::process::Child,
    pidfd: OwnedFd,
    identity: Identity,
    socket: std::os::unix::net::UnixStream,
}

impl Spawned {
    fn new(program: &Path, label: &str) -> io::Result<Self> {
        let (socket, theirs) = std::os::unix::net::UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let mut child = Command::new(program)
            .arg0(KEEPER_NAME)
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

    fn into_keeper(mut self) -> io::Result<KeeperProcess> {
        let made = Watched::new(self.pidfd).and_then(|pidfd| Ok((pidfd, UnixStream::from_std(self.socket)?)));
        match made {
            Ok((pidfd, socket)) => Ok(KeeperProcess {
                identity: self.identity,
                child: self.child,
                pidfd,
                socket,
                inbox: Inbox::default(),
            }),
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

/// Ends a keeper that has no command yet, at once.
fn end(child: &mut std::process::Child) {
    drop(child.kill());
    drop(child.wait());
}
