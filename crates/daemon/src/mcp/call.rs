//! One tool call: its caller, and what the tool can reach.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{InputResponses, ProgressNotificationParam};
use rmcp::service::RequestContext;
use serde_json::Value;

use super::clients::Client;
use super::error::ToolError;
use crate::app::App;
use crate::http::caller::Caller;

pub(super) struct Call<'a> {
    pub(super) app: &'a Arc<App>,
    pub(super) client: Arc<Client>,
    pub(super) context: &'a RequestContext<RoleServer>,
    /// The client's answers to our question, if we asked one.
    pub(super) answers: Option<InputResponses>,
    /// The state that we gave it along with the question.
    pub(super) state: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reply {
    /// For the model.
    pub(super) text: String,
    /// The same for programs, where that helps. It includes everything that matters, because some clients show nothing
    /// else.
    pub(super) value: Option<Value>,
    /// Whether the requested operation failed, although the tool itself didn't.
    pub(super) failed: bool,
}

impl Reply {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    pub(super) fn with(mut self, value: Value) -> Self {
        self.value = Some(value);
        self
    }

    pub(super) fn failed(mut self) -> Self {
        self.failed = true;
        self
    }
}

impl Call<'_> {
    /// The caller on whose behalf the tool acts.
    pub(super) fn caller(&self) -> Caller {
        Caller::named(self.client.actor.clone())
    }

    /// The directory of a call: the one that it names, or the client's working directory.
    pub(super) async fn directory(&self, named: Option<&str>) -> Result<PathBuf, ToolError> {
        match (named.map(Path::new), &self.client.about.directory) {
            (Some(named), _) if named.is_absolute() => Ok(named.to_owned()),
            (Some(named), Some(directory)) => Ok(directory.join(named)),
            (Some(_), None) => Err(ToolError::argument("directory", "is not an absolute path")),
            (None, Some(directory)) => Ok(directory.clone()),
            (None, None) => self.root().await.ok_or(ToolError::NoDirectory),
        }
    }

    /// Returns when the client no longer waits for the answer.
    pub(super) async fn interrupted(&self) {
        let gone = self.client.gone.scope();
        tokio::select! {
            () = self.context.ct.cancelled() => {}
            _ = gone.wait() => {}
        }
    }

    /// Sends progress to a client that asked for it.
    pub(super) async fn progress(&self, done: f64, message: String) {
        let Some(token) = self.context.meta.get_progress_token() else {
            return;
        };
        let told = ProgressNotificationParam::new(token, done).with_message(message);
        if let Err(error) = self.context.peer.notify_progress(told).await {
            tracing::debug!(%error, "a client can't be sent its progress");
        }
    }

    /// Whether the client asked for progress.
    pub(super) fn wants_progress(&self) -> bool {
        self.context.meta.get_progress_token().is_some()
    }

    /// The client's first root, if it has any.
    async fn root(&self) -> Option<PathBuf> {
        if let Some(known) = self.client.root() {
            return known;
        }
        let has_roots = self
            .context
            .client_capabilities()
            .is_some_and(|capabilities| capabilities.roots.is_some());
        let root = match has_roots {
            true => self.ask_for_root().await,
            false => None,
        };
        self.client.note_root(root.clone());
        root
    }

    #[expect(
        deprecated,
        reason = "clients of the protocol before 2026-07-28 have nothing else"
    )]
    async fn ask_for_root(&self) -> Option<PathBuf> {
        let asked = tokio::select! {
            asked = self.context.peer.list_roots() => asked,
            () = self.interrupted() => return None,
        };
        let roots = asked
            .inspect_err(|error| tracing::debug!(%error, "a client doesn't list its roots"))
            .ok()?;
        let first = roots.roots.first()?;
        let path = super::headers::decoded(first.uri.strip_prefix("file://")?)?;
        Some(PathBuf::from(path)).filter(|path| path.is_absolute())
    }
}
