//! The shared handle of the book: leases, and waiting until a server is up to date.

use std::{
    collections::BTreeSet,
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use kernel::{Cause, Clock, Deadline, Generation, Scope, Slot, WaitError};

use super::{
    outbox::Outbox,
    state::{Book, Delivery, DocumentCounts, DocumentSettings, Progress},
    sync::DocumentSync,
};
use crate::text::{LineIndex, PositionEncoding, UriError, uri_of_path};

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DocumentError {
    #[error("{} has {bytes} bytes; the limit for language servers is {limit}", path.display())]
    TooLarge {
        path: Arc<Path>,
        bytes: usize,
        limit: usize,
    },
    #[error("{limit} documents are in use in this server, which is the limit")]
    TooMany { limit: usize },
    #[error(transparent)]
    Uri(#[from] UriError),
}

/// The wait ended before the server was up to date.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SentError {
    #[error("generation {asked} of the server is not the current one")]
    GenerationOver {
        asked: Generation,
        current: Option<Generation>,
    },
    #[error("the server did not take the document before the deadline")]
    DeadlineExceeded,
    #[error("the wait was cancelled by {cause}")]
    Cancelled { cause: Arc<Cause> },
}

/// The documents of one server, across all its generations. Clones share them.
#[derive(Clone)]
pub struct Documents {
    shared: Arc<DocumentsShared>,
}

struct DocumentsShared {
    /// Guards the documents and what the server knows about them. Held no longer than it takes to compare two texts.
    book: Mutex<Book>,
    /// How far the messages have come. It follows the book: see `Documents::publish`.
    progress: Slot<Progress>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Documents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Documents")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl Documents {
    pub fn new(settings: DocumentSettings, clock: Arc<dyn Clock>) -> Self {
        let book = Book::new(settings);
        let progress = Slot::new(book.progress());
        Self {
            shared: Arc::new(DocumentsShared {
                book: Mutex::new(book),
                progress,
                clock,
            }),
        }
    }

    /// Attaches a new generation of the server: all held documents are opened again, in the order of their paths. The
    /// earlier generation ends. Returns `None` if this one isn't newer than all before it.
    pub fn attach(
        &self,
        generation: Generation,
        sync: DocumentSync,
        encoding: PositionEncoding,
    ) -> Option<Outbox> {
        let attached = self.change(|book| book.attach(generation, sync, encoding));
        attached.then(|| Outbox::new(self.clone(), generation))
    }

    /// Ends a generation: waiters are notified, and no document is open any more.
    pub fn detach(&self, generation: Generation) {
        self.change(|book| book.detach(generation));
    }

    /// Takes a lease on a document. The server has it open with this text as long as the lease is held; if it is open
    /// already, the text is sent as a change.
    pub fn lease(
        &self,
        path: &Arc<Path>,
        language: &Arc<str>,
        text: &Arc<str>,
    ) -> Result<Lease, DocumentError> {
        let uri: Arc<str> = uri_of_path(path)?.into();
        let now = self.now();
        self.change(|book| {
            check_size(book, path, text)?;
            let limit = book.settings().max_held;
            if book.held_beside(path) >= limit {
                return Err(DocumentError::TooMany { limit });
            }
            book.lease(path, uri, language, text, now);
            Ok(())
        })?;
        Ok(Lease {
            documents: self.clone(),
            path: Arc::clone(path),
        })
    }

    /// The file was changed or removed by others. If there is no lease on it, the server reads it from disk again.
    pub fn changed_on_disk(&self, path: &Path) {
        self.change(|book| book.close_unheld(path));
    }

    /// Closes documents that have been idle for long. Due at [`Documents::next_idle`].
    pub fn close_idle(&self) {
        let now = self.now();
        self.change(|book| book.close_idle(now));
    }

    /// Waits until a generation of the server has been sent everything known about all documents.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn all_sent(
        &self,
        generation: Generation,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<(), SentError> {
        let Progress { newest, .. } = self.book().progress();
        let arrived =
            move |progress: &Progress| progress.generation != Some(generation) || progress.sent >= newest;
        let progress = self.progress().wait_until(arrived, deadline.clone(), scope);
        match progress.await {
            Ok(seen) if seen.state.generation == Some(generation) => Ok(()),
            Ok(seen) => Err(SentError::GenerationOver {
                asked: generation,
                current: seen.state.generation,
            }),
            Err(WaitError::DeadlineExceeded { .. }) => Err(SentError::DeadlineExceeded),
            Err(WaitError::Cancelled { cause, .. }) => Err(SentError::Cancelled { cause }),
        }
    }

    /// When the next document that is kept warm becomes idle.
    pub fn next_idle(&self) -> Option<Instant> {
        self.book().next_idle()
    }

    pub(crate) fn paths(&self) -> BTreeSet<Arc<Path>> {
        self.book().paths()
    }

    #[cfg(test)]
    pub(crate) fn text(&self, path: &Path) -> Option<Arc<str>> {
        self.book().text(path)
    }

    pub fn open(&self) -> usize {
        self.counts().open
    }

    pub fn counts(&self) -> DocumentCounts {
        self.book().counts()
    }

    pub(super) fn progress(&self) -> &Slot<Progress> {
        &self.shared.progress
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let mut book = self.book();
        let before = book.progress();
        let result = change(&mut book);
        let changed = book.progress() != before;
        drop(book);
        if changed {
            self.publish();
        }
        result
    }

    /// Updates the slot from the book. The slot is read first and the book afterwards: the winner writes something at
    /// least as new as what the losers saw, and a loser looks again. So the last one to change the book leaves the slot
    /// up to date.
    fn publish(&self) {
        let mut seen = self.shared.progress.read();
        loop {
            let progress = self.book().progress();
            if *seen.state == progress {
                return;
            }
            match self.shared.progress.transition(seen.generation, progress) {
                Ok(_) => return,
                Err(stale) => seen = stale.current,
            }
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.shared.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Instant {
        self.shared.clock.now()
    }
}

fn check_size(book: &Book, path: &Arc<Path>, text: &str) -> Result<(), DocumentError> {
    let limit = book.settings().max_bytes;
    if text.len() > limit {
        return Err(DocumentError::TooLarge {
            path: Arc::clone(path),
            bytes: text.len(),
            limit,
        });
    }
    Ok(())
}

/// A lease on a document, returned when it is dropped.
#[derive(Debug)]
#[must_use = "a lease that is dropped closes its document"]
pub struct Lease {
    documents: Documents,
    path: Arc<Path>,
}

impl Lease {
    pub fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Sets a new text. Setting the same text again changes nothing.
    pub fn sync(&self, text: &Arc<str>) -> Result<(), DocumentError> {
        let now = self.documents.now();
        self.documents.change(|book| {
            check_size(book, &self.path, text)?;
            book.sync(&self.path, text, now);
            Ok(())
        })
    }

    /// Sends the same text as a new version, so that the server rereads the document.
    pub fn touch(&self) {
        self.documents.change(|book| book.touch(&self.path));
    }

    /// The document was written to disk with its current text. Servers that ask for save notifications get one.
    pub fn saved(&self) {
        self.documents.change(|book| book.saved(&self.path));
    }

    /// Waits until a generation of the server has been sent everything known about the document. Returns the version
    /// and text that the server has, which positions in a question must refer to.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn sent(
        &self,
        generation: Generation,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<(i32, LineIndex), SentError> {
        loop {
            let delivery = self.documents.book().delivery(&self.path, generation);
            let change = match delivery {
                Delivery::Sent { version, text } => return Ok((version, text)),
                Delivery::NotAttached { current } => {
                    return Err(SentError::GenerationOver {
                        asked: generation,
                        current,
                    });
                }
                Delivery::Waiting { change } => change,
            };
            // Each iteration means that somebody else has changed the same document meanwhile; the deadline
            // bounds the loop.
            let arrived =
                |progress: &Progress| progress.generation != Some(generation) || progress.sent >= change;
            let progress = self.documents.progress();
            match progress.wait_until(arrived, deadline.clone(), scope).await {
                Ok(_) => {}
                Err(WaitError::DeadlineExceeded { .. }) => return Err(SentError::DeadlineExceeded),
                Err(WaitError::Cancelled { cause, .. }) => return Err(SentError::Cancelled { cause }),
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let now = self.documents.now();
        self.documents.change(|book| book.release(&self.path, now));
    }
}
