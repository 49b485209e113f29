//! Commands that run in the background.

use ::jobs::ListQuery;
use protocol::{CancelJob, Job, JobCommand, JobId, JobLane, SubmitJob};
use serde::Deserialize;
use serde_json::json;
use sessions::tools::{Takes, optional, required};

use super::entry::{Answer, Effect, Entry, directory, time_limit, tool, wait};
use crate::http::caller::Caller;
use crate::http::consent::StartedFor;
use crate::jobs::acts;
use crate::mcp::call::{Call, Reply};
use crate::mcp::consent::{Consent, consent};
use crate::mcp::error::ToolError;
use crate::mcp::waiting::{LONGEST_WAIT_SECONDS, Waited, output_of, patience, standing, wait_for};
use crate::mcp::working_plan::id;

/// How many jobs are listed.
const LISTED: u32 = 20;

pub(super) fn tools() -> Vec<Entry> {
    let job = || required("job", Takes::Text, "The id of the job.");
    let wait_for_end = Takes::Capped {
        least: 0,
        most: LONGEST_WAIT_SECONDS,
    };
    vec![
        tool(
            "job_start",
            "Start a command outside of the plan",
            "Runs a command in the real repository, not in a plan, as a job that keeps running when you leave: servers, long \
             downloads, watches. The user is asked first. To build or test your changes use plan_shell. \
             Example: {\"command\": \"make docs\", \"wait_seconds\": 5}",
            vec![
                required("command", Takes::Text, "A line for `sh -c`."),
                optional("title", Takes::Text, "What it is, in one line."),
                optional(
                    "lane",
                    Takes::Text,
                    "Jobs of one lane run one at a time, such as `cargo`.",
                ),
                time_limit(),
                wait(),
                directory(),
            ],
            Effect::Runs,
            |call, arguments| Box::pin(start(call, arguments)),
        ),
        tool(
            "job_status",
            "Look at a job",
            "Shows the state of a job, and waits for its end if you want. Without `job` it lists the newest ones. \
             Example: {\"job\": \"job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX\", \"wait_seconds\": 60}",
            vec![
                optional(
                    "job",
                    Takes::Text,
                    "The id of the job. Without it, the newest ones are listed.",
                ),
                optional(
                    "wait_seconds",
                    wait_for_end,
                    "How long to wait for its end. Default: don't wait.",
                ),
            ],
            Effect::Reads,
            |call, arguments| Box::pin(status(call, arguments)),
        ),
        tool(
            "job_logs",
            "Read the output of a job",
            "Shows what a job has written so far, its beginning and its end if it is long. \
             Example: {\"job\": \"job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX\"}",
            vec![job()],
            Effect::Reads,
            |call, arguments| Box::pin(logs(call, arguments)),
        ),
        tool(
            "job_cancel",
            "Cancel a job",
            "Stops a job with all of its processes. Its output is kept. \
             Example: {\"job\": \"job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX\", \"why\": \"wrong branch\"}",
            vec![job(), optional("why", Takes::Text, "Why, in one line.")],
            Effect::Replaces,
            |call, arguments| Box::pin(cancel(call, arguments)),
        ),
    ]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartArguments {
    command: String,
    title: Option<String>,
    lane: Option<String>,
    time_limit_seconds: Option<u64>,
    wait_seconds: Option<u64>,
    directory: Option<String>,
}

async fn start(call: &Call<'_>, arguments: StartArguments) -> Result<Answer, ToolError> {
    let directory = call.directory(arguments.directory.as_deref()).await?;
    let (directory, command) = (directory.display().to_string(), arguments.command);
    // It can write anything that the user can, so it needs the same consent as applying a plan.
    let question = format!(
        "Let {} run `{command}` in {directory}, outside of its sandbox? It can change your files.",
        call.client.actor
    );
    match consent(call, &question, &format!("{directory}\n{command}")).await? {
        Consent::Given => {}
        Consent::Declined => return Ok(not_started("declined", "ask the user what to do instead")),
        Consent::CannotAsk => {
            return Ok(not_started(
                "needs_a_person",
                "use plan_shell, which runs in your plan, or ask the user to run the command in their terminal",
            ));
        }
        Consent::AskFirst(question) => return Ok(Answer::AskFirst(question)),
    }
    let request = SubmitJob {
        command: JobCommand {
            shell: Some(command),
            directory,
            ..JobCommand::default()
        },
        title: arguments.title,
        lane: arguments.lane.map(|name| JobLane { name, limit: 1 }),
        time_limit_ms: arguments.time_limit_seconds.map(|seconds| seconds * 1000),
        ..SubmitJob::default()
    };
    let caller = Caller {
        started_for: StartedFor::Agent,
        ..call.caller()
    };
    let submitted = acts::submit(call.app, &caller, request).await?;
    // A job keeps running whether or not a client waits for it.
    awaited(call, id("job", &submitted.job.id)?, arguments.wait_seconds).await
}

async fn awaited(call: &Call<'_>, id: JobId, seconds: Option<u64>) -> Result<Answer, ToolError> {
    match wait_for(call, id, &patience(call, seconds)).await? {
        Waited::Interrupted => Err(ToolError::Cancelled),
        Waited::Ended(job) | Waited::StillRunning(job) => Ok(shown(&job)),
    }
}

fn not_started(outcome: &str, next: &str) -> Answer {
    let text = format!("The command was not run: it would run outside of the plan. Next: {next}.\n");
    Reply::text(text)
        .with(json!({ "outcome": outcome, "next": next }))
        .into()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusArguments {
    job: Option<String>,
    wait_seconds: Option<u64>,
}

async fn status(call: &Call<'_>, arguments: StatusArguments) -> Result<Answer, ToolError> {
    match &arguments.job {
        Some(job) => awaited(call, id("job", job)?, Some(arguments.wait_seconds.unwrap_or(0))).await,
        None => list(call).await,
    }
}

async fn list(call: &Call<'_>) -> Result<Answer, ToolError> {
    let query = ListQuery {
        state: None,
        before: None,
        limit: LISTED,
    };
    let found = acts::list(call.app, query).await?;
    let mut text: String = found
        .jobs
        .iter()
        .map(|job| format!("{}: {} (by {})\n", standing(job), job.title, job.submitted_by))
        .collect();
    if text.is_empty() {
        text.push_str("There are no jobs.\n");
    }
    Ok(Reply::text(text).into())
}

fn shown(job: &Job) -> Answer {
    let next = match job.state.is_terminal() {
        true => "job_logs shows its output",
        false => {
            "call job_status with wait_seconds to wait for it, job_logs to see its output, job_cancel to stop it"
        }
    };
    let text = format!("{}: {}\nNext: {next}.\n", standing(job), job.title);
    let value = json!({
        "job": job.id, "state": job.state, "title": job.title, "exit": job.exit, "ran_ms": job.ran_ms,
        "reason": job.reason, "text": job.text, "output_bytes": job.output_bytes, "next": next,
    });
    Reply::text(text).with(value).into()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogsArguments {
    job: String,
}

async fn logs(call: &Call<'_>, arguments: LogsArguments) -> Result<Answer, ToolError> {
    let id = id("job", &arguments.job)?;
    let job = acts::show(call.app, id, None).await?;
    let output = output_of(call, id).await?;
    Ok(Reply::text(format!("{output}[{}]\n", standing(&job))).into())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelArguments {
    job: String,
    why: Option<String>,
}

async fn cancel(call: &Call<'_>, arguments: CancelArguments) -> Result<Answer, ToolError> {
    let request = CancelJob {
        why: arguments.why.unwrap_or_default(),
    };
    let job = acts::cancel(call.app, &call.caller(), id("job", &arguments.job)?, request).await?;
    Ok(shown(&job))
}
