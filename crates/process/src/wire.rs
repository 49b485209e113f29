//! The protocol between a daemon and its keepers, over a socket pair: a length of four bytes, then JSON. The
//! descriptors of the command travel with the first bytes of [`ToKeeper::Run`]: its three standard streams, and
//! the user namespace and the mount namespace of its view if it has one.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};

use crate::ended::{Exit, Killed};
use crate::identity::Identity;
use crate::spec::{Enforcement, Limits};

/// The size limit of a message. The kernel takes about 2 MiB of arguments and environment, and JSON has at most
/// four characters per byte. Larger messages are refused.
pub(crate) const MESSAGE_LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// How many descriptors a message has at most.
pub(crate) const MESSAGE_DESCRIPTORS: usize = 5;
/// The size of the length prefix.
pub(crate) const PREFIX_BYTES: usize = 4;

/// Messages from the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToKeeper {
    /// Run this command, with the descriptors that come with it.
    Run(Box<Run>),
    /// Stop it.
    Stop {
        polite_ms: u64,
        term_ms: u64,
        kill_ms: u64,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) program: OsText,
    pub(crate) arguments: Vec<OsText>,
    pub(crate) directory: OsText,
    pub(crate) environment: Vec<(OsText, OsText)>,
    pub(crate) limits: Limits,
    /// The soft limit of open files that the daemon had at first; `None` if it is unchanged.
    pub(crate) open_files_before: Option<u64>,
    /// `None` for no confinement.
    pub(crate) write_below: Option<Vec<OsText>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromKeeper {
    /// The command runs.
    Started {
        command: Identity,
        confinement: Enforcement,
    },
    /// The command couldn't be started, and the keeper exits.
    Failed { stage: Stage, errno: i32 },
    /// The command has ended; its descendants may not have.
    Exited { exit: Exit },
    /// Nothing is left, or what is left can't be killed. The keeper exits.
    Gone { killed: Killed, left: Vec<u32> },
}

/// What failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    Directory,
    Limits,
    Confinement,
    Program,
    /// The keeper itself.
    Keeper,
}

/// A text of the system, which need not be UTF-8.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum OsText {
    Utf8(String),
    Bytes(Vec<u8>),
}

impl From<&OsStr> for OsText {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some(text) => Self::Utf8(text.to_owned()),
            None => Self::Bytes(text.as_bytes().to_owned()),
        }
    }
}

impl From<OsText> for OsString {
    fn from(text: OsText) -> Self {
        match text {
            OsText::Utf8(text) => text.into(),
            OsText::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PREFIX_BYTES];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - PREFIX_BYTES;
    if length > MESSAGE_LIMIT_BYTES {
        return Err(io::Error::from(io::ErrorKind::ArgumentListTooLong));
    }
    let prefix = u32::try_from(length).map_err(io::Error::other)?;
    bytes[..PREFIX_BYTES].copy_from_slice(&prefix.to_le_bytes());
    Ok(bytes)
}

/// Splits received bytes into messages.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, once it is complete.
    pub(crate) fn take<M: serde::de::DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        let Some((prefix, rest)) = self.bytes.split_first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length > MESSAGE_LIMIT_BYTES {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let message = serde_json::from_slice(body)?;
        self.bytes.drain(..PREFIX_BYTES + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_whole_however_they_came_in() {
        let names = [OsStr::new("a b"), OsStr::from_bytes(b"\xff\x00x"), OsStr::new("")];
        let mut sent = Vec::new();
        for name in names {
            sent.extend(encode(&OsText::from(name)).unwrap());
        }
        for step in [1, 3, sent.len()] {
            let (mut inbox, mut received) = (Inbox::default(), Vec::new());
            for piece in sent.chunks(step) {
                inbox.add(piece);
                while let Some(text) = inbox.take::<OsText>().unwrap() {
                    received.push(OsString::from(text));
                }
            }
            assert_eq!(received, names, "in steps of {step}");
            assert!(inbox.bytes.is_empty());
        }
    }

    #[test]
    fn a_length_that_is_a_lie_is_refused_before_anything_is_kept() {
        let mut inbox = Inbox::default();
        inbox.add(&u32::MAX.to_le_bytes());
        assert!(inbox.take::<OsText>().is_err());
    }
}
