//! What happens to a plan: page by page, or as a stream that goes on as long as somebody reads.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use eventlog::{Event, Sequence};
use http::HeaderMap;
use plans::Moment;
use protocol::PlanHistory;
use serde::Deserialize;

use super::ThePlan;
use super::problems::plan_problem;
use crate::app::App;
use crate::http::events::last_event_id;
use crate::http::problem::Problem;
use crate::http::query::{Query, checked_limit};
use crate::http::sse;
use crate::plans::wire::moment_to_wire;

/// How many moments are in a page, unless the caller says so.
const USUAL_LIMIT: u32 = 100;
/// How many moments are in a page at most. One has about two hundred bytes.
const MOST: u32 = 1000;

/// What may be asked of a history.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryParameters {
    after: Option<u64>,
    limit: Option<u32>,
}

/// What has happened to a plan, oldest first.
#[utoipa::path(
    get, path = "/v1/plans/{id}/history", operation_id = "show_plan_history", tag = "plans",
    params(
        ("id" = String, Path, description = "The id of the plan."),
        ("after" = Option<u64>, Query, description = "Only what came after this place; from the start if it is left out."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000,
         description = "How many at most; 100 if it is left out."),
    ),
    responses(
        (status = 200, description = "The moments of its life.", body = PlanHistory),
        (status = 400, description = "`invalid_query`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 404, description = "`plan_not_found`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    ThePlan(id): ThePlan,
    Query(parameters): Query<HistoryParameters>,
) -> Result<Json<PlanHistory>, Problem> {
    let after = Sequence::from_u64(parameters.after.unwrap_or_default());
    let limit = checked_limit(parameters.limit, USUAL_LIMIT, MOST)?;
    let moments = match app.plans.get(id).await {
        Ok(_) => app.plans.timeline(id, after, limit).await,
        Err(error) => Err(error),
    };
    match moments {
        Ok(moments) => Ok(Json(PlanHistory {
            moments: moments.iter().map(moment_to_wire).collect(),
        })),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// What may be asked of a stream.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowParameters {
    after: Option<u64>,
}

/// What happens to a plan, as a stream of server-sent events: what is there, then what comes.
///
/// The id of an event is its place, its name is what happened, its data is a `PlanMoment`. An event `resync` says that
/// moments were dropped which the reader has not seen. The stream ends when the daemon does; a reader that comes back
/// with `Last-Event-ID` misses nothing and sees nothing twice.
#[utoipa::path(
    get, path = "/v1/plans/{id}/events", operation_id = "follow_plan", tag = "plans",
    params(
        ("id" = String, Path, description = "The id of the plan."),
        ("after" = Option<u64>, Query, description = "Only what came after this place; from the start if it is left out."),
        ("Last-Event-ID" = Option<u64>, Header, description = "Goes before `after`."),
    ),
    responses(
        (status = 200, description = "The moments, as they come.", content((String = "text/event-stream"))),
        (status = 400, description = "`invalid_query`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 404, description = "`plan_not_found`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 429, description = "`stream_limit_reached`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn follow(
    State(app): State<Arc<App>>,
    ThePlan(id): ThePlan,
    Query(parameters): Query<FollowParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = Sequence::from_u64(parameters.after.unwrap_or_default());
    let after = last_event_id(&headers)?.map_or(after, |seen| seen.sequence);
    if let Err(error) = app.plans.get(id).await {
        return Err(plan_problem(&app.plans, error).await);
    }
    let scope = app.life.scope();
    match app.plans.follow(id, after, &scope) {
        Ok(tail) => sse::answer(&app, tail, told),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

fn told(event: &Event) -> String {
    let moment = moment_to_wire(&Moment::of(event));
    sse::numbered(moment.sequence, &moment.event, &moment)
}
