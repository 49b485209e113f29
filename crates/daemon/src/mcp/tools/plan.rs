//! Opens a plan, and shows its changes.

use protocol::{OpenPlan, Plan};
use serde::Deserialize;
use serde_json::json;
use sessions::tools::{ANSWER_LIMIT_BYTES, Excerpt, Takes, optional};

use super::entry::{Answer, Effect, Entry, directory, plan, tool};
use crate::http::Problem;
use crate::mcp::call::{Call, Reply};
use crate::mcp::clients::KnownPlan;
use crate::mcp::error::ToolError;
use crate::mcp::working_plan::{WorkingPlan, done_in, plan_of};
use crate::page::counted_files;
use crate::plans::acts;

/// How much of a diff to include in an answer. The rest is for the text around it.
const DIFF_LIMIT_BYTES: usize = ANSWER_LIMIT_BYTES - 2 * 1024;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        tool(
            "plan_open",
            "Open a plan",
            "Opens an isolated copy of the repository to work in. Call it once before you change anything; the other plan \
             tools then work in it. Other agents and the user's files don't see your changes until plan_apply. \
             Example: {\"title\": \"fix the parser\"}",
            vec![
                optional(
                    "title",
                    Takes::Text,
                    "What the work is, in one line; people see it when they review.",
                ),
                optional(
                    "checks",
                    Takes::Texts,
                    "Commands that must pass in the plan before it can be applied, such as `cargo test`.",
                ),
                directory(),
            ],
            Effect::Adds,
            |call, arguments| Box::pin(open(call, arguments)),
        ),
        tool(
            "plan_diff",
            "Show what a plan changes",
            "Shows everything that the plan changes, as a patch, with its checks and with other agents' plans that touch the \
             same files. Review it before plan_apply. Example: {}",
            vec![plan()],
            Effect::Reads,
            |call, arguments| Box::pin(diff(call, arguments)),
        ),
    ]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenArguments {
    title: Option<String>,
    #[serde(default)]
    checks: Vec<String>,
    directory: Option<String>,
}

async fn open(call: &Call<'_>, arguments: OpenArguments) -> Result<Answer, ToolError> {
    let directory = call.directory(arguments.directory.as_deref()).await?;
    let request = OpenPlan {
        directory: Some(directory.display().to_string()),
        title: arguments.title,
        checks: arguments.checks,
        ..OpenPlan::default()
    };
    let opened = acts::open(call.app, &call.caller(), request).await?.plan;
    call.client
        .note_plan(KnownPlan::Open(WorkingPlan::of(call.app, &opened)));
    let plan = acts::shown(call.app, &opened).await?;
    let mut text = format!(
        "Opened {} for {}.\nPaths in plan tools are relative to {}. plan_shell commands see it at {}.\n\
         Next: plan_read, plan_edit, plan_write, plan_shell; then plan_diff and plan_apply.\n",
        plan.id, plan.root, plan.root, plan.sandbox_root
    );
    if !plan.checks.is_empty() {
        let commands: Vec<&str> = plan.checks.iter().map(|check| check.command.as_str()).collect();
        text.push_str(&format!("Checks that must pass: {}\n", commands.join("; ")));
    }
    let value = json!({
        "plan": plan.id, "state": plan.state, "title": plan.title, "root": plan.root,
        "sandbox_root": plan.sandbox_root, "actor": plan.opened_by,
    });
    Ok(Reply::text(text).with(value).into())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffArguments {
    plan: Option<String>,
}

async fn diff(call: &Call<'_>, arguments: DiffArguments) -> Result<Answer, ToolError> {
    let plan = plan_of(call, arguments.plan.as_deref()).await?;
    let text = done_in(call, &plan, diff_text(call, &plan).await)?;
    Ok(Reply::text(text).into())
}

async fn diff_text(call: &Call<'_>, plan: &WorkingPlan) -> Result<String, Problem> {
    let shown = acts::show(call.app, plan.id).await?;
    let mut patch = Excerpt::new(DIFF_LIMIT_BYTES);
    patch.add(&acts::patch(call.app, plan.id, None).await?);
    let patch = match patch.total() {
        0 => "No changes.\n".to_owned(),
        _ => patch.text(&format!(
            "the full diff is in the resource tidelock://plans/{}/diff",
            plan.id
        )),
    };
    Ok(format!("{}{patch}", about(&shown)))
}

fn about(plan: &Plan) -> String {
    let mut text = format!(
        "{} is {}: {} changed",
        plan.id,
        plan.state.as_str(),
        counted_files(plan.summary.files)
    );
    if let (Some(added), Some(removed)) = (plan.summary.added_lines, plan.summary.removed_lines) {
        text.push_str(&format!(", {added} lines added, {removed} removed"));
    }
    text.push_str(".\n");
    for check in &plan.checks {
        text.push_str(&format!(
            "Check `{}`: {}\n",
            check.command,
            check_word(check.state)
        ));
    }
    for command in &plan.running {
        text.push_str(&format!("Running in it: {} by {}\n", command.job, command.actor));
    }
    for overlap in &plan.overlaps {
        text.push_str(&overlap_line(overlap));
    }
    if let Some(notice) = &plan.notice {
        text.push_str(&format!("Notice: {notice}\n"));
    }
    text
}

/// Another plan that changes the same files, in one line.
pub(in crate::mcp) fn overlap_line(overlap: &protocol::PlanOverlap) -> String {
    let paths: Vec<String> = overlap
        .paths
        .iter()
        .take(10)
        .map(|path| match path.conflicts {
            true => format!("{} (would conflict)", path.path),
            false => path.path.clone(),
        })
        .collect();
    let more = match overlap.paths.len() > paths.len() {
        true => format!(" and {} more", overlap.paths.len() - paths.len()),
        false => String::new(),
    };
    format!(
        "Also touched by {} ({}): {}{more}\n",
        overlap.plan,
        title_or_none(&overlap.title),
        paths.join(", ")
    )
}

pub(super) fn title_or_none(title: &str) -> &str {
    match title {
        "" => "no title",
        title => title,
    }
}

pub(super) fn check_word(state: protocol::CheckState) -> &'static str {
    match state {
        protocol::CheckState::Missing => "has not run",
        protocol::CheckState::Running => "is running",
        protocol::CheckState::Passed => "passed",
        protocol::CheckState::Failed => "failed",
        protocol::CheckState::Outdated => "has to run again because the plan has changed",
    }
}
