//! The two sides of a change, as a diff shows them.

use std::io;

use bytes::Bytes;

use crate::{Change, Contents, Entry, TEXT_LIMIT_BYTES, is_text};

/// What a diff shows of one side of a change. A directory isn't shown, as if it didn't exist.
pub(super) enum Shown<'a> {
    Nothing,
    File(&'a Entry),
    Symlink(&'a [u8]),
}

pub(super) enum Content {
    Text(Bytes),
    Binary(Bytes),
    TooLarge,
}

impl Content {
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(bytes) | Self::Binary(bytes) => Some(bytes),
            Self::TooLarge => None,
        }
    }
}

impl<'a> Shown<'a> {
    pub(super) fn of(entry: Option<&'a Entry>) -> Self {
        match entry {
            None | Some(Entry::Directory) => Self::Nothing,
            Some(Entry::Symlink { target }) => Self::Symlink(&target.0),
            Some(file @ Entry::File { .. }) => Self::File(file),
        }
    }

    pub(super) fn both(change: &'a Change) -> (Self, Self) {
        (Self::of(change.before.as_ref()), Self::of(change.after.as_ref()))
    }

    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// The git mode with all permissions; `None` if nothing is there.
    pub(super) fn mode(&self) -> Option<u32> {
        match self {
            Self::Nothing => None,
            Self::Symlink(_) => Some(0o120_000),
            Self::File(entry) => Some(0o100_000 | permissions(entry)),
        }
    }

    /// The mode as git stores it: of the permissions, it keeps only the owner's executable bit.
    pub(super) fn git_mode(&self) -> Option<u32> {
        self.mode().map(|mode| match mode {
            mode if mode & 0o170_000 == 0o120_000 => mode,
            mode if mode & 0o100 == 0 => 0o100_644,
            _ => 0o100_755,
        })
    }

    /// Whether both have the same content, ignoring permissions.
    pub(super) fn is_same_content(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, Self::Nothing) => true,
            (Self::Symlink(one), Self::Symlink(other)) => one == other,
            (Self::File(one), Self::File(other)) => one.content() == other.content(),
            _ => false,
        }
    }

    /// Its content; for a symlink, its target.
    pub(super) fn content(&self, contents: &dyn Contents) -> io::Result<Content> {
        let bytes = match self {
            Self::Nothing => Bytes::new(),
            Self::Symlink(target) => Bytes::copy_from_slice(target),
            Self::File(Entry::File { hash, size, .. }) if *size <= TEXT_LIMIT_BYTES => contents.get(*hash)?,
            Self::File(_) => return Ok(Content::TooLarge),
        };
        Ok(if is_text(&bytes) {
            Content::Text(bytes)
        } else {
            Content::Binary(bytes)
        })
    }
}

fn permissions(entry: &Entry) -> u32 {
    match entry {
        Entry::File { mode, .. } => mode & crate::entry::MODE_MASK,
        Entry::Symlink { .. } | Entry::Directory => 0,
    }
}
