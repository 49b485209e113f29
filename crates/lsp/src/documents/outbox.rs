//! The sender: messages of one generation, one after the other.

use kernel::{Deadline, Generation, Scope, WaitError};

use super::{book::Documents, message::Outgoing, state::Progress};

/// The messages for one generation of a server. Dropping it ends the generation, because its messages would no longer
/// be sent.
#[derive(Debug)]
pub struct Outbox {
    documents: Documents,
    generation: Generation,
}

impl Outbox {
    pub(super) fn new(documents: Documents, generation: Generation) -> Self {
        Self {
            documents,
            generation,
        }
    }

    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Waits for the next message. Calling it again confirms that the previous one was sent; on failure, drop the
    /// outbox instead. `None` once the generation has ended or the scope is cancelled.
    ///
    /// *Cancel safety*: may be dropped while it waits. A message that it has returned counts as told.
    pub async fn next(&mut self, scope: &Scope) -> Option<Outgoing> {
        self.documents.change(|book| book.sent(self.generation));
        loop {
            let message = self.documents.change(|book| book.next_message(self.generation));
            if message.is_some() {
                return message;
            }
            let more = |progress: &Progress| {
                progress.generation != Some(self.generation) || progress.sent < progress.newest
            };
            let progress = self.documents.progress();
            match progress.wait_until(more, Deadline::never(), scope).await {
                Ok(seen) if seen.state.generation == Some(self.generation) => {}
                Ok(_) | Err(WaitError::Cancelled { .. } | WaitError::DeadlineExceeded { .. }) => return None,
            }
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.documents.detach(self.generation);
    }
}
