//! Work in a plan: its changesets, and writes to its sandbox.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use plans::{Attribution, FileOperation, PlanError};
use protocol::{ChangeFiles, ChangesetId, ChangesetList, FilesChanged, PlanId, StartChangeset};

use super::problems;
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::ids::{Id, Ids, id_of};
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
    post, path = "/v1/plans/{id}/changes", operation_id = "change_plan_files", tag = "plans",
    request_body = ChangeFiles,
    responses((status = 200, description = "What was recorded.", body = FilesChanged), problems::WriteFiles),
)]
pub(crate) async fn change_files(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    Actor(actor): Actor,
    body::Json(request): body::Json<ChangeFiles>,
) -> Result<Json<FilesChanged>, Problem> {
    let order = plans::ChangeFiles {
        by: actor.into(),
        changeset: request.changeset.as_deref().map(id_of).transpose()?,
        tool: tool_of(request.tool)?,
        reason: reason_of(request.reason)?,
        operations: operations_of(request.operations)?,
    };
    let changed = app.plans.change_files(id, order).await?;
    if let Some(error) = changed.stopped_by {
        return Err(stopped(error, changed.changes.len()));
    }
    Ok(Json(FilesChanged {
        changeset: changed.changeset.to_string(),
        changes: changed.changes.iter().map(recorded_to_wire).collect(),
    }))
}

/// The changesets of a plan, oldest first, without their changes.
#[utoipa::path(
    get, path = "/v1/plans/{id}/changesets", operation_id = "list_changesets", tag = "plans",
    responses((status = 200, description = "The changesets.", body = ChangesetList), problems::Read),
)]
pub(crate) async fn changesets(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
) -> Result<Json<ChangesetList>, Problem> {
    let changesets = app.plans.changesets(id).await?;
    Ok(Json(ChangesetList {
        changesets: changesets.iter().map(changeset_to_wire).collect(),
    }))
}

/// Starts a changeset, which becomes the caller's current one in the same step.
#[utoipa::path(
    post, path = "/v1/plans/{id}/changesets", operation_id = "start_changeset", tag = "plans",
    request_body = Option<StartChangeset>,
    responses((status = 201, description = "The changeset.", body = protocol::Changeset), problems::Change),
)]
pub(crate) async fn start_changeset(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<StartChangeset>,
) -> Result<(StatusCode, Json<protocol::Changeset>), Problem> {
    let new = Attribution {
        actor: actor.into(),
        tool: tool_of(request.tool)?,
        reason: reason_of(request.reason)?,
        job: None,
    };
    let started = app.plans.start_changeset(id, new).await?;
    Ok((StatusCode::CREATED, Json(changeset_to_wire(&started))))
}

/// A changeset with its changes, in the order of their effects.
#[utoipa::path(
    get, path = "/v1/plans/{id}/changesets/{changeset}", operation_id = "show_changeset", tag = "plans",
    responses((status = 200, description = "The changeset.", body = protocol::Changeset), problems::ReadChangeset),
)]
pub(crate) async fn changeset(
    State(app): State<Arc<App>>,
    Ids(plan, id): Ids<PlanId, ChangesetId>,
) -> Result<Json<protocol::Changeset>, Problem> {
    let changeset = app.plans.changeset(plan, id).await?;
    Ok(Json(changeset_to_wire(&changeset)))
}

/// Closes a changeset: it takes no more. To close it twice is to close it once.
#[utoipa::path(
    post, path = "/v1/plans/{id}/changesets/{changeset}/close", operation_id = "close_changeset", tag = "plans",
    responses((status = 200, description = "The changeset.", body = protocol::Changeset), problems::CloseChangeset),
)]
pub(crate) async fn close_changeset(
    State(app): State<Arc<App>>,
    Ids(plan, id): Ids<PlanId, ChangesetId>,
) -> Result<Json<protocol::Changeset>, Problem> {
    let changeset = app.plans.close_changeset(plan, id).await?;
    Ok(Json(changeset_to_wire(&changeset)))
}

/// The problem of the write that could not be done, after some that were.
fn stopped(error: PlanError, done: usize) -> Problem {
    let problem = Problem::from(error);
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
