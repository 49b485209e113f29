//! The history of a plan: page by page, or as a stream that continues as long as the client reads.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use eventlog::{Event, Sequence};
use http::HeaderMap;
use plans::Moment;
use protocol::{PlanHistory, PlanId};
use serde::Deserialize;

use super::problems;
use crate::app::App;
use crate::http::events::{Part, last_event_id};
use crate::http::ids::Id;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::sse;
use crate::http::sse::OpenStream;
use crate::plans::wire::moment_to_wire;

/// Lists the history of a plan, oldest first.
#[utoipa::path(
    get, path = "/v1/plans/{id}/history", operation_id = "show_plan_history", tag = "plans",
    params(
        ("after" = Option<u64>, Query, description = "Only what came after this place; from the start if it is left out."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000,
         description = "How many at most; 100 if it is left out."),
    ),
    responses((status = 200, description = "The moments of its life.", body = PlanHistory), problems::Read),
)]
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    Query(part): Query<Part>,
) -> Result<Json<PlanHistory>, Problem> {
    let limit = part.limit()?;
    app.plans.get(id).await?;
    let moments = app.plans.timeline(id, part.after(), limit).await?;
    Ok(Json(PlanHistory {
        moments: moments.iter().map(moment_to_wire).collect(),
    }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowParameters {
    after: Option<u64>,
}

/// Streams the history of a plan as server-sent events: first the existing ones, then new ones as they
/// happen.
///
/// The id of an event is its sequence number, its name is what happened, and its data is a `PlanMoment`. A
/// `resync` event means that events the reader hasn't seen were dropped. The stream ends when the daemon
/// stops. Reconnect with `Last-Event-ID` to continue without missing or repeating events.
#[utoipa::path(
    get, path = "/v1/plans/{id}/events", operation_id = "follow_plan", tag = "plans",
    params(
        ("after" = Option<u64>, Query, description = "Only what came after this place; from the start if it is left out."),
        ("Last-Event-ID" = Option<u64>, Header, description = "Goes before `after`."),
    ),
    responses(
        (status = 200, description = "The moments, as they come.", content((String = "text/event-stream"))),
        problems::Read,
        OpenStream,
    ),
)]
pub(crate) async fn follow(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    Query(parameters): Query<FollowParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = Sequence::from_u64(parameters.after.unwrap_or_default());
    let after = last_event_id(&headers)?.map_or(after, |seen| seen.sequence);
    app.plans.get(id).await?;
    let scope = app.life.scope();
    let tail = app.plans.follow(id, after, &scope)?;
    sse::answer(&app, tail, told)
}

fn told(event: &Event) -> String {
    let moment = moment_to_wire(&Moment::of(event));
    sse::numbered(moment.sequence, &moment.event, &moment)
}
