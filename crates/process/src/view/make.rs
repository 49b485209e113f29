//! The daemon's side of making a view: starts a maker, talks to it, and reaps it.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use kernel::Deadline;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use super::error::ViewError;
use super::handle::View;
use super::maker::MAKER_NAME;
use super::spec::ViewSpec;
use super::wire::{FromMaker, ToMaker, VIEW_DESCRIPTORS, path};
use crate::finish;
use crate::processes::ProcessesShared;
use crate::spawned::Spawned;
use crate::wire::{Inbox, encode};

/// How long a maker may take. It needs milliseconds, but a file system that hangs can delay it.
const MAKE_LIMIT: Duration = Duration::from_secs(10);
/// Enough for an answer at once, unless its path is very long.
const READ_BYTES: usize = 4 * 1024;

/// The channel for the answer. If it is closed, nobody wants the view anymore.
pub(crate) type Answer = oneshot::Sender<Result<View, ViewError>>;

/// Makes a view, and doesn't end before its maker has.
pub(crate) async fn make(shared: Arc<ProcessesShared>, spec: ViewSpec, mut answer: Answer) {
    let label = spec.root.to_string_lossy().replace(char::is_control, "");
    let (maker, mut socket) = match Spawned::start(&shared.keeper, MAKER_NAME, label).await {
        Ok(started) => started,
        Err(error) => {
            drop(answer.send(Err(ViewError::Means(error))));
            return;
        }
    };
    let limit = Deadline::after(&shared.clock, MAKE_LIMIT).passed();
    let made = tokio::select! {
        biased;
        () = answer.closed() => Err(ViewError::Stopped),
        made = exchange(&mut socket, &spec) => made.unwrap_or_else(|error| Err(ViewError::Maker(error))),
        () = limit => Err(ViewError::Maker(io::ErrorKind::TimedOut.into())),
    };
    // The maker has answered, or has had its time. A view that nobody takes is dropped here as well.
    drop(answer.send(made));
    maker.kill();
    finish::reap(&shared, maker).await;
}

/// Sends the request and receives the answer.
async fn exchange(socket: &mut UnixStream, spec: &ViewSpec) -> io::Result<Result<View, ViewError>> {
    socket.write_all(&encode(&ToMaker::from(spec))?).await?;
    let (mut inbox, mut descriptors) = (Inbox::default(), Vec::new());
    let message = loop {
        if let Some(message) = inbox.take()? {
            break message;
        }
        receive(socket, &mut inbox, &mut descriptors).await?;
    };
    Ok(match message {
        FromMaker::Made => {
            let descriptors = <[OwnedFd; VIEW_DESCRIPTORS]>::try_from(descriptors);
            Ok(View::new(descriptors.map_err(|_| io::ErrorKind::InvalidData)?))
        }
        FromMaker::Refused {
            step,
            path: text,
            errno,
        } => Err(ViewError::Refused {
            step,
            path: path(text),
            source: io::Error::from_raw_os_error(errno),
        }),
    })
}

async fn receive(socket: &UnixStream, inbox: &mut Inbox, descriptors: &mut Vec<OwnedFd>) -> io::Result<()> {
    let mut bytes = [0; READ_BYTES];
    let mut received_descriptors = Vec::new();
    let count = socket
        .async_io(Interest::READABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(VIEW_DESCRIPTORS))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut pieces = [IoSliceMut::new(&mut bytes)];
            let received = recvmsg(socket, &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC)?;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    received_descriptors.extend(rights);
                }
            }
            Ok(received.bytes)
        })
        .await?;
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    inbox.add(&bytes[..count]);
    descriptors.append(&mut received_descriptors);
    Ok(())
}
