//! What a server has reported, without the waiting.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    queries::{Capabilities, Expectation, PushedDiagnostics, Readiness, WatchedFiles},
    servers::{Chosen, Readiness as Signal},
    text::path_of_uri,
    wire::{ResponseError, error_code},
};

/// The method under which servers register the files that they watch.
const WATCHED_FILES: &str = "workspace/didChangeWatchedFiles";

/// How many changed files are opened: as many as somebody edits between two questions. If there are more, as after a
/// checkout, no file is opened, and the server reads them in its own time.
const MOST_CHANGED: usize = 32;

#[derive(Debug)]
pub(super) struct ReportState {
    pub(super) capabilities: Arc<Capabilities>,
    pub(super) watched: WatchedFiles,
    pub(super) pushed: PushedDiagnostics,
    /// Changed files that aren't open yet.
    pub(super) changed: BTreeSet<PathBuf>,
    pub(super) readiness: Readiness,
    /// The log message which reports that the workspace has been read.
    awaited: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum MessageEffect {
    Awaited,
    Something,
}

impl ReportState {
    pub(super) fn new(chosen: &Chosen, now: Instant) -> Self {
        // Wait for the first work only if the server is known to report it.
        let (expectation, awaited) = match chosen.readiness {
            Signal::ServerStatus => (Expectation::Work, None),
            Signal::LogMessage(message) => (Expectation::Nothing, Some(message)),
            Signal::WorkDoneProgress | Signal::Silent => (Expectation::Nothing, None),
        };
        let mut readiness = Readiness::new(expectation, now);
        if awaited.is_some() {
            readiness.server_status(&json!({"quiescent": false}), now);
        }
        Self {
            capabilities: Arc::default(),
            watched: WatchedFiles::new(chosen.root.to_path_buf()),
            pushed: PushedDiagnostics::default(),
            changed: BTreeSet::new(),
            readiness,
            awaited,
        }
    }

    /// The handshake is over. The server may begin its work.
    pub(super) fn initialized(&mut self, capabilities: Value, now: Instant) {
        Arc::make_mut(&mut self.capabilities).initialized(capabilities);
        self.readiness.initialized(now);
    }

    /// A log message of the server. For some servers, it is the only report that they have read the workspace.
    pub(super) fn said(&mut self, text: &str, now: Instant) -> MessageEffect {
        match self.awaited {
            Some(awaited) if text.contains(awaited) => {
                self.awaited = None;
                self.readiness.server_status(&json!({"quiescent": true}), now);
                MessageEffect::Awaited
            }
            _ => MessageEffect::Something,
        }
    }

    pub(super) fn note_change(&mut self, path: &Path) {
        if self.changed.len() >= MOST_CHANGED {
            self.changed.clear();
        }
        self.changed.insert(path.to_owned());
    }

    pub(super) fn register(&mut self, params: &Value) -> Result<(), ResponseError> {
        for registration in list(params, "registrations") {
            let (Some(id), Some(method)) = (registration["id"].as_str(), registration["method"].as_str())
            else {
                return Err(refused("a registration without an id or a method"));
            };
            let options = &registration["registerOptions"];
            if method == WATCHED_FILES {
                self.watched.register(id, options).map_err(refused)?;
            }
            Arc::make_mut(&mut self.capabilities)
                .register(id, method, options.clone())
                .map_err(refused)?;
        }
        Ok(())
    }

    pub(super) fn unregister(&mut self, params: &Value) {
        // The protocol itself misspells this.
        for name in ["unregisterations", "unregistrations"] {
            for registration in list(params, name) {
                if let Some(id) = registration["id"].as_str() {
                    self.watched.unregister(id);
                    Arc::make_mut(&mut self.capabilities).unregister(id);
                }
            }
        }
    }

    pub(super) fn publish(&mut self, mut params: Value) {
        let path = params["uri"].as_str().and_then(|uri| path_of_uri(uri).ok());
        let version = params["version"]
            .as_i64()
            .and_then(|version| i32::try_from(version).ok());
        if let (Some(path), Value::Array(items)) = (path, params["diagnostics"].take()) {
            self.pushed.pushed(&path, version, items);
        }
    }
}

fn list<'a>(params: &'a Value, name: &str) -> &'a [Value] {
    params[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn refused(reason: impl ToString) -> ResponseError {
    ResponseError::new(error_code::INVALID_PARAMS, reason.to_string())
}
