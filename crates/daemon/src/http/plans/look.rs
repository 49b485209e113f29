//! Lists and shows plans.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use plans::PlanQuery;
use protocol::{ErrorCode, PlanFile, PlanId, PlanList, PlanState, StrategyList};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;

use super::problems;
use crate::app::App;
use crate::http::ids::Id;
use crate::http::lists::{self, NEWEST};
use crate::http::problem::Problem;
use crate::http::query::{Query, checked_limit};
use crate::http::sse::OpenStream;
use crate::plans::{acts, wire};

/// How many plans are in a page by default.
const USUAL_LIMIT: u32 = 50;
/// How many plans can be in a page. A plan has a few kilobytes.
const MOST: u32 = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParameters {
    workspace: Option<String>,
    directory: Option<String>,
    state: Option<String>,
    parent: Option<String>,
    before: Option<String>,
    limit: Option<u32>,
}

/// Lists plans, newest first.
#[utoipa::path(
    get, path = "/v1/plans", operation_id = "list_plans", tag = "plans",
    params(
        ("workspace" = Option<String>, Query, description = "Only those of the workspace with this id."),
        ("directory" = Option<String>, Query,
         description = "Only those of the workspace that this directory is in; none if it is in none."),
        ("state" = Option<String>, Query, example = "open,sealed",
         description = "Only those in one of these states, with commas between them."),
        ("parent" = Option<String>, Query, description = "Only children of this plan."),
        ("before" = Option<String>, Query,
         description = "Only those that were opened before this plan: `next_before` of the page before."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 500,
         description = "How many at most; 50 if it is left out."),
    ),
    responses((status = 200, description = "The plans.", body = PlanList), problems::List),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(parameters): Query<ListParameters>,
) -> Result<Json<PlanList>, Problem> {
    let query = PlanQuery {
        workspace: queried_id("workspace", parameters.workspace.as_deref())?,
        parent: queried_id("parent", parameters.parent.as_deref())?,
        states: states_of(parameters.state.as_deref())?,
        before: queried_id("before", parameters.before.as_deref())?,
        limit: checked_limit(parameters.limit, USUAL_LIMIT, MOST)?,
    };
    let directory = parameters.directory.map(absolute).transpose()?;
    acts::list(&app, query, directory.as_deref()).await.map(Json)
}

/// Streams the list of newest plans, now and after each change.
///
/// Each event is named `plans`, and its data is a `PlanList` with the newest 50. The first event is sent
/// immediately. Several changes in a short time may be combined into one event. The stream ends when the
/// daemon stops.
#[utoipa::path(
    get, path = "/v1/plans/events", operation_id = "follow_plans", tag = "plans",
    responses(
        (status = 200, description = "The plans, again and again.", content((String = "text/event-stream"))),
        OpenStream,
    ),
)]
pub(crate) async fn follow(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let moves = app.plans.moves();
    lists::follow(app, "plans", moves, |app| {
        let newest = PlanQuery {
            limit: NEWEST,
            ..PlanQuery::default()
        };
        Box::pin(wire::list(&app.plans, &app.durable.machines, newest))
    })
}

/// Lists the sandbox strategies of this machine.
#[utoipa::path(
    get, path = "/v1/plans/strategies", operation_id = "list_strategies", tag = "plans",
    responses((status = 200, description = "The strategies, the best first.", body = StrategyList)),
)]
pub(crate) async fn strategies(State(app): State<Arc<App>>) -> Json<StrategyList> {
    Json(wire::strategies_to_wire(&app.plans))
}

/// Returns a plan.
#[utoipa::path(
    get, path = "/v1/plans/{id}", operation_id = "show_plan", tag = "plans",
    responses((status = 200, description = "The plan.", body = protocol::Plan), problems::Read),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
) -> Result<Json<protocol::Plan>, Problem> {
    acts::show(&app, id).await.map(Json)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileParameters {
    path: Option<String>,
}

/// Returns what is at a path in the plan's sandbox: a file with its content, a symlink, or a directory with
/// the names of its entries.
#[utoipa::path(
    get, path = "/v1/plans/{id}/file", operation_id = "read_plan_file", tag = "plans",
    params(
        ("path" = Option<String>, Query, description = "The path from the root of the workspace; the root if it is left out."),
    ),
    responses((status = 200, description = "What is there.", body = PlanFile), problems::ReadFile),
)]
pub(crate) async fn file(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    Query(parameters): Query<FileParameters>,
) -> Result<Json<PlanFile>, Problem> {
    let path = parameters.path.unwrap_or_default();
    acts::read_file(&app, id, &path).await.map(Json)
}

fn absolute(directory: String) -> Result<PathBuf, Problem> {
    let path = PathBuf::from(directory);
    match path.is_absolute() {
        true => Ok(path),
        false => Err(bad_query("directory", "it is not an absolute path")),
    }
}

fn queried_id<T: std::str::FromStr>(field: &str, text: Option<&str>) -> Result<Option<T>, Problem> {
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|_| {
        let text = text.unwrap_or_default().escape_debug();
        bad_query(field, &format!("`{text}` is not an id of that kind"))
    })
}

/// Parses a comma-separated list of states.
fn states_of(text: Option<&str>) -> Result<Vec<PlanState>, Problem> {
    let words = text.into_iter().flat_map(|text| text.split(','));
    let states = words.map(|word| {
        let deserializer: serde::de::value::StrDeserializer<'_, ValueError> = word.into_deserializer();
        PlanState::deserialize(deserializer).map_err(|error| bad_query("state", &error.to_string()))
    });
    states.collect()
}

fn bad_query(field: &str, why: &str) -> Problem {
    Problem::new(ErrorCode::InvalidQuery, format!("In `{field}`: {why}.")).in_field(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_states_stand_with_commas() {
        for (text, expected) in [
            (None, Ok(vec![])),
            (Some("open"), Ok(vec![PlanState::Open])),
            (
                Some("sealed,applied"),
                Ok(vec![PlanState::Sealed, PlanState::Applied]),
            ),
            (Some("open,"), Err("In `state`: unknown variant ``, ")),
            (Some("lazy"), Err("In `state`: unknown variant `lazy`, ")),
        ] {
            match (states_of(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(problem), Err(beginning)) => {
                    assert!(problem.detail().starts_with(beginning), "{problem:?}");
                }
                (found, _) => panic!("{text:?}: {found:?}"),
            }
        }
    }
}
