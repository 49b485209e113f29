//! Validates requests, and converts them to the types of `plans`.

use std::path::PathBuf;

use plans::{FileOperation, ManifestId, NewPlan, PlanOrigin};
use protocol::{ApplyPlans, CommitPlans, OpenPlan, PlanId};

use super::files::{BadOperation, operation_of};
use crate::http::Problem;
use crate::http::ids::id_in;
use crate::jobs::wire::invalid;

/// The longest title. Every list shows it.
const TITLE_CHARACTERS: usize = 200;
/// How many checks a plan may start with. Each run of a check is a job.
const CHECKS_LIMIT: usize = 64;
/// The longest command of a check. It is stored in the plan.
const CHECK_LIMIT_BYTES: usize = 4096;
/// The tool of changes that don't name one.
const USUAL_TOOL: &str = "api";
/// The longest name of a tool.
const TOOL_CHARACTERS: usize = 100;
/// The longest reason. It is stored in the changeset.
const REASON_CHARACTERS: usize = 1000;
/// How many writes one request may contain. The body has a limit too; this one keeps many small writes from delaying
/// other writes to the plan.
const OPERATIONS: usize = 1000;
/// How many plans can be applied together. Each of them is read in full.
const TOGETHER: usize = 100;
/// The longest commit message.
const MESSAGE_LIMIT_BYTES: usize = 64 * 1024;

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

/// Validates the commands of checks.
pub(crate) fn checked_checks(field: &str, checks: Vec<String>) -> Result<Vec<String>, Problem> {
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

/// Validates the writes. If one of them is invalid, nothing is written.
pub(crate) fn operations_of(wanted: Vec<protocol::FileOperation>) -> Result<Vec<FileOperation>, Problem> {
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
        operation_of(operation).map_err(|bad| match bad {
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

pub(crate) fn tool_of(tool: Option<String>) -> Result<String, Problem> {
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

pub(crate) fn reason_of(reason: String) -> Result<String, Problem> {
    if reason.chars().count() > REASON_CHARACTERS {
        let why = format!("has more than {REASON_CHARACTERS} characters");
        return Err(invalid("reason", &why));
    }
    Ok(reason)
}

pub(crate) fn plans_of(ids: &[String]) -> Result<Vec<PlanId>, Problem> {
    if ids.is_empty() {
        return Err(invalid("plans", "is empty"));
    }
    if ids.len() > TOGETHER {
        return Err(invalid("plans", &format!("has more than {TOGETHER} plans")));
    }
    let mut plans = Vec::with_capacity(ids.len());
    for (index, id) in ids.iter().enumerate() {
        let field = format!("plans.{index}");
        let plan = id_in(&field, id)?;
        if plans.contains(&plan) {
            return Err(invalid(&field, "is there twice"));
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// What the caller saw in each plan; empty if it hasn't looked.
pub(crate) fn seen_in(request: &ApplyPlans) -> Result<Vec<ManifestId>, Problem> {
    if !request.seen.is_empty() && request.seen.len() != request.plans.len() {
        return Err(invalid("seen", "does not have one fingerprint for each plan"));
    }
    let seen = request.seen.iter().enumerate().map(|(index, text)| {
        text.parse()
            .map_err(|_| invalid(&format!("seen.{index}"), "is not a fingerprint"))
    });
    seen.collect()
}

/// Validates the message of a commit.
pub(crate) fn checked_message(commit: CommitPlans) -> Result<CommitPlans, Problem> {
    match &commit.message {
        Some(text) if text.trim().is_empty() => Err(invalid("commit.message", "is empty")),
        Some(text) if text.len() > MESSAGE_LIMIT_BYTES => {
            let why = format!("has more than {MESSAGE_LIMIT_BYTES} bytes");
            Err(invalid("commit.message", &why))
        }
        Some(text) if text.contains('\0') => Err(invalid("commit.message", "has a NUL in it")),
        _ => Ok(commit),
    }
}
