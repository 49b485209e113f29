//! A plan is opened, and looked at.

use protocol::{OpenPlan, Plan};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::entry::{
    Answer, Entry, Interruption, Nature, directory_member, object, plan_member, reads, text, texts,
};
use crate::mcp::bounds::{Excerpt, TEXT_LIMIT_BYTES};
use crate::mcp::call::{Call, Reply, arguments};
use crate::mcp::clients::Known;
use crate::mcp::current::{Ground, forget_if_over, plan_of};
use crate::mcp::error::ToolError;
use crate::mcp::place::directory_of;
use crate::page::counted_files;

/// How much of a diff stands in an answer. The rest of the room is for what is said about it.
const DIFF_LIMIT_BYTES: usize = TEXT_LIMIT_BYTES - 2 * 1024;

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "plan_open",
        title: "Open a plan",
        description: "Opens an isolated copy of the repository to work in. Call it once before you change anything; the other \
            plan tools then work in it. Nobody sees your changes until plan_apply. \
            Example: {\"title\": \"mend the parser\"}",
        schema: open_schema,
        nature: Nature::Adds,
        interruption: Interruption::Itself,
        run: |call, given| Box::pin(open(call, given)),
        read: reads::<OpenArguments>,
    },
    Entry {
        name: "plan_diff",
        title: "Show what a plan changes",
        description: "Shows everything that the plan changes, as a patch, with its checks and with other agents' plans that \
            touch the same files. Look at it before plan_apply. Example: {}",
        schema: || object(&[], &[plan_member()]),
        nature: Nature::Reads,
        interruption: Interruption::Dropped,
        run: |call, given| Box::pin(diff(call, given)),
        read: reads::<DiffArguments>,
    },
];

fn open_schema() -> Value {
    object(
        &[],
        &[
            (
                "title",
                text("What the work is, in one line; people see it when they review."),
            ),
            (
                "checks",
                texts("Commands that must pass in the plan before it can be applied, such as `cargo test`."),
            ),
            directory_member(),
        ],
    )
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenArguments {
    title: Option<String>,
    #[serde(default)]
    checks: Vec<String>,
    directory: Option<String>,
}

async fn open(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let OpenArguments {
        title,
        checks,
        directory,
    } = arguments(given)?;
    let directory = directory_of(call, directory.as_deref()).await?;
    let order = OpenPlan {
        directory: Some(directory.display().to_string()),
        title,
        checks,
        ..OpenPlan::default()
    };
    let plan: Plan = call.post("/v1/plans", &order).await?;
    call.client.note_plan(Known::Plan(Ground::from(&plan)));
    let mut said = format!(
        "Opened {} for {}.\nPaths in plan tools are relative to {}. plan_shell commands see it at {}.\n\
         Next: plan_read, plan_edit, plan_write, plan_shell; then plan_diff and plan_apply.\n",
        plan.id, plan.root, plan.root, plan.sandbox_root
    );
    if !plan.checks.is_empty() {
        let commands: Vec<&str> = plan.checks.iter().map(|check| check.command.as_str()).collect();
        said.push_str(&format!("Checks that must pass: {}\n", commands.join("; ")));
    }
    let value = json!({
        "plan": plan.id, "state": plan.state, "title": plan.title, "root": plan.root,
        "sandbox_root": plan.sandbox_root, "actor": plan.opened_by,
    });
    Ok(Reply::text(said).with(value).into())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffArguments {
    plan: Option<String>,
}

async fn diff(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let DiffArguments { plan } = arguments(given)?;
    let ground = plan_of(call, plan.as_deref()).await?;
    let shown = shown(call, &ground).await;
    if let Err(error) = &shown {
        forget_if_over(call, &ground, error);
    }
    Ok(Reply::text(shown?).into())
}

async fn shown(call: &Call<'_>, ground: &Ground) -> Result<String, ToolError> {
    let id = &ground.id;
    let plan: Plan = call.get(&format!("/v1/plans/{id}")).await?;
    let path = format!("/v1/plans/{id}/diff?format=patch");
    let excerpt = Excerpt::new(DIFF_LIMIT_BYTES);
    let excerpt = call.inside.excerpt(&call.client.actor, &path, excerpt).await?;
    let patch = match excerpt.total() {
        0 => "No changes.\n".to_owned(),
        _ => excerpt.text(&format!(
            "the full diff is in the resource tidelock://plans/{id}/diff"
        )),
    };
    Ok(format!("{}{patch}", about(&plan)))
}

/// A plan in some lines.
pub(super) fn about(plan: &Plan) -> String {
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

/// Another plan that touches the same files, in one line.
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
