//! Work in a plan: its changesets, and writes to its sandbox.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use plans::{Changeset, FileOperation, NewChangeset, PlanError};
use protocol::{ChangeFiles, ChangesetList, FilesChanged, StartChangeset};

use super::problems::plan_problem;
use super::{TheChangeset, ThePlan, changeset_id};
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::problem::Problem;
use crate::jobs::wire::invalid;
use crate::plans::wire::{self, BadOperation, changeset_to_wire, recorded_to_wire};

/// The tool of changes that come without one.
const USUAL_TOOL: &str = "api";
/// The longest name of a tool.
const TOOL_CHARACTERS: usize = 100;
/// The longest reason. It stands in the changeset.
const REASON_CHARACTERS: usize = 1000;
/// How many writes one request may ask for. The body has a limit too; this one keeps small writes from holding up the
/// others of the plan.
const OPERATIONS: usize = 1000;

/// Writes to the sandbox of a plan, and records it as it happens.
///
/// The writes are done in order. If one cannot be done, the ones before it stay and are recorded, and the answer is the
/// problem of that one.
#[utoipa::path(
    post, path = "/v1/plans/{id}/changes", operation_id = "change_plan_files", tag = "plans", request_body = ChangeFiles,
    params(("id" = String, Path, description = "The id of the plan.")),
    responses(
        (status = 200, description = "What was recorded.", body = FilesChanged),
        (status = 404, description = "`plan_not_found`, `changeset_not_found` or `file_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "`file_refused`, `file_stale`, `changeset_closed`, `plan_wrong_state`, `plan_busy` or \
          `plan_elsewhere`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 410, description = "`sandbox_gone`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 422, description = "`invalid_request` or `path_not_allowed`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 500, description = "`sandbox_failed`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn change_files(
    State(app): State<Arc<App>>,
    ThePlan(id): ThePlan,
    Actor(actor): Actor,
    body::Json(request): body::Json<ChangeFiles>,
) -> Result<Json<FilesChanged>, Problem> {
    let order = plans::ChangeFiles {
        by: actor.into(),
        changeset: request.changeset.as_deref().map(changeset_id).transpose()?,
        tool: tool_of(request.tool)?,
        reason: reason_of(request.reason)?,
        operations: operations_of(request.operations)?,
    };
    let changed = match app.plans.change_files(id, order).await {
        Ok(changed) => changed,
        Err(error) => return Err(plan_problem(&app.plans, error).await),
    };
    if let Some(error) = changed.stopped_by {
        return Err(stopped(&app, error, changed.changes.len()).await);
    }
    Ok(Json(FilesChanged {
        changeset: changed.changeset.to_string(),
        changes: changed.changes.iter().map(recorded_to_wire).collect(),
    }))
}

/// The changesets of a plan, oldest first, without their changes.
#[utoipa::path(
    get, path = "/v1/plans/{id}/changesets", operation_id = "list_changesets", tag = "plans",
    params(("id" = String, Path, description = "The id of the plan.")),
    responses(
        (status = 200, description = "The changesets.", body = ChangesetList),
        (status = 404, description = "`plan_not_found`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn changesets(
    State(app): State<Arc<App>>,
    ThePlan(id): ThePlan,
) -> Result<Json<ChangesetList>, Problem> {
    match app.plans.changesets(id).await {
        Ok(changesets) => Ok(Json(ChangesetList {
            changesets: changesets.iter().map(changeset_to_wire).collect(),
        })),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// Starts a changeset, which becomes the caller's current one in the same step.
#[utoipa::path(
    post, path = "/v1/plans/{id}/changesets", operation_id = "start_changeset", tag = "plans",
    request_body = Option<StartChangeset>,
    params(("id" = String, Path, description = "The id of the plan.")),
    responses(
        (status = 201, description = "The changeset.", body = protocol::Changeset),
        (status = 404, description = "`plan_not_found`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 409, description = "`plan_wrong_state` or `plan_busy`, with the plan as `current`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 503, description = "`log_refusing`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn start_changeset(
    State(app): State<Arc<App>>,
    ThePlan(id): ThePlan,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<StartChangeset>,
) -> Result<(StatusCode, Json<protocol::Changeset>), Problem> {
    let new = NewChangeset {
        actor: actor.into(),
        tool: tool_of(request.tool)?,
        reason: reason_of(request.reason)?,
        job: None,
    };
    let started = app.plans.start_changeset(id, new).await;
    let Json(changeset) = shown(&app, started).await?;
    Ok((StatusCode::CREATED, Json(changeset)))
}

/// A changeset with its changes, in the order of their effects.
#[utoipa::path(
    get, path = "/v1/plans/{id}/changesets/{changeset}", operation_id = "show_changeset", tag = "plans",
    params(
        ("id" = String, Path, description = "The id of the plan."),
        ("changeset" = String, Path, description = "The id of the changeset."),
    ),
    responses(
        (status = 200, description = "The changeset.", body = protocol::Changeset),
        (status = 404, description = "`plan_not_found` or `changeset_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn changeset(
    State(app): State<Arc<App>>,
    TheChangeset(plan, id): TheChangeset,
) -> Result<Json<protocol::Changeset>, Problem> {
    shown(&app, app.plans.changeset(plan, id).await).await
}

/// Closes a changeset: it takes no more. To close it twice is to close it once.
#[utoipa::path(
    post, path = "/v1/plans/{id}/changesets/{changeset}/close", operation_id = "close_changeset", tag = "plans",
    params(
        ("id" = String, Path, description = "The id of the plan."),
        ("changeset" = String, Path, description = "The id of the changeset."),
    ),
    responses(
        (status = 200, description = "The changeset.", body = protocol::Changeset),
        (status = 404, description = "`plan_not_found` or `changeset_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 503, description = "`log_refusing`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn close_changeset(
    State(app): State<Arc<App>>,
    TheChangeset(plan, id): TheChangeset,
) -> Result<Json<protocol::Changeset>, Problem> {
    shown(&app, app.plans.close_changeset(plan, id).await).await
}

async fn shown(app: &App, found: Result<Changeset, PlanError>) -> Result<Json<protocol::Changeset>, Problem> {
    match found {
        Ok(changeset) => Ok(Json(changeset_to_wire(&changeset))),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// The problem of the write that could not be done, after some that were.
async fn stopped(app: &App, error: PlanError, done: usize) -> Problem {
    let problem = plan_problem(&app.plans, error).await;
    match done {
        0 => problem,
        1 => problem.and("What came before it was done: 1 change is recorded."),
        _ => problem.and(&format!(
            "What came before it was done: {done} changes are recorded."
        )),
    }
}

/// The writes, once they have been checked. Nothing is written if one of them makes no sense.
fn operations_of(wanted: Vec<protocol::FileOperation>) -> Result<Vec<FileOperation>, Problem> {
    if wanted.is_empty() {
        return Err(invalid("operations", "is empty"));
    }
    if wanted.len() > OPERATIONS {
        return Err(invalid(
            "operations",
            &format!("has more than {OPERATIONS} writes"),
        ));
    }
    let operations = wanted.into_iter().enumerate().map(|(index, operation)| {
        wire::operation_of(operation).map_err(|bad| match bad {
            BadOperation::Field { field, why } => invalid(&format!("operations.{index}.{field}"), why),
            BadOperation::Path { field, bad } => {
                let detail = format!("{bad}.");
                Problem::new(protocol::ErrorCode::PathNotAllowed, detail)
                    .in_field(format!("operations.{index}.{field}"))
            }
        })
    });
    operations.collect()
}

fn tool_of(tool: Option<String>) -> Result<String, Problem> {
    match tool {
        None => Ok(USUAL_TOOL.to_owned()),
        Some(tool) if tool.trim().is_empty() => Err(invalid("tool", "is empty")),
        Some(tool) if tool.chars().any(char::is_control) => {
            Err(invalid("tool", "has control characters in it"))
        }
        Some(tool) if tool.chars().count() > TOOL_CHARACTERS => {
            let why = format!("has more than {TOOL_CHARACTERS} characters");
            Err(invalid("tool", &why))
        }
        Some(tool) => Ok(tool),
    }
}

fn reason_of(reason: String) -> Result<String, Problem> {
    if reason.chars().count() > REASON_CHARACTERS {
        let why = format!("has more than {REASON_CHARACTERS} characters");
        return Err(invalid("reason", &why));
    }
    Ok(reason)
}
