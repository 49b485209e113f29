//! One call of a tool: who calls, and what the tool can reach.

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ContentBlock, InputResponses, ProgressNotificationParam};
use rmcp::service::RequestContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::clients::Client;
use super::error::ToolError;
use super::inside::Inside;
use crate::app::App;

/// A call that is being answered.
pub(super) struct Call<'a> {
    pub(super) app: &'a Arc<App>,
    pub(super) inside: &'a Inside,
    pub(super) client: Arc<Client>,
    pub(super) context: &'a RequestContext<RoleServer>,
    /// What the client has found out for us since we asked, if we did.
    pub(super) answers: Option<InputResponses>,
    /// What we gave it to remember meanwhile.
    pub(super) state: Option<String>,
}

/// What a tool answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reply {
    /// For the model.
    pub(super) text: String,
    /// The same for programs, where that helps. It has everything that matters, since some clients show nothing else.
    pub(super) value: Option<Value>,
    /// Whether what was asked for has failed, although the tool itself has not.
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

    pub(super) fn content(&self) -> Vec<ContentBlock> {
        vec![ContentBlock::text(self.text.clone())]
    }
}

impl Call<'_> {
    /// Asks the daemon for something, as this client.
    pub(super) async fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, ToolError> {
        Ok(self.inside.get(&self.client.actor, path).await?)
    }

    /// Has the daemon do something, as this client.
    pub(super) async fn post<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<A, ToolError> {
        Ok(self.inside.post(&self.client.actor, path, body).await?)
    }

    /// Returns when the client does not wait for the answer any more.
    pub(super) async fn interrupted(&self) {
        let gone = self.client.gone.scope();
        tokio::select! {
            () = self.context.ct.cancelled() => {}
            _ = gone.wait() => {}
        }
    }

    /// Tells a client that wants to know how far it is.
    pub(super) async fn progress(&self, done: f64, message: String) {
        let Some(token) = self.context.meta.get_progress_token() else {
            return;
        };
        let told = ProgressNotificationParam::new(token, done).with_message(message);
        if let Err(error) = self.context.peer.notify_progress(told).await {
            tracing::debug!(%error, "a client cannot be told of progress");
        }
    }

    /// Whether the client wants to know how far it is.
    pub(super) fn wants_progress(&self) -> bool {
        self.context.meta.get_progress_token().is_some()
    }

    /// The first root of a client that has roots.
    pub(super) async fn root(&self) -> Option<PathBuf> {
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
            .inspect_err(|error| tracing::debug!(%error, "a client does not tell its roots"))
            .ok()?;
        let first = roots.roots.first()?;
        let path = super::door::decoded(first.uri.strip_prefix("file://")?)?;
        Some(PathBuf::from(path)).filter(|path| path.is_absolute())
    }
}

/// The arguments of a tool, read.
pub(super) fn arguments<A: DeserializeOwned>(given: Map<String, Value>) -> Result<A, ToolError> {
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|error| {
        let path = error.path().to_string();
        let why = error.into_inner().to_string();
        let quoted = |beginning: &str| {
            let rest = why.strip_prefix(beginning)?;
            rest.split('`').next().map(str::to_owned)
        };
        let field = quoted("missing field `").or_else(|| quoted("unknown field `"));
        let field = match (path.as_str(), field) {
            (".", Some(field)) => field,
            (".", None) => "arguments".to_owned(),
            (path, _) => path.to_owned(),
        };
        ToolError::argument(field, why)
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[expect(dead_code, reason = "only its shape counts")]
        path: String,
        #[serde(default)]
        #[expect(dead_code, reason = "only its shape counts")]
        line: Option<u32>,
    }

    #[test]
    fn a_wrong_argument_is_named() {
        for (given, expected) in [
            (json!({}), "`path`: missing field `path`"),
            (
                json!({"path": 1}),
                "`path`: invalid type: integer `1`, expected a string",
            ),
            (
                json!({"path": "a", "line": "x"}),
                "`line`: invalid type: string \"x\", expected u32",
            ),
            (
                json!({"path": "a", "lines": 1}),
                "`lines`: unknown field `lines`, expected `path` or `line`",
            ),
        ] {
            let Value::Object(given) = given else { panic!() };
            let error = arguments::<Sample>(given).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
