//! Shows what other agents are changing.

use plans::PlanQuery;
use protocol::{Plan, PlanState};
use serde::Deserialize;

use super::entry::{Answer, Effect, Entry, directory, tool};
use super::plan::{overlap_line, title_or_none};
use crate::mcp::call::{Call, Reply};
use crate::mcp::error::ToolError;
use crate::mcp::working_plan::{id, own_plan};
use crate::plans::acts;

/// How many plans to list. An agent with more overlaps than that should ask its user.
const PLANS: u32 = 20;
/// How many files of each to name.
const FILES: usize = 20;

pub(super) fn tools() -> Vec<Entry> {
    vec![tool(
        "overlaps",
        "See what other agents are changing",
        "Lists the open plans of this repository with the files that each changes, and where they overlap with yours. Call it \
         before larger work, and before plan_apply. Example: {}",
        vec![directory()],
        Effect::Reads,
        |call, arguments| Box::pin(overlaps(call, arguments)),
    )]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    directory: Option<String>,
}

async fn overlaps(call: &Call<'_>, arguments: Arguments) -> Result<Answer, ToolError> {
    let own = own_plan(call).await?;
    let directory = match (&arguments.directory, &own) {
        (None, Some(own)) => own.root.clone(),
        (named, _) => call.directory(named.as_deref()).await?,
    };
    let query = PlanQuery {
        states: vec![PlanState::Open, PlanState::Sealed],
        limit: PLANS + 1,
        ..PlanQuery::default()
    };
    let found = acts::list(call.app, query, Some(&directory)).await?;
    let own_id = own.map(|plan| plan.id.to_string()).unwrap_or_default();
    let mut text = String::new();
    for plan in found.plans.iter().filter(|plan| plan.id == own_id) {
        for overlap in &plan.overlaps {
            text.push_str(&format!("Your plan: {}", overlap_line(overlap)));
        }
    }
    for plan in found
        .plans
        .iter()
        .filter(|plan| plan.id != own_id)
        .take(PLANS as usize)
    {
        text.push_str(&one(call, plan).await?);
    }
    if text.is_empty() {
        text.push_str("There are no other open plans in this repository.\n");
    }
    Ok(Reply::text(text).into())
}

async fn one(call: &Call<'_>, plan: &Plan) -> Result<String, ToolError> {
    let mut text = format!(
        "{} ({}) by {}, {}, changed at {}:\n",
        plan.id,
        title_or_none(&plan.title),
        plan.opened_by,
        plan.state.as_str(),
        plan.changed_at
    );
    if plan.summary.files == 0 {
        text.push_str("    nothing changed yet\n");
        return Ok(text);
    }
    let diff = acts::diff(call.app, id("plan", &plan.id)?, None).await?;
    for file in diff.files.iter().take(FILES) {
        text.push_str(&format!("    {} {}\n", file.kind, file.path));
    }
    if diff.files.len() > FILES {
        text.push_str(&format!("    and {} more\n", diff.files.len() - FILES));
    }
    Ok(text)
}
