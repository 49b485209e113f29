//! The texts that a server has open, kept in sync with the disk.
//!
//! For an open document, a server trusts the text it was sent, not the disk. So before each question, the metadata of
//! every open text is compared with its file, and the text is sent again if it has changed. A file that changed just
//! before it was read may have changed once more in the same tick of the file system's clock, so its stamp isn't
//! trusted.
//!
//! Several callers may check one file at once. Each takes a ticket before it reads, and sends its text only if no
//! caller with a later ticket has sent one: an earlier read never replaces a later one.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::disk::{self, ReadTextError, Stamp};
use crate::documents::{DocumentError, Documents, Lease};

#[derive(Clone, Debug)]
struct OpenText {
    ticket: u64,
    text: Arc<str>,
    stamp: Stamp,
    language: Arc<str>,
}

#[derive(Debug, Default)]
pub(crate) struct OpenTexts {
    /// Guards what the server was sent. No file is read while it is held.
    told: Mutex<OpenTextTable>,
}

#[derive(Debug, Default)]
struct OpenTextTable {
    last_ticket: u64,
    texts: BTreeMap<Arc<Path>, OpenText>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error(transparent)]
    Text(#[from] ReadTextError),
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl OpenTexts {
    /// Opens a file with its current text on disk. Blocks.
    pub(super) fn open(
        &self,
        documents: &Documents,
        path: &Arc<Path>,
        language: &Arc<str>,
        limit: u64,
    ) -> Result<Lease, OpenError> {
        let known = self.told().texts.get(path).cloned();
        let known = match known {
            Some(known) if known.stamp.is_still(path) => known,
            _ => self.read(path, language, limit)?,
        };
        Ok(self.tell(documents, path, known)?)
    }

    /// Sends the server all open texts that have changed on disk. Blocks.
    pub(super) fn refresh(&self, documents: &Documents, but_not: Option<&Path>, limit: u64) {
        let open = documents.paths();
        self.told().texts.retain(|path, _| open.contains(path));
        for path in open.iter().filter(|path| but_not != Some(path)) {
            let known = self.told().texts.get(path).cloned();
            let Some(known) = known.filter(|known| !known.stamp.is_still(path)) else {
                continue;
            };
            match self.read(path, &known.language, limit) {
                // Taking a lease for a moment sends the new text, even if others hold the document.
                Ok(read) => drop(self.tell(documents, path, read)),
                Err(_) => documents.changed_on_disk(path),
            }
        }
    }

    fn read(&self, path: &Arc<Path>, language: &Arc<str>, limit: u64) -> Result<OpenText, ReadTextError> {
        let ticket = {
            let mut told = self.told();
            told.last_ticket += 1;
            told.last_ticket
        };
        let (text, stamp) = disk::read_text(path, limit)?;
        Ok(OpenText {
            ticket,
            text,
            stamp,
            language: Arc::clone(language),
        })
    }

    /// Sends the server a text, unless it already has a later one. Deciding and sending are one step.
    fn tell(&self, documents: &Documents, path: &Arc<Path>, read: OpenText) -> Result<Lease, DocumentError> {
        let mut told = self.told();
        let current = match told.texts.get(path) {
            Some(later) if later.ticket > read.ticket => later.clone(),
            _ => {
                told.texts.insert(Arc::clone(path), read.clone());
                read
            }
        };
        documents.lease(path, &current.language, &current.text)
    }

    fn told(&self) -> MutexGuard<'_, OpenTextTable> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kernel::SystemClock;

    use super::*;
    use crate::documents::DocumentSettings;

    #[test]
    fn what_was_read_first_never_replaces_what_was_read_later() {
        let directory = tempfile::tempdir().unwrap();
        let path: Arc<Path> = directory.path().join("a.py").into();
        let language: Arc<str> = "python".into();
        let documents = Documents::new(DocumentSettings::default(), SystemClock::shared());
        let texts = OpenTexts::default();
        std::fs::write(&path, "one").unwrap();
        let first = texts.read(&path, &language, 100).unwrap();
        std::fs::write(&path, "two").unwrap();
        let second = texts.read(&path, &language, 100).unwrap();
        let _later = texts.tell(&documents, &path, second).unwrap();
        let _earlier = texts.tell(&documents, &path, first).unwrap();
        assert_eq!(&*documents.text(&path).unwrap(), "two");
        assert_eq!(&*texts.told().texts[&path].text, "two");
    }

    #[test]
    fn a_text_that_changed_on_disk_is_told_to_those_who_hold_it() {
        let directory = tempfile::tempdir().unwrap();
        let path: Arc<Path> = directory.path().join("a.py").into();
        let language: Arc<str> = "python".into();
        let documents = Documents::new(DocumentSettings::default(), SystemClock::shared());
        let texts = OpenTexts::default();
        std::fs::write(&path, "one").unwrap();
        let _lease = texts.open(&documents, &path, &language, 100).unwrap();
        std::fs::write(&path, "two").unwrap();
        texts.refresh(&documents, None, 100);
        assert_eq!(&*documents.text(&path).unwrap(), "two");
    }
}
