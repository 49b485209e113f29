//! Receives a message in a helper process: blocking, with the descriptors that come with the first byte.

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::de::DeserializeOwned;

use crate::wire::{MESSAGE_DESCRIPTORS, MESSAGE_LIMIT_BYTES, PREFIX_BYTES};

/// Waits for a message, as long as the socket's timeout allows.
pub(crate) fn message<M: DeserializeOwned>(socket: &UnixStream) -> io::Result<(M, Vec<OwnedFd>)> {
    let (prefix, descriptors) = receive_prefix(socket)?;
    let length = u32::from_le_bytes(prefix) as usize;
    if length > MESSAGE_LIMIT_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    (&mut &*socket).read_exact(&mut body)?;
    Ok((serde_json::from_slice(&body)?, descriptors))
}

/// The length, and the descriptors that come with its first byte.
fn receive_prefix(socket: &UnixStream) -> io::Result<([u8; PREFIX_BYTES], Vec<OwnedFd>)> {
    let (mut prefix, mut filled, mut descriptors) = ([0; PREFIX_BYTES], 0, Vec::new());
    while filled < PREFIX_BYTES {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_DESCRIPTORS))];
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
    Ok((prefix, descriptors))
}
