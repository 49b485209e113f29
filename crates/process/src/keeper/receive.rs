//! The first message: the command and its three descriptors.

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::wire::{MESSAGE_LIMIT_BYTES, PREFIX_BYTES, Run, ToKeeper};

/// The standard streams of the command.
#[derive(Debug)]
pub(super) struct Descriptors {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Waits for the command, as long as the socket's timeout allows.
pub(super) fn run(socket: &UnixStream) -> io::Result<(Run, Descriptors)> {
    let (prefix, descriptors) = receive_prefix(socket)?;
    let length = u32::from_le_bytes(prefix) as usize;
    if length > MESSAGE_LIMIT_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    (&mut &*socket).read_exact(&mut body)?;
    match serde_json::from_slice(&body)? {
        ToKeeper::Run(run) => Ok((*run, descriptors)),
        ToKeeper::Stop { .. } => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The length, and the descriptors that come with its first byte.
fn receive_prefix(socket: &UnixStream) -> io::Result<([u8; PREFIX_BYTES], Descriptors)> {
    let (mut prefix, mut filled, mut descriptors) = ([0; PREFIX_BYTES], 0, Vec::new());
    while filled < PREFIX_BYTES {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut pieces = [IoSliceMut::new(&mut prefix[filled..])];
        let received = recvmsg(socket, &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += received.bytes;
    }
    let [stdin, stdout, stderr] =
        <[OwnedFd; 3]>::try_from(descriptors).map_err(|_| io::ErrorKind::InvalidData)?;
    let descriptors = Descriptors {
        stdin,
        stdout,
        stderr,
    };
    Ok((prefix, descriptors))
}
