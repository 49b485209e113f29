//! Commands run in a plan: one that is wanted, or its checks.

use protocol::{CheckPlan, CheckState, Job, JobCommand, JobSubmitted, Plan, SubmitJob};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::entry::{
    Answer, Entry, Interruption, Nature, number, object, plan_member, reads, text, texts, wait_member,
    yes_or_no,
};
use super::plan::check_word;
use crate::mcp::call::{Call, Reply, arguments};
use crate::mcp::current::{Ground, forget_if_over, plan_of};
use crate::mcp::error::ToolError;
use crate::mcp::place::path_in_plan;
use crate::mcp::waiting::{Waited, output_of, patience, standing, wait_for};
use crate::page::counted_files;

/// The longest time that a command may be given.
const LONGEST_RUN_SECONDS: u64 = 24 * 60 * 60;
/// Why a command is stopped that nobody waits for any more.
const NOBODY_WAITS: &str = "the client is no longer waiting for it";

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "plan_shell",
        title: "Run a command in the plan",
        description: "Runs a line of the shell in the plan's sandbox: builds, tests, searches (grep, ls, git log). What it \
            changes in the repository is part of the plan. If it takes longer than wait_seconds it goes on, and you get its \
            job for job_status. Example: {\"command\": \"cargo test -q\"}",
        schema: shell_schema,
        nature: Nature::Runs,
        interruption: Interruption::Itself,
        run: |call, given| Box::pin(shell(call, given)),
        read: reads::<ShellArguments>,
    },
    Entry {
        name: "plan_check",
        title: "Run the checks of the plan",
        description: "Runs the checks that must pass before the plan can be applied, and shows what fails. `commands` adds \
            checks first. Example: {\"commands\": [\"cargo test -q\"]}",
        schema: check_schema,
        nature: Nature::Runs,
        interruption: Interruption::Itself,
        run: |call, given| Box::pin(check(call, given)),
        read: reads::<CheckArguments>,
    },
];

fn shell_schema() -> Value {
    object(
        &[("command", text("A line for `sh -c`."))],
        &[
            (
                "directory",
                text("Directory to start in, from the root of the workspace; the root if left out."),
            ),
            ("stdin", text("What it reads from its standard input.")),
            (
                "time_limit_seconds",
                number(1, LONGEST_RUN_SECONDS, "Stop it after so many seconds."),
            ),
            wait_member(),
            plan_member(),
        ],
    )
}

fn check_schema() -> Value {
    object(
        &[],
        &[
            (
                "commands",
                texts("Commands for `sh -c` to add to the checks first."),
            ),
            ("all", yes_or_no("Run those again that have passed already.")),
            wait_member(),
            plan_member(),
        ],
    )
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellArguments {
    command: String,
    directory: Option<String>,
    stdin: Option<String>,
    time_limit_seconds: Option<u64>,
    wait_seconds: Option<u64>,
    plan: Option<String>,
}

async fn shell(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let ShellArguments {
        command,
        directory,
        stdin,
        time_limit_seconds,
        wait_seconds,
        plan,
    } = arguments(given)?;
    let ground = plan_of(call, plan.as_deref()).await?;
    let start = match &directory {
        None => ground.root.clone(),
        Some(directory) => match path_in_plan(&ground, directory)?.as_str() {
            "" | "." => ground.root.clone(),
            below => format!("{}/{below}", ground.root),
        },
    };
    let order = SubmitJob {
        command: JobCommand {
            shell: Some(command),
            directory: start,
            stdin,
            plan: Some(ground.id.clone()),
            ..JobCommand::default()
        },
        time_limit_ms: time_limit_seconds.map(|seconds| seconds.saturating_mul(1000)),
        // Somebody waits for it, so it goes before what nobody waits for.
        priority: Some(10),
        ..SubmitJob::default()
    };
    let submitted: Result<JobSubmitted, ToolError> = call.post("/v1/jobs", &order).await;
    if let Err(error) = &submitted {
        forget_if_over(call, &ground, error);
    }
    let job = submitted?.job;
    match wait_for(call, &job.id, &patience(call, wait_seconds)).await? {
        Waited::Ended(job) => ended(call, &job).await,
        Waited::StillThere(job) => still_there(call, &job).await,
        Waited::Interrupted => {
            stop(call, &job.id).await;
            Err(ToolError::Cancelled)
        }
    }
}

async fn ended(call: &Call<'_>, job: &Job) -> Result<Answer, ToolError> {
    let output = output_of(call, &job.id).await?;
    let changed = match job.changed_files {
        None | Some(0) => String::new(),
        Some(count) => format!("It changed {} in the plan.\n", counted_files(count)),
    };
    let why = match (&job.text, job.state) {
        (Some(text), protocol::JobState::Failed) if output.is_empty() => format!("{text}\n"),
        _ => String::new(),
    };
    let reply = Reply::text(format!("{output}{why}[{}]\n{changed}", standing(job)));
    Ok(match job.state {
        protocol::JobState::Succeeded => reply.into(),
        _ => reply.failed().into(),
    })
}

async fn still_there(call: &Call<'_>, job: &Job) -> Result<Answer, ToolError> {
    let output = output_of(call, &job.id).await?;
    Ok(Reply::text(format!(
        "{output}[{}; it keeps running. Call job_status with {{\"job\": \"{}\", \"wait_seconds\": 60}} to wait for it, or \
         job_cancel to stop it.]\n",
        standing(job),
        job.id
    ))
    .into())
}

/// Stops a command that nobody waits for any more, whether or not somebody stays to see it.
async fn stop(call: &Call<'_>, id: &str) {
    let (inside, actor, id) = (call.inside.clone(), call.client.actor.clone(), id.to_owned());
    let stopping = async move {
        let path = format!("/v1/jobs/{id}/cancel");
        let stopped: Result<Value, _> = inside.post(&actor, &path, &json!({ "why": NOBODY_WAITS })).await;
        if let Err(error) = stopped {
            tracing::debug!(%error, "a command has ended before it could be stopped");
        }
    };
    // If the runtime ends under it, so does the command.
    let _stopped = call.app.mcp.tasks.to_the_end("stop a command", stopping).await;
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckArguments {
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    all: bool,
    wait_seconds: Option<u64>,
    plan: Option<String>,
}

async fn check(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let CheckArguments {
        commands,
        all,
        wait_seconds,
        plan,
    } = arguments(given)?;
    let ground = plan_of(call, plan.as_deref()).await?;
    let order = CheckPlan { add: commands, all };
    let started: Result<Plan, ToolError> = call.post(&format!("/v1/plans/{}/check", ground.id), &order).await;
    if let Err(error) = &started {
        forget_if_over(call, &ground, error);
    }
    let started = started?;
    if started.checks.is_empty() {
        return Ok(Reply::text("The plan has no checks. Add some with `commands`.\n").into());
    }
    let patience = patience(call, wait_seconds);
    let running = started
        .checks
        .iter()
        .filter(|check| check.state == CheckState::Running);
    for job in running.filter_map(|check| check.job.as_deref()) {
        // Whoever does not wait leaves them to themselves: what they find out is kept in the plan.
        if let Waited::Interrupted = wait_for(call, job, &patience).await? {
            return Err(ToolError::Cancelled);
        }
    }
    told(call, &ground).await
}

async fn told(call: &Call<'_>, ground: &Ground) -> Result<Answer, ToolError> {
    let plan: Plan = call.get(&format!("/v1/plans/{}", ground.id)).await?;
    let mut text = String::new();
    let mut failed = false;
    for check in &plan.checks {
        text.push_str(&format!("`{}` {}", check.command, check_word(check.state)));
        match (&check.job, check.state) {
            (Some(job), CheckState::Running) => {
                text.push_str(&format!(" as {job}; call job_status to wait for it"))
            }
            (Some(job), CheckState::Failed) => {
                failed = true;
                text.push_str(&format!(" ({job}):\n{}", output_of(call, job).await?.trim_end()));
            }
            _ => {}
        }
        text.push('\n');
    }
    let reply = Reply::text(text);
    Ok(match failed {
        true => reply.failed().into(),
        false => reply.into(),
    })
}
