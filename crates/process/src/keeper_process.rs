//! A keeper, as its daemon sees it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::identity::Identity;
use crate::keeper::KEEPER_NAME;
use crate::spawned::Spawned;
use crate::spec::{KeeperProgram, StopPlan};
use crate::view::View;
use crate::wire::{FromKeeper, Inbox, MESSAGE_DESCRIPTORS, Run, ToKeeper, encode};

/// Enough for any message of a keeper at once.
const READ_BYTES: usize = 8 * 1024;

/// A running keeper. Dropping it closes the socket, and then the keeper kills its tree and exits.
#[derive(Debug)]
pub(crate) struct KeeperProcess {
    spawned: Spawned,
    socket: UnixStream,
    inbox: Inbox,
}

impl KeeperProcess {
    /// Starts a keeper, which then waits for its command. The label is shown in process lists.
    pub(crate) async fn start(program: &KeeperProgram, label: String) -> io::Result<Self> {
        let (spawned, socket) = Spawned::start(program, KEEPER_NAME, label).await?;
        Ok(Self {
            spawned,
            socket,
            inbox: Inbox::default(),
        })
    }

    pub(crate) fn identity(&self) -> Identity {
        self.spawned.identity
    }

    /// Sends the command, its standard streams and its view.
    pub(crate) async fn run(&self, run: Run, streams: [OwnedFd; 3], view: Option<&View>) -> io::Result<()> {
        let bytes = encode(&ToKeeper::Run(Box::new(run)))?;
        let namespaces = view.map(View::namespaces);
        let descriptors: Vec<_> = streams
            .iter()
            .map(AsFd::as_fd)
            .chain(namespaces.into_iter().flatten())
            .collect();
        let sent = self
            .socket
            .async_io(Interest::WRITABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_DESCRIPTORS))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                let fits = control.push(SendAncillaryMessage::ScmRights(&descriptors));
                assert!(fits, "the buffer has space for all descriptors of a message");
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

    /// The next message. After an error there are no more.
    ///
    /// *Cancel safety*: the future may be dropped at any time; received bytes are kept for the next call.
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

    /// Closes the socket, so that the keeper exits if it hasn't.
    pub(crate) fn hang_up(self) -> Spawned {
        self.spawned
    }
}
