//! The first message: the command, its standard streams, and its view if it has one.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::enter::Namespaces;
use crate::receive::message;
use crate::wire::{Run, ToKeeper};

/// What comes with a command.
#[derive(Debug)]
pub(super) struct Descriptors {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// `None` if the command has no view of its own.
    pub(super) namespaces: Option<Namespaces>,
}

/// Waits for the command, as long as the socket's timeout allows.
pub(super) fn run(socket: &UnixStream) -> io::Result<(Run, Descriptors)> {
    match message(socket)? {
        (ToKeeper::Run(run), descriptors) => Ok((*run, Descriptors::of(descriptors)?)),
        (ToKeeper::Stop { .. }, _) => Err(io::ErrorKind::InvalidData.into()),
    }
}

impl Descriptors {
    fn of(descriptors: Vec<OwnedFd>) -> io::Result<Self> {
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or(io::ErrorKind::InvalidData);
        let (stdin, stdout, stderr) = (next()?, next()?, next()?);
        let namespaces = match (descriptors.next(), descriptors.next()) {
            (Some(user), Some(mount)) => Some(Namespaces { user, mount }),
            (None, _) => None,
            (Some(_), None) => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok(Self {
            stdin,
            stdout,
            stderr,
            namespaces,
        })
    }
}
