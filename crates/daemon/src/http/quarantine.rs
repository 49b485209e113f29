//! Unreadable heads of the log, over HTTP.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use base64::{Engine, prelude::BASE64_STANDARD};
use eventlog::CommitError;
use http::StatusCode;
use protocol::{ErrorCode, QuarantineList, QuarantinedHead, QuarantinedStream};
use serde::Deserialize;

use super::log_problem::{ReadLog, WriteLog};
use super::problem::Problem;
use super::query::Query;
use super::refusals::families;
use crate::app::App;
use crate::durable::quarantine::{self, QuarantineError};

families! {
    FindQuarantined = [NotQuarantined] + ReadLog;
    DropQuarantined = [StaleGeneration] + FindQuarantined + WriteLog;
}

/// Lists heads found unreadable since the daemon started. They stay in the log but are omitted from lists.
#[utoipa::path(
    get, path = "/v1/log/quarantine", operation_id = "list_quarantine", tag = "log",
    responses((status = 200, description = "What is quarantined.", body = QuarantineList), ReadLog),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<QuarantineList>, Problem> {
    let list = quarantine::list(&app.durable.log).await?;
    let to_wire =
        |(quarantined, stored): (eventlog::Quarantined, Option<eventlog::StoredHead>)| QuarantinedStream {
            stream: quarantined.stream,
            kind: quarantined.kind.to_string(),
            reason: quarantined.reason,
            version: stored.as_ref().map(|stored| stored.version.get()),
            size_bytes: stored.map(|stored| stored.head.body.len() as u64),
        };
    Ok(Json(QuarantineList {
        quarantined: list.into_iter().map(to_wire).collect(),
    }))
}

/// Returns the stored content of a head that can't be read.
#[utoipa::path(
    get, path = "/v1/log/quarantine/{stream}", operation_id = "show_quarantined", tag = "log",
    responses((status = 200, description = "What is stored.", body = QuarantinedHead), FindQuarantined),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Path(stream): Path<String>,
) -> Result<Json<QuarantinedHead>, Problem> {
    let found = quarantine::look(&app.durable.log, &stream)
        .await
        .map_err(problem)?;
    let head = &found.stored.head;
    let text = std::str::from_utf8(&head.body).ok();
    Ok(Json(QuarantinedHead {
        stream,
        kind: head.kind.to_string(),
        status: head.status.to_string(),
        reason: found.reason,
        version: found.stored.version.get(),
        body: text.map(str::to_owned),
        body_base64: text.is_none().then(|| BASE64_STANDARD.encode(&head.body)),
    }))
}

/// The version that a caller must have seen to drop a head.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seen {
    version: u64,
}

/// Permanently removes a head that can't be read, and its events.
#[utoipa::path(
    delete, path = "/v1/log/quarantine/{stream}", operation_id = "drop_quarantined", tag = "log",
    params(("version" = u64, Query, description = "The version that you saw.")),
    responses((status = 204, description = "It is gone."), DropQuarantined),
)]
pub(crate) async fn forget(
    State(app): State<Arc<App>>,
    Path(stream): Path<String>,
    Query(seen): Query<Seen>,
) -> Result<StatusCode, Problem> {
    quarantine::drop_stream(&app.durable.log, &stream, seen.version)
        .await
        .map_err(problem)?;
    Ok(StatusCode::NO_CONTENT)
}

fn problem(error: QuarantineError) -> Problem {
    match error {
        QuarantineError::NotQuarantined(stream) => Problem::new(
            ErrorCode::NotQuarantined,
            format!("`{}` is not there, or can be read.", stream.escape_debug()),
        ),
        QuarantineError::Log(error) => error.into(),
        QuarantineError::Commit(CommitError::Conflict { .. }) => Problem::new(
            ErrorCode::StaleGeneration,
            "The stream has moved on since you looked at it.",
        ),
        QuarantineError::Commit(error) => error.into(),
    }
}
