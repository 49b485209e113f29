//! What a server is sent before a question, so that its answer is about the current files.

use std::{path::Path, sync::Arc, time::Duration};

use kernel::{Deadline, Generation};
use lifecycle::RunningServer as _;

use super::{
    conversation::{Attempt, Talk},
    error::AskError,
    open_texts::OpenError,
};
use crate::{
    documents::{Lease, SentError},
    queries::{DiagnosticsBy, Query},
    text::LineIndex,
};

/// How long a server may take to reread a file before it is asked about it. One that reads many headers takes seconds;
/// a question isn't delayed longer than this.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);

impl Talk<'_> {
    /// Makes sure that the server has the current text of the file, and of all other open files.
    pub(super) async fn open_document(&self) -> Result<Option<Lease>, Attempt> {
        let site = Arc::clone(self.site);
        let language = Arc::clone(&self.chosen.language_id);
        let path = Arc::clone(&self.choice.path);
        let limit = self.languages.shared.document_limit_bytes;
        let opened = self.languages.blocking(move || {
            let (texts, documents) = (&site.texts, &site.documents);
            if path.is_dir() {
                texts.refresh(documents, None, limit);
                return Ok(None);
            }
            texts.refresh(documents, Some(&path), limit);
            texts.open(documents, &path, &language, limit).map(Some)
        });
        opened.await?.map_err(|error| {
            Attempt::Failed(match error {
                OpenError::Text(error) => error.into(),
                OpenError::Document(error) => error.into(),
            })
        })
    }

    /// Makes a server reread the file if another file has changed, and the server neither wants to be notified of that
    /// nor is asked for diagnostics: new diagnostics show that it has reread the file.
    pub(super) async fn looked_at(
        &self,
        lease: &Lease,
        query: &Query,
        deadline: &Deadline,
    ) -> Result<(Arc<Path>, i32, LineIndex), Attempt> {
        let told = self.server.told();
        let document = self.sent(lease, deadline).await?;
        let is_unaware = !told.watches()
            && told.capabilities().diagnostics() == DiagnosticsBy::Push
            && !matches!(query, Query::Diagnostics { .. })
            && told.is_out_of_date(&document.0, document.1);
        if !is_unaware {
            return Ok(document);
        }
        lease.touch();
        let (path, version, text) = self.sent(lease, deadline).await?;
        let soon = Deadline::after(&self.languages.shared.clock, LOOK_PATIENCE);
        tokio::select! {
            biased;
            // A server that pushes nothing is asked anyway.
            _ = told.pushed(&path, version, &soon, self.scope) => {}
            _ = self.server.ended() => return Err(Attempt::WentAway),
        }
        Ok((path, version, text))
    }

    /// Opens files that others have changed recently. A server that is notified of a changed file reads it when it has
    /// time, and answers from its old state until then. A change to an open document takes effect at once.
    pub(super) async fn open_changed(&self) -> Result<(), Attempt> {
        let told = Arc::clone(self.server.told());
        let changed = told.changed_like(&self.choice.path);
        if changed.is_empty() {
            return Ok(());
        }
        let site = Arc::clone(self.site);
        let language = Arc::clone(&self.chosen.language_id);
        let limit = self.languages.shared.document_limit_bytes;
        let opened = self.languages.blocking(move || {
            for path in changed {
                let path: Arc<Path> = path.into();
                // If a file can't be opened, the server has to rely on what it knows about it.
                drop(site.texts.open(&site.documents, &path, &language, limit));
                told.forget_change(&path);
            }
        });
        Ok(opened.await?)
    }

    /// Waits until the server has been sent everything about documents.
    pub(super) async fn all_sent(&self, deadline: &Deadline) -> Result<(), Attempt> {
        let generation = Generation::from_u64(self.server.generation().get());
        let sent = self.site.documents.all_sent(generation, deadline, self.scope);
        sent.await.map_err(|error| self.not_sent(error))
    }

    fn not_sent(&self, error: SentError) -> Attempt {
        match error {
            SentError::GenerationOver { .. } => Attempt::WentAway,
            source => Attempt::Failed(AskError::Sent {
                server: Arc::clone(&self.site.key.server),
                source,
            }),
        }
    }

    /// Waits until the server has been sent the file.
    pub(super) async fn sent(
        &self,
        lease: &Lease,
        deadline: &Deadline,
    ) -> Result<(Arc<Path>, i32, LineIndex), Attempt> {
        let generation = Generation::from_u64(self.server.generation().get());
        let sent = lease.sent(generation, deadline, self.scope).await;
        let (version, text) = sent.map_err(|error| self.not_sent(error))?;
        Ok((Arc::clone(lease.path()), version, text))
    }
}
