//! What one process of a server has reported by itself: its capabilities, what it watches, its readiness, and its
//! diagnostics.

mod answers;
mod state;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use kernel::{Clock, Deadline, Scope, Slot, WaitError};
use serde_json::{Value, value::RawValue};

use super::{record::RecordLevel, site::Site};
use crate::{
    client::Incoming,
    documents::{DocumentMessage, Outgoing, TextIs},
    queries::{Capabilities, DiagnosticsBy, FileEvent, Push, QueryError, ReadyState},
    servers::Chosen,
    text::uri_of_path,
    wire::ResponseError,
};
use answers::Answers;
use state::{MessageEffect, ReportState};
use watch::{FileChange, PathChange};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Awaited {
    Push(Push),
    /// A later version of the document has been sent.
    Superseded,
    /// The server wants to be asked for them, but registered that only after the handshake.
    WantsToBeAsked,
}

/// What one process of a server has reported. Waiters check the state again after each change.
#[derive(Debug)]
pub(crate) struct ServerReports {
    site: Arc<Site>,
    answers: Answers,
    clock: Arc<dyn Clock>,
    /// Guards the reports.
    state: Mutex<ReportState>,
    /// Counts the changes of the state.
    changes: Slot<u64>,
}

impl ServerReports {
    pub(super) fn new(site: &Arc<Site>, chosen: &Chosen, clock: &Arc<dyn Clock>) -> Self {
        let uri = uri_of_path(&chosen.root).unwrap_or_default();
        Self {
            site: Arc::clone(site),
            answers: Answers::new(uri, &chosen.root, chosen.settings.clone()),
            clock: Arc::clone(clock),
            state: Mutex::new(ReportState::new(chosen, clock.now())),
            changes: Slot::new(0),
        }
    }

    pub(super) fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// Handles the answer to `initialize`. Earlier registrations stay.
    pub(super) fn initialized(&self, capabilities: Value) -> Arc<Capabilities> {
        let now = self.clock.now();
        self.change(|state| state.initialized(capabilities, now));
        self.capabilities()
    }

    pub(crate) fn capabilities(&self) -> Arc<Capabilities> {
        Arc::clone(&self.state().capabilities)
    }

    pub(crate) fn readiness(&self) -> ReadyState {
        let now = self.clock.now();
        self.state().readiness.state(now)
    }

    /// Waits until it has read the workspace, or returns its progress.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub(crate) async fn ready(&self, deadline: &Deadline, scope: &Scope) -> Result<(), ReadyState> {
        self.wait_for(deadline, scope, |state, now| match state.readiness.state(now) {
            ReadyState::Ready => Ok(()),
            indexing @ ReadyState::Indexing { .. } => Err((indexing, state.readiness.next_look(now))),
        })
        .await
    }

    /// Waits for the diagnostics that it pushes for a version of a document; `None` if there is a later version.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub(crate) async fn pushed(
        &self,
        path: &Path,
        version: i32,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<Awaited, QueryError> {
        self.wait_for(deadline, scope, |state, _| {
            if state.capabilities.diagnostics() != DiagnosticsBy::Push {
                return Ok(Awaited::WantsToBeAsked);
            }
            if state.pushed.is_superseded(path, version) {
                return Ok(Awaited::Superseded);
            }
            let current = state.pushed.current(&self.site.key.server, path, version);
            current.map(Awaited::Push).map_err(|error| (error, None))
        })
        .await
    }

    pub(crate) fn watches(&self) -> bool {
        !self.state().watched.is_empty()
    }

    /// Whether another file has changed since a version of a document was sent.
    pub(crate) fn is_out_of_date(&self, path: &Path, version: i32) -> bool {
        self.state().pushed.is_out_of_date(path, version)
    }

    /// The diagnostics that it has pushed for a version of a document, if it has.
    pub(crate) fn pushed_already(&self, path: &Path, version: i32) -> Option<Push> {
        let current = self.state().pushed.current(&self.site.key.server, path, version);
        current.ok()
    }

    /// Filters file changes to those that it registered for, as the parameters of the notification.
    pub(super) fn watched(&self, changes: &[PathChange]) -> Option<Value> {
        let mut state = self.state();
        for change in changes {
            state.pushed.changed(&change.path);
            if event_of(change.change) != FileEvent::Deleted
                && state.watched.matches(&change.path, event_of(change.change))
            {
                state.note_change(&change.path);
            }
        }
        let events: Vec<(&Path, FileEvent)> = changes
            .iter()
            .map(|change| (change.path.as_path(), event_of(change.change)))
            .filter(|(path, event)| state.watched.matches(path, *event))
            .collect();
        drop(state);
        let named = events.into_iter().filter_map(|(path, event)| {
            let uri = uri_of_path(path).ok()?;
            Some(serde_json::json!({"uri": uri, "type": event.number()}))
        });
        let named: Vec<Value> = named.collect();
        (!named.is_empty()).then(|| serde_json::json!({ "changes": named }))
    }

    /// Changed files with the same extension that it was notified of.
    pub(crate) fn changed_like(&self, path: &Path) -> Vec<PathBuf> {
        let state = self.state();
        let alike = state.changed.iter();
        alike
            .filter(|changed| changed.extension() == path.extension())
            .cloned()
            .collect()
    }

    pub(crate) fn forget_change(&self, path: &Path) {
        self.state().changed.remove(path);
    }

    /// A message about a document is about to be sent. Earlier pushes no longer count.
    pub(super) fn document_sent(&self, message: &Outgoing) {
        self.change(|state| match (&message.message, message.version()) {
            (said, Some(version)) => {
                // A document is opened with its text on disk, and the watch reports changes to that.
                if matches!(
                    said,
                    DocumentMessage::DidChange {
                        text: TextIs::New,
                        ..
                    }
                ) {
                    state.pushed.changed(&message.path);
                }
                state.pushed.sending(&message.path, version);
            }
            (DocumentMessage::DidClose, None) => state.pushed.closing(&message.path),
            (_, None) => {}
        });
    }

    /// Repeats the check until it succeeds, the deadline passes or the scope is cancelled. A failed check returns
    /// when time alone may change that.
    async fn wait_for<T, E>(
        &self,
        deadline: &Deadline,
        scope: &Scope,
        look: impl Fn(&ReportState, Instant) -> Result<T, (E, Option<Instant>)>,
    ) -> Result<T, E> {
        loop {
            let seen = *self.changes.read().state;
            let now = self.clock.now();
            let looked = look(&self.state(), now);
            let (missing, again) = match looked {
                Ok(found) => return Ok(found),
                Err(missing) => missing,
            };
            if deadline.has_passed() || scope.is_cancelled() {
                return Err(missing);
            }
            let again = again.map_or_else(Deadline::never, |at| {
                Deadline::after(&self.clock, at.saturating_duration_since(now))
            });
            let changed = self
                .changes
                .wait_until(move |count| *count != seen, deadline.clone(), scope);
            tokio::select! {
                biased;
                changed = changed => match changed {
                    Ok(_) => {}
                    Err(WaitError::DeadlineExceeded { .. } | WaitError::Cancelled { .. }) => return Err(missing),
                },
                () = again.passed() => {}
            }
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut ReportState) -> T) -> T {
        let result = change(&mut self.state());
        loop {
            let seen = self.changes.read();
            // The first writer has woken the waiters, but perhaps before this change was made.
            if self.changes.transition(seen.generation, *seen.state + 1).is_ok() {
                return result;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, ReportState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_message(&self, params: &Value) {
        let level = match params["type"].as_u64() {
            Some(1) => RecordLevel::Error,
            Some(2) => RecordLevel::Warning,
            Some(3) => RecordLevel::Info,
            _ => RecordLevel::Log,
        };
        let text = params["message"].as_str().unwrap_or_default();
        self.site.record.add(level, text);
        let now = self.clock.now();
        if self.state().said(text, now) == MessageEffect::Awaited {
            self.change(|_| ());
        }
    }
}

impl Incoming for ServerReports {
    fn notification(&self, method: &str, params: Option<&RawValue>) {
        let params = parse(params);
        let now = self.clock.now();
        match method {
            "window/logMessage" | "window/showMessage" => self.note_message(&params),
            "$/progress" => self.change(|state| state.readiness.progress(&params, now)),
            "experimental/serverStatus" => self.change(|state| state.readiness.server_status(&params, now)),
            "textDocument/publishDiagnostics" => self.change(|state| state.publish(params)),
            _ => tracing::trace!(server = %self.site.key, method, "ignored a notification"),
        }
    }

    fn request(&self, method: &str, params: Option<&RawValue>) -> Result<Value, ResponseError> {
        let params = parse(params);
        match method {
            "client/registerCapability" => self.change(|state| state.register(&params)).map(|()| Value::Null),
            "client/unregisterCapability" => {
                self.change(|state| state.unregister(&params));
                Ok(Value::Null)
            }
            "window/showMessageRequest" => {
                self.note_message(&params);
                Ok(Value::Null)
            }
            "workspace/applyEdit" => {
                let refusal = "the daemon changes no files by itself; ask for the edit instead";
                self.site
                    .record
                    .add(RecordLevel::State, "refused an unrequested edit");
                Ok(serde_json::json!({"applied": false, "failureReason": refusal}))
            }
            _ => self.answers.answer(method, &params),
        }
    }
}

fn event_of(change: FileChange) -> FileEvent {
    match change {
        FileChange::Created => FileEvent::Created,
        FileChange::Changed => FileEvent::Changed,
        FileChange::Deleted => FileEvent::Deleted,
    }
}

fn parse(params: Option<&RawValue>) -> Value {
    params
        .and_then(|params| serde_json::from_str(params.get()).ok())
        .unwrap_or_default()
}
