//! Runs commands in a plan: those of the client, and the checks.

use std::sync::Arc;

use protocol::{CancelJob, CheckPlan, CheckState, Job, JobCommand, JobId, SubmitJob};
use serde::Deserialize;
use sessions::tools::{SandboxPath, Takes, optional, required};

use super::entry::{Answer, Effect, Entry, plan, time_limit, tool, wait};
use super::plan::check_word;
use crate::jobs::acts as jobs;
use crate::mcp::call::{Call, Reply};
use crate::mcp::error::ToolError;
use crate::mcp::waiting::{Waited, output_of, patience, standing, wait_for};
use crate::mcp::working_plan::{done_in, id, plan_of};
use crate::page::counted_files;
use crate::plans::acts;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        tool(
            "plan_shell",
            "Run a command in the plan",
            "Runs a shell command in the plan's sandbox: builds, tests, searches (grep, ls, git log). What it changes in the \
             repository becomes part of the plan. If it takes longer than wait_seconds it keeps running, and you get its job \
             for job_status. Example: {\"command\": \"cargo test -q\"}",
            vec![
                required("command", Takes::Text, "A line for `sh -c`."),
                optional(
                    "directory",
                    Takes::Text,
                    "Directory to run it in, relative to the root of the workspace. Default: the root.",
                ),
                optional("stdin", Takes::Text, "Its standard input."),
                time_limit(),
                wait(),
                plan(),
            ],
            Effect::Runs,
            |call, arguments| Box::pin(shell(call, arguments)),
        ),
        tool(
            "plan_check",
            "Run the checks of the plan",
            "Runs the checks that must pass before the plan can be applied, and shows the output of those that fail. \
             `commands` adds checks first. Example: {\"commands\": [\"cargo test -q\"]}",
            vec![
                optional(
                    "commands",
                    Takes::Texts,
                    "Commands for `sh -c` to add to the checks first.",
                ),
                optional("all", Takes::YesOrNo, "Also run checks again that have passed."),
                wait(),
                plan(),
            ],
            Effect::Runs,
            |call, arguments| Box::pin(check(call, arguments)),
        ),
    ]
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

async fn shell(call: &Call<'_>, arguments: ShellArguments) -> Result<Answer, ToolError> {
    let plan = plan_of(call, arguments.plan.as_deref()).await?;
    let below = arguments
        .directory
        .map(|directory| plan.path(&directory))
        .transpose()?;
    let directory = match below.as_ref().and_then(SandboxPath::as_path) {
        None => plan.root.clone(),
        Some(below) => plan.root.join(below.as_path()),
    };
    let request = SubmitJob {
        command: JobCommand {
            shell: Some(arguments.command),
            directory: directory.display().to_string(),
            stdin: arguments.stdin,
            plan: Some(plan.id.to_string()),
            ..JobCommand::default()
        },
        time_limit_ms: arguments.time_limit_seconds.map(|seconds| seconds * 1000),
        // The client waits for it, so it has priority over background jobs.
        priority: Some(10),
        ..SubmitJob::default()
    };
    let submitted = jobs::submit(call.app, &call.caller(), request).await;
    let job = id("job", &done_in(call, &plan, submitted)?.job.id)?;
    match wait_for(call, job, &patience(call, arguments.wait_seconds)).await? {
        Waited::Ended(ended) => ended_answer(call, job, &ended).await,
        Waited::StillRunning(running) => {
            let output = output_of(call, job).await?;
            Ok(Reply::text(format!(
                "{output}[{}; it keeps running. Call job_status with {{\"job\": \"{job}\", \"wait_seconds\": 60}} to wait \
                 for it, or job_cancel to stop it.]\n",
                standing(&running)
            ))
            .into())
        }
        Waited::Interrupted => {
            stop(call, job).await;
            Err(ToolError::Cancelled)
        }
    }
}

async fn ended_answer(call: &Call<'_>, id: JobId, job: &Job) -> Result<Answer, ToolError> {
    let output = output_of(call, id).await?;
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

/// Stops a command when its client no longer waits for it, even if this future is dropped.
async fn stop(call: &Call<'_>, id: JobId) {
    let (app, caller) = (Arc::clone(call.app), call.caller());
    let stopping = async move {
        let why = "the client is no longer waiting for it".to_owned();
        if let Err(problem) = jobs::cancel(&app, &caller, id, CancelJob { why }).await {
            tracing::debug!(?problem, "a command has ended before it could be stopped");
        }
    };
    // If the runtime shuts down, the command ends, too.
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

async fn check(call: &Call<'_>, arguments: CheckArguments) -> Result<Answer, ToolError> {
    let plan = plan_of(call, arguments.plan.as_deref()).await?;
    let request = CheckPlan {
        add: arguments.commands,
        all: arguments.all,
    };
    let started = acts::check(call.app, &call.caller(), plan.id, request).await;
    let started = done_in(call, &plan, started)?;
    if started.checks.is_empty() {
        return Ok(Reply::text("The plan has no checks. Add some with `commands`.\n").into());
    }
    let patience = patience(call, arguments.wait_seconds);
    let running = started
        .checks
        .iter()
        .filter(|check| check.state == CheckState::Running);
    for job in running.filter_map(|check| check.job.as_deref()) {
        // Checks keep running when the client stops waiting: the plan keeps their results.
        if let Waited::Interrupted = wait_for(call, id("job", job)?, &patience).await? {
            return Err(ToolError::Cancelled);
        }
    }
    let mut reply = Reply::default();
    for check in &acts::show(call.app, plan.id).await?.checks {
        let text = &mut reply.text;
        text.push_str(&format!("`{}` {}", check.command, check_word(check.state)));
        match (&check.job, check.state) {
            (Some(job), CheckState::Running) => {
                text.push_str(&format!(" as {job}; call job_status to wait for it"));
            }
            (Some(job), CheckState::Failed) => {
                let output = output_of(call, id("job", job)?).await?;
                text.push_str(&format!(" ({job}):\n{}", output.trim_end()));
                reply.failed = true;
            }
            _ => {}
        }
        reply.text.push('\n');
    }
    Ok(reply.into())
}
