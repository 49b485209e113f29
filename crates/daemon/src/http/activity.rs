//! Recent activity across the whole daemon: as a list, and as a stream with a new list after each change.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use eventlog::{ChangesEnd, LogError, StreamChanges};
use kernel::{Deadline, Scope};
use protocol::{ActivityKind, ActivityList};
use serde::Deserialize;

use super::lists::{self, Moving};
use super::log_problem::ReadLog;
use super::lsp::Servers;
use super::problem::Problem;
use super::query::{Query, checked_limit};
use super::sse::OpenStream;
use crate::activity::{PREFIXES, newest};
use crate::app::App;

/// How many events are listed by default.
const USUAL_LIMIT: u32 = 50;
/// How many events can be listed. Each may require reading its stream.
const MOST: u32 = 200;
/// How many events are in each list of the stream.
const TOLD: u32 = 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    kind: Option<ActivityKind>,
    limit: Option<u32>,
}

/// Lists recent activity, newest first: of sessions, plans, jobs, language servers, breakers and the daemon.
///
/// Only the newest events of each object are included, and repeated events are combined into one. Each object
/// has its own endpoint for its complete history.
#[utoipa::path(
    get, path = "/v1/activity", operation_id = "list_activity", tag = "daemon",
    params(
        ("kind" = Option<ActivityKind>, Query, description = "Only what happened to things of this kind."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "How many at most; 50 if it is left out."),
    ),
    responses((status = 200, description = "What happened.", body = ActivityList), ReadLog),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<ActivityList>, Problem> {
    let limit = checked_limit(parameters.limit, USUAL_LIMIT, MOST)?;
    let activity = newest(&app, parameters.kind, limit).await?;
    Ok(Json(ActivityList { activity }))
}

/// Streams recent activity, now and after each change.
///
/// Each event is named `activity`, and its data is an `ActivityList` with the newest 20. The first event is
/// sent immediately. Several changes in a short time may be combined into one event. The stream ends when the
/// daemon stops.
#[utoipa::path(
    get, path = "/v1/activity/events", operation_id = "follow_activity", tag = "daemon",
    responses(
        (status = 200, description = "What happened, again and again.", content((String = "text/event-stream"))),
        OpenStream,
    ),
)]
pub(crate) async fn follow(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    // From here on no change is missed; the list is read afterwards.
    let changes = Changes {
        moves: PREFIXES.map(|prefix| app.durable.log.changes(prefix)),
        servers: Servers::of(&app).await,
    };
    lists::follow(app, "activity", changes, |app| {
        Box::pin(async move {
            let activity = newest(app, None, TOLD).await?;
            Ok::<_, LogError>(ActivityList { activity })
        })
    })
}

/// Reports activity in any of the streams.
struct Changes {
    moves: [StreamChanges; PREFIXES.len()],
    servers: Servers,
}

impl Moving for Changes {
    async fn moved(&mut self, silence: Deadline, scope: &Scope) -> Result<(), ChangesEnd> {
        let [sessions, plans, jobs, breakers] = &mut self.moves;
        tokio::select! {
            moved = sessions.next(silence.clone(), scope) => moved,
            moved = plans.next(silence.clone(), scope) => moved,
            moved = jobs.next(silence.clone(), scope) => moved,
            moved = breakers.next(silence.clone(), scope) => moved,
            moved = self.servers.moved(silence.clone(), scope) => moved,
        }
    }
}
