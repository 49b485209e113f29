//! Commands that go on by themselves.

use protocol::{Job, JobCommand, JobLane, JobList, JobSubmitted, SubmitJob};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::entry::{
    Answer, Entry, Interruption, Nature, directory_member, number, object, reads, text, wait_member,
};
use crate::mcp::ask::{Verdict, verdict};
use crate::mcp::call::{Call, Reply, arguments};
use crate::mcp::current::segment;
use crate::mcp::error::ToolError;
use crate::mcp::place::directory_of;
use crate::mcp::waiting::{Waited, output_of, patience, standing, wait_for};

/// The longest time that a command may be given.
const LONGEST_RUN_SECONDS: u64 = 24 * 60 * 60;
/// How many jobs are listed.
const LISTED: usize = 20;

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "job_start",
        title: "Start a command outside of the plan",
        description: "Runs a command in the real repository, not in a plan, as a job that goes on whether you stay or not: \
            servers, long downloads, watches. The user is asked first. To build or test your changes use plan_shell. \
            Example: {\"command\": \"make docs\", \"wait_seconds\": 5}",
        schema: start_schema,
        nature: Nature::Runs,
        interruption: Interruption::Itself,
        run: |call, given| Box::pin(start(call, given)),
        read: reads::<StartArguments>,
    },
    Entry {
        name: "job_status",
        title: "Look at a job",
        description: "Says how a job stands, and waits for its end if you want. Without `job` it lists the newest ones. \
            Example: {\"job\": \"job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX\", \"wait_seconds\": 60}",
        schema: status_schema,
        nature: Nature::Reads,
        interruption: Interruption::Dropped,
        run: |call, given| Box::pin(status(call, given)),
        read: reads::<StatusArguments>,
    },
    Entry {
        name: "job_logs",
        title: "Read what a job wrote",
        description: "Shows what a job has written so far, its beginning and its end if it is long. \
            Example: {\"job\": \"job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX\"}",
        schema: || object(&[job_member()], &[]),
        nature: Nature::Reads,
        interruption: Interruption::Dropped,
        run: |call, given| Box::pin(logs(call, given)),
        read: reads::<LogsArguments>,
    },
    Entry {
        name: "job_cancel",
        title: "Cancel a job",
        description: "Ends a job with all of its processes. What it has written is kept. \
            Example: {\"job\": \"job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX\", \"why\": \"wrong branch\"}",
        schema: || object(&[job_member()], &[("why", text("Why, in one line."))]),
        nature: Nature::Replaces,
        interruption: Interruption::Itself,
        run: |call, given| Box::pin(cancel(call, given)),
        read: reads::<CancelArguments>,
    },
];

fn job_member() -> (&'static str, Value) {
    ("job", text("The id of the job."))
}

fn start_schema() -> Value {
    object(
        &[("command", text("A line for `sh -c`."))],
        &[
            ("title", text("What it is, in one line.")),
            (
                "lane",
                text("Jobs of one lane run one at a time, such as `cargo`."),
            ),
            (
                "time_limit_seconds",
                number(1, LONGEST_RUN_SECONDS, "Stop it after so many seconds."),
            ),
            wait_member(),
            directory_member(),
        ],
    )
}

fn status_schema() -> Value {
    object(
        &[],
        &[
            (
                "job",
                text("The id of the job. Left out, the newest ones are listed."),
            ),
            (
                "wait_seconds",
                number(
                    0,
                    crate::mcp::waiting::LONGEST_WAIT_SECONDS,
                    "How long to wait for its end; not at all if left out.",
                ),
            ),
        ],
    )
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

async fn start(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let StartArguments {
        command,
        title,
        lane,
        time_limit_seconds,
        wait_seconds,
        directory,
    } = arguments(given)?;
    let directory = directory_of(call, directory.as_deref()).await?;
    // It can write what the user can, which is what applying a plan can.
    let question = format!(
        "Let {} run `{command}` in {}, outside of its sandbox? It can change your files.",
        call.client.actor,
        directory.display()
    );
    match verdict(call, &question, &format!("{}\n{command}", directory.display())).await? {
        Verdict::Yes => {}
        Verdict::No => return Ok(not_started("declined", "ask the user what to do instead")),
        Verdict::NobodyToAsk => {
            return Ok(not_started(
                "needs_a_person",
                "use plan_shell, which runs in your plan, or ask the user to run the command in their terminal",
            ));
        }
        Verdict::ComeBack(question) => return Ok(Answer::ComeBack(question)),
    }
    let order = SubmitJob {
        command: JobCommand {
            shell: Some(command),
            directory: directory.display().to_string(),
            ..JobCommand::default()
        },
        title,
        lane: lane.map(|name| JobLane { name, limit: 1 }),
        time_limit_ms: time_limit_seconds.map(|seconds| seconds.saturating_mul(1000)),
        ..SubmitJob::default()
    };
    let submitted: JobSubmitted = call.inside.start_for_agent(&call.client.actor, &order).await?;
    let waited = wait_for(call, &submitted.job.id, &patience(call, wait_seconds)).await?;
    match waited {
        // A job is meant to go on whether somebody stays or not.
        Waited::Interrupted => Err(ToolError::Cancelled),
        Waited::Ended(job) | Waited::StillThere(job) => Ok(shown(&job)),
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

async fn status(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let StatusArguments { job, wait_seconds } = arguments(given)?;
    let Some(id) = job else {
        return list(call).await;
    };
    let patience = patience(call, Some(wait_seconds.unwrap_or(0)));
    match wait_for(call, segment(&id)?, &patience).await? {
        Waited::Interrupted => Err(ToolError::Cancelled),
        Waited::Ended(job) | Waited::StillThere(job) => Ok(shown(&job)),
    }
}

async fn list(call: &Call<'_>) -> Result<Answer, ToolError> {
    let found: JobList = call.get(&format!("/v1/jobs?limit={LISTED}")).await?;
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

async fn logs(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let LogsArguments { job } = arguments(given)?;
    let job: Job = call.get(&format!("/v1/jobs/{}", segment(&job)?)).await?;
    let output = output_of(call, &job.id).await?;
    Ok(Reply::text(format!("{output}[{}]\n", standing(&job))).into())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelArguments {
    job: String,
    why: Option<String>,
}

async fn cancel(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let CancelArguments { job, why } = arguments(given)?;
    let path = format!("/v1/jobs/{}/cancel", segment(&job)?);
    let job: Job = call
        .post(&path, &json!({ "why": why.unwrap_or_default() }))
        .await?;
    Ok(shown(&job))
}
