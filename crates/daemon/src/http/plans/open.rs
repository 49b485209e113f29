//! A plan is opened.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use plans::{NewPlan, PlanOrigin};
use protocol::OpenPlan;

use super::problems;
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::idempotency::one_key;
use crate::http::ids::id_in;
use crate::http::problem::Problem;
use crate::jobs::wire::invalid;
use crate::plans::wire;

/// The longest title. It stands in every list.
const TITLE_CHARACTERS: usize = 200;
/// How many checks a plan may begin with. Each of them is a job whenever they run.
const CHECKS_LIMIT: usize = 64;
/// The longest command of a check. It stands in the plan.
const CHECK_LIMIT_BYTES: usize = 4096;

/// Opens a plan: takes the workspace as it is, and makes a sandbox of it.
///
/// When the answer comes, commands can run in the sandbox (`POST /v1/jobs` with `command.plan`), and files in it can be
/// read and written. A second request with the same idempotency key is the same plan.
#[utoipa::path(
    post, path = "/v1/plans", operation_id = "open_plan", tag = "plans", request_body = OpenPlan,
    params(("Idempotency-Key" = Option<String>, Header, description = "The same as `idempotency_key`.")),
    responses(
        (status = 200, description = "It was opened before with the same idempotency key.", body = protocol::Plan),
        (status = 201, description = "It is new.", body = protocol::Plan),
        problems::Open,
    ),
)]
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Actor(actor): Actor,
    body::Json(mut request): body::Json<OpenPlan>,
) -> Result<Response, Problem> {
    request.idempotency_key = one_key(&headers, request.idempotency_key)?;
    let new = to_new_plan(request, &actor)?;
    let opened = app.plans.open_plan(new).await?;
    let status = match opened.known {
        true => StatusCode::OK,
        false => StatusCode::CREATED,
    };
    let plan = wire::show(&app.plans, &app.durable.machines, &opened.plan).await?;
    Ok((status, Json(plan)).into_response())
}

pub(crate) fn to_new_plan(request: OpenPlan, by: &str) -> Result<NewPlan, Problem> {
    let on = match (request.directory, request.parent) {
        (Some(_), Some(_)) => {
            return Err(invalid("directory", "cannot be given together with `parent`"));
        }
        (None, None) => return Err(invalid("directory", "is missing, and so is `parent`")),
        (None, Some(parent)) => PlanOrigin::Plan(id_in("parent", &parent)?),
        (Some(directory), None) => PlanOrigin::Directory(absolute(directory)?),
    };
    if request.max_parallel == Some(0) {
        return Err(invalid("max_parallel", "must be at least 1"));
    }
    Ok(NewPlan {
        on,
        title: title_of(request.title.unwrap_or_default())?,
        checks: checked_checks("checks", request.checks)?,
        strategy: request.strategy,
        max_parallel: request.max_parallel,
        if_child_fails: request.if_child_fails.unwrap_or_default(),
        idempotency_key: request.idempotency_key,
        by: by.into(),
    })
}

fn absolute(directory: String) -> Result<PathBuf, Problem> {
    let path = PathBuf::from(directory);
    match path.is_absolute() {
        true if path.to_string_lossy().contains('\0') => Err(invalid("directory", "has a NUL in it")),
        true => Ok(path),
        false => Err(invalid("directory", "is not an absolute path")),
    }
}

fn title_of(title: String) -> Result<String, Problem> {
    if title.chars().count() > TITLE_CHARACTERS {
        let why = format!("has more than {TITLE_CHARACTERS} characters");
        return Err(invalid("title", &why));
    }
    match title.chars().any(char::is_control) {
        true => Err(invalid("title", "has control characters in it")),
        false => Ok(title),
    }
}

/// Commands of checks, if all of them can be run.
pub(in crate::http) fn checked_checks(field: &str, checks: Vec<String>) -> Result<Vec<String>, Problem> {
    if checks.len() > CHECKS_LIMIT {
        return Err(invalid(field, &format!("has more than {CHECKS_LIMIT} commands")));
    }
    for (index, command) in checks.iter().enumerate() {
        let field = format!("{field}.{index}");
        if command.trim().is_empty() {
            return Err(invalid(&field, "is empty"));
        }
        if command.len() > CHECK_LIMIT_BYTES {
            return Err(invalid(
                &field,
                &format!("has more than {CHECK_LIMIT_BYTES} bytes"),
            ));
        }
        if command.contains('\0') {
            return Err(invalid(&field, "has a NUL in it, which no command can be given"));
        }
    }
    Ok(checks)
}
