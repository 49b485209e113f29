//! Converts a request to a job.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use eventlog::{BlobError, BlobId, Log, LogError};
use jobs::{Lane, NewJob, Pool, Priority, RetryPolicy};
use plans::{Plan, PlanError, Plans};
use protocol::{ErrorCode, HomeId, JobIfInterrupted, PlanId, SubmitJob};

use crate::http::consent::StartedFor;
use crate::http::log_problem::refusing;
use crate::http::{Problem, blocking};
use crate::jobs::{COMMAND, CommandPayload, NewCommand, PlanSite};
use crate::plans::follower;

/// The most output that a job may ask to keep: the log has to store it.
const MOST_OUTPUT_BYTES: u64 = 1 << 30;

/// The job that a request asks for. Submitting it checks limits such as the length of names. The input of the command
/// is already stored in the log here; if the job isn't submitted, it is garbage-collected later. The environment isn't
/// included.
///
/// *Cancel safety*: if dropped, no job is submitted, and what was stored in the log is collected later.
pub(crate) async fn to_new_job(
    request: SubmitJob,
    by: &str,
    started_for: StartedFor,
    (log, home_id): (&Log, HomeId),
    plans: &Plans,
) -> Result<NewCommand, Problem> {
    let stdin = stdin_of(&request)?;
    check_attached(&request)?;
    let plan = plan_of(&request, plans, home_id).await?;
    let payload = match &plan {
        None => {
            let command = request.command.clone();
            blocking(move || CommandPayload::from_wire(&command)).await?
        }
        Some(plan) => {
            let site = PlanSite {
                id: plan.id,
                workspace: &plan.record.facts.root,
                sandbox: &plans.sandbox_root(plan),
            };
            CommandPayload::from_wire_in(&request.command, site)
        }
    };
    let mut payload = payload.map_err(|bad| invalid(bad.field, &bad.why))?;
    payload.is_of_agent = started_for == StartedFor::Agent;
    let environment = match request.anywhere {
        // The daemon that runs it finds everything in the log.
        true => None,
        false => payload.take_environment(),
    };
    let title = match request.title {
        Some(title) if title.trim().is_empty() => return Err(invalid("title", "is empty")),
        Some(title) => title,
        None => payload.title(),
    };
    let mut new = NewJob::new(COMMAND, &title, payload.encode().map_err(Problem::internal)?, by);
    new.essence = Some(payload.essence().map_err(Problem::internal)?);
    if let Some(order) = request.finish {
        let plan = plan.as_ref();
        let plan = plan.ok_or_else(|| invalid("finish", "needs `command.plan`, the plan to be finished"))?;
        if order.commit.is_some() && order.then != protocol::FinishThen::Apply {
            return Err(invalid("finish.commit", "needs `then` to be `apply`"));
        }
        new.then = Some(Box::new(follower(plan, order, (by, &title), home_id)));
    }
    if request.foreground {
        new.facts.pool = Pool::Foreground;
    }
    let facts = &mut new.facts;
    if let Some(level) = request.priority {
        facts.priority =
            Priority::new(level).ok_or_else(|| invalid("priority", "must lie between -10 and 10"))?;
    }
    // A command belongs to the machine that has its directory.
    if !request.anywhere {
        facts.home = Some(home_id.to_string().into());
    }
    facts.lane = match (request.lane, &plan) {
        (Some(lane), _) => Some(checked_lane(lane)?),
        (None, Some(plan)) => lane_of_children(plan, plans).await?,
        (None, None) => None,
    };
    for (index, id) in request.after.iter().enumerate() {
        let parsed = id.parse();
        facts
            .after
            .push(parsed.map_err(|_| invalid(&format!("after.{index}"), "is not the id of a job"))?);
    }
    if let Some(deadline_ms) = request.deadline_ms {
        let in_time = Duration::from_millis(positive("deadline_ms", deadline_ms)?);
        facts.deadline = Some(log.now().after(in_time));
    }
    facts.time_limit_ms = request
        .time_limit_ms
        .map(|ms| positive("time_limit_ms", ms))
        .transpose()?;
    facts.retry = retry_policy(request.max_retries, request.retry_pause_ms);
    if let Some(wish) = request.if_interrupted {
        facts.if_interrupted = wish;
    }
    facts.idempotency_key = request.idempotency_key;
    if let Some(bytes) = request.output_limit_bytes {
        if bytes > MOST_OUTPUT_BYTES {
            let why = format!("must not be more than {MOST_OUTPUT_BYTES}");
            return Err(invalid("output_limit_bytes", &why));
        }
        facts.output_limit_bytes = bytes;
    }
    new.delay = Duration::from_millis(request.delay_ms.unwrap_or_default());
    if let Some(stdin) = stdin {
        new.blobs.push(put(log, &stdin).await?);
    }
    Ok(NewCommand {
        job: new,
        environment,
    })
}

/// The plan that a command is to run in, if any. The plan must accept commands and be on this daemon.
async fn plan_of(request: &SubmitJob, plans: &Plans, home_id: HomeId) -> Result<Option<Plan>, Problem> {
    let Some(id) = &request.command.plan else {
        return Ok(None);
    };
    let Ok(id) = id.parse::<PlanId>() else {
        let detail = format!("`{}` is not the id of a plan.", id.escape_debug());
        return Err(Problem::new(ErrorCode::PlanNotFound, detail).in_field("command.plan"));
    };
    if request.anywhere {
        return Err(invalid(
            "anywhere",
            "makes no sense with a plan, whose sandbox is here",
        ));
    }
    match takes_commands(plans, id, home_id).await {
        Ok(plan) => Ok(Some(plan)),
        Err(error) => Err(Problem::from(error).in_field("command.plan")),
    }
}

async fn takes_commands(plans: &Plans, id: PlanId, home_id: HomeId) -> Result<Plan, PlanError> {
    let plan = plans.get(id).await?;
    let record = &plan.record;
    if !matches!(
        record.state,
        protocol::PlanState::Open | protocol::PlanState::Sealed
    ) {
        return Err(PlanError::WrongState {
            plan: id,
            state: record.state,
        });
    }
    if record.facts.home != home_id {
        return Err(PlanError::Elsewhere {
            plan: id,
            home: record.facts.home,
        });
    }
    if !record.has_sandbox {
        return Err(PlanError::SandboxGone(id));
    }
    Ok(plan)
}

/// The lane that commands of a plan share with those of its siblings, if the parent limits how many run at once.
async fn lane_of_children(plan: &Plan, plans: &Plans) -> Result<Option<Lane>, Problem> {
    let Some(parent) = plan.record.facts.parent else {
        return Ok(None);
    };
    let facts = match plans.get(parent).await {
        Ok(parent) => parent.record.facts,
        Err(error) => return Err(Problem::from(error)),
    };
    Ok(facts.max_parallel.and_then(NonZeroU16::new).map(|limit| Lane {
        name: Arc::from(format!("plan-children/{parent}")),
        limit,
    }))
}

/// A problem with one field of the request. The sentence starts with the field's name.
pub(crate) fn invalid(field: &str, why: &str) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, format!("`{field}` {why}.")).in_field(field)
}

fn stdin_of(request: &SubmitJob) -> Result<Option<Vec<u8>>, Problem> {
    match (&request.command.stdin, &request.command.stdin_base64) {
        (None, None) => Ok(None),
        (Some(text), None) => Ok(Some(text.clone().into_bytes())),
        (None, Some(text)) => {
            let decoded = STANDARD.decode(text);
            let decoded = decoded.map_err(|_| invalid("command.stdin_base64", "is not Base64"))?;
            Ok(Some(decoded))
        }
        (Some(_), Some(_)) => Err(invalid(
            "command.stdin_base64",
            "cannot be given together with `stdin`",
        )),
    }
}

/// Input from a client exists only once, and only on this daemon.
fn check_attached(request: &SubmitJob) -> Result<(), Problem> {
    let command = &request.command;
    let is_repeated = request.max_retries.is_some_and(|retries| retries > 0)
        || request.if_interrupted == Some(JobIfInterrupted::Repeat);
    let why = match command.attach_stdin {
        true if command.stdin.is_some() || command.stdin_base64.is_some() => {
            "cannot be given together with `stdin`"
        }
        true if is_repeated => "cannot be used with a job that may be repeated: the input is there once",
        true if request.anywhere => "cannot be used with `anywhere`: the input comes to this daemon",
        _ => return Ok(()),
    };
    Err(invalid("command.attach_stdin", why))
}

fn checked_lane(lane: protocol::JobLane) -> Result<Lane, Problem> {
    Ok(Lane {
        name: Arc::from(lane.name),
        limit: NonZeroU16::new(lane.limit).ok_or_else(|| invalid("lane.limit", "must be at least 1"))?,
    })
}

fn positive(field: &str, ms: u64) -> Result<u64, Problem> {
    if ms == 0 {
        Err(invalid(field, "must be more than 0"))
    } else {
        Ok(ms)
    }
}

fn retry_policy(max_retries: Option<u16>, pause_ms: Option<u64>) -> RetryPolicy {
    let usual = RetryPolicy::default();
    let first_pause_ms = pause_ms.unwrap_or(usual.first_pause_ms);
    RetryPolicy {
        max_retries: max_retries.unwrap_or(usual.max_retries),
        first_pause_ms,
        // A first pause above the default maximum raises the maximum.
        longest_pause_ms: usual.longest_pause_ms.max(first_pause_ms),
    }
}

async fn put(log: &Log, content: &[u8]) -> Result<BlobId, Problem> {
    match log.put_blob(content).await {
        Ok((id, _)) => Ok(id),
        Err(BlobError::Log(LogError::Closed)) => Err(Problem::new(
            ErrorCode::ShuttingDown,
            "The daemon takes no more jobs.",
        )),
        Err(BlobError::Log(reason)) => Err(refusing(&reason)),
        Err(error) => Err(Problem::internal(error)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::app::App;
    use crate::app::tests::detached;

    /// The result of a request: the job's fields that differ from the default, or the error.
    async fn check(app: &App, request: Value, expected: Result<Value, &str>) {
        let shown = request.to_string();
        let request = serde_json::from_value(request).unwrap();
        let home_id = HomeId::generate();
        let found = to_new_job(
            request,
            "me",
            StartedFor::Anybody,
            (&app.durable.log, home_id),
            &app.plans,
        )
        .await;
        let found = found
            .as_ref()
            .map(|new| members(&new.job, home_id))
            .map_err(Problem::detail);
        assert_eq!(found, expected, "{shown}");
    }

    fn members(new: &NewJob, home_id: HomeId) -> Value {
        let mut usual = serde_json::to_value(NewJob::new(COMMAND, "true", Vec::new(), "me").facts).unwrap();
        usual["home"] = json!(home_id.to_string());
        let mut facts = serde_json::to_value(&new.facts).unwrap();
        facts["home"] = json!(new.facts.home.as_deref());
        facts
            .as_object_mut()
            .unwrap()
            .retain(|name, value| usual.get(name) != Some(value));
        facts["blobs"] = json!(new.blobs.len());
        facts["delay_ms"] = json!(u64::try_from(new.delay.as_millis()).unwrap());
        facts
    }

    #[tokio::test]
    async fn a_request_becomes_a_job_or_a_complaint() {
        let app = detached().await;
        let with = |name: &str, value: Value| {
            let mut request = json!({ "command": { "argv": ["true"], "directory": "/" } });
            request[name] = value;
            request
        };
        let reading = |name: &str, value: &str| {
            let mut request = with("priority", json!(0));
            request["command"][name] = json!(value);
            request
        };
        let same = || json!({ "blobs": 0, "delay_ms": 0 });
        let and = |name: &str, value: Value| {
            let mut members = same();
            members[name] = value;
            members
        };
        let id = "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX";
        for (request, expected) in [
            (with("priority", json!(0)), Ok(same())),
            (with("priority", json!(-10)), Ok(and("priority", json!(-10)))),
            (
                with("title", json!("a title")),
                Ok(and("title", json!("a title"))),
            ),
            (
                with("lane", json!({ "name": "cargo:/a" })),
                Ok(and("lane", json!({ "name": "cargo:/a", "limit": 1 }))),
            ),
            (with("after", json!([id])), Ok(and("after", json!([id])))),
            (with("delay_ms", json!(7)), Ok(and("delay_ms", json!(7)))),
            (with("anywhere", json!(true)), Ok(and("home", Value::Null))),
            (
                with("time_limit_ms", json!(7)),
                Ok(and("time_limit_ms", json!(7))),
            ),
            (
                with("max_retries", json!(2)),
                Ok(and(
                    "retry",
                    json!({ "max_retries": 2, "first_pause_ms": 1_000, "longest_pause_ms": 60_000 }),
                )),
            ),
            (
                with("retry_pause_ms", json!(90_000)),
                Ok(and(
                    "retry",
                    json!({ "max_retries": 0, "first_pause_ms": 90_000, "longest_pause_ms": 90_000 }),
                )),
            ),
            (
                with("if_interrupted", json!("repeat")),
                Ok(and("if_interrupted", json!("repeat"))),
            ),
            (
                with("idempotency_key", json!("k")),
                Ok(and("idempotency_key", json!("k"))),
            ),
            (
                with("output_limit_bytes", json!(9)),
                Ok(and("output_limit_bytes", json!(9))),
            ),
            (reading("stdin", "text"), Ok(and("blobs", json!(1)))),
            (reading("stdin_base64", "/wA="), Ok(and("blobs", json!(1)))),
            (
                reading("stdin_base64", "?"),
                Err("`command.stdin_base64` is not Base64."),
            ),
            (
                reading("shell", "true"),
                Err("`command` has both `argv` and `shell`; give one of them."),
            ),
            (
                with("priority", json!(11)),
                Err("`priority` must lie between -10 and 10."),
            ),
            (with("title", json!(" ")), Err("`title` is empty.")),
            (
                with("lane", json!({ "name": "a", "limit": 0 })),
                Err("`lane.limit` must be at least 1."),
            ),
            (
                with("after", json!([id, "x"])),
                Err("`after.1` is not the id of a job."),
            ),
            (
                with("time_limit_ms", json!(0)),
                Err("`time_limit_ms` must be more than 0."),
            ),
            (
                with("deadline_ms", json!(0)),
                Err("`deadline_ms` must be more than 0."),
            ),
            (
                with("output_limit_bytes", json!(MOST_OUTPUT_BYTES + 1)),
                Err("`output_limit_bytes` must not be more than 1073741824."),
            ),
        ] {
            check(&app, request, expected).await;
        }
    }

    #[tokio::test]
    async fn a_deadline_counts_from_now() {
        let app = detached().await;
        let request = json!({ "command": { "argv": ["true"], "directory": "/" }, "deadline_ms": 3_600_000 });
        let request = serde_json::from_value(request).unwrap();
        let before = app.durable.log.now();
        let new = to_new_job(
            request,
            "me",
            StartedFor::Anybody,
            (&app.durable.log, app.durable.home_id),
            &app.plans,
        )
        .await
        .unwrap();
        let after = app.durable.log.now();
        let hour = Duration::from_secs(3600);
        let deadline = new.job.facts.deadline.unwrap();
        assert!(
            before.after(hour) <= deadline && deadline <= after.after(hour),
            "{deadline}"
        );
    }
}
