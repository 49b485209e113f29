//! Diagnostics that a server pushes, and which version of a document they are for.
//!
//! The rule: a push counts for a document if nothing was sent about the document since.
//!
//! - Sending a new version of a document makes all earlier pushes for it out of date.
//! - A push that names a version counts if that version was sent last. Others are refused.
//! - A push without a version counts if it comes after the last version was sent. A server that doesn't name versions
//!   may have begun it before, which we can't detect. It will send another one, which replaces it. Servers that do name
//!   versions omit them when they clear the diagnostics of a closed document. Such a push may come after the document
//!   was opened again, and is refused.
//! - A push for a document that isn't open is not kept: a question opens its document first.
//! - A change to another file may change the diagnostics of a document. Some servers then push again and some don't,
//!   and we can't tell when. So a version counts as out of date if it was sent before such a change. The next question
//!   then sends the same text as a new version: diagnostics pushed for that version were computed afterwards.
//!
//! So the sender calls [`PushedDiagnostics::sending`] before the message goes out: no answer to it can come earlier.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;

use super::error::QueryError;

/// How many diagnostics of one document are kept. More are counted but not shown.
const MAX_ITEMS: usize = 2000;

#[derive(Clone, Debug, PartialEq)]
pub struct Push {
    pub items: Arc<[Value]>,
    pub total: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PushTaken {
    Current,
    /// It is for another version than the last one.
    OtherVersion,
    /// Its document is not open.
    NotOpen,
}

#[derive(Clone, Debug)]
struct Open {
    version: i32,
    sent: u64,
    push: Option<Push>,
}

/// The last change of a file, and the last one of any other file.
#[derive(Clone, Debug, Default)]
struct Newest {
    file: PathBuf,
    at: u64,
    other_at: u64,
}

/// The newest pushes of one generation of a server. There are at most as many as open documents.
#[derive(Clone, Debug, Default)]
pub struct PushedDiagnostics {
    open: BTreeMap<PathBuf, Open>,
    /// Counts events, to tell which came first.
    count: u64,
    newest: Newest,
    versions: Versions,
}

/// Whether the server has named the version of a document so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Versions {
    #[default]
    NotNamed,
    Named,
}

impl PushedDiagnostics {
    /// A version of a document is about to be sent.
    pub fn sending(&mut self, path: &Path, version: i32) {
        self.count += 1;
        let open = Open {
            version,
            sent: self.count,
            push: None,
        };
        self.open.insert(path.to_owned(), open);
    }

    /// A file has changed, on disk or in the server.
    pub fn changed(&mut self, path: &Path) {
        self.count += 1;
        if self.newest.file != path {
            self.newest.other_at = self.newest.at;
            self.newest.file = path.to_owned();
        }
        self.newest.at = self.count;
    }

    /// Whether another file has changed since a version of a document was sent.
    pub fn is_out_of_date(&self, path: &Path, version: i32) -> bool {
        let open = self.open.get(path).filter(|open| open.version == version);
        open.is_some_and(|open| open.sent < self.others_changed_at(path))
    }

    fn others_changed_at(&self, path: &Path) -> u64 {
        match self.newest.file == path {
            true => self.newest.other_at,
            false => self.newest.at,
        }
    }

    pub fn is_superseded(&self, path: &Path, version: i32) -> bool {
        self.open.get(path).is_some_and(|open| open.version > version)
    }

    pub fn closing(&mut self, path: &Path) {
        self.open.remove(path);
    }

    pub fn pushed(&mut self, path: &Path, version: Option<i32>, mut items: Vec<Value>) -> PushTaken {
        let Some(open) = self.open.get_mut(path) else {
            return PushTaken::NotOpen;
        };
        let of_closed = version.is_none() && items.is_empty() && self.versions == Versions::Named;
        if version.is_some() {
            self.versions = Versions::Named;
        }
        if of_closed || version.is_some_and(|version| version != open.version) {
            return PushTaken::OtherVersion;
        }
        let total = items.len();
        items.truncate(MAX_ITEMS);
        open.push = Some(Push {
            items: items.into(),
            total,
        });
        PushTaken::Current
    }

    /// The diagnostics of a version of a document.
    pub fn current(&self, server: &str, path: &Path, version: i32) -> Result<Push, QueryError> {
        let open = self.open.get(path).filter(|open| open.version == version);
        open.and_then(|open| open.push.clone())
            .ok_or_else(|| QueryError::NotReady {
                server: server.to_owned(),
                version,
            })
    }
}
