//! What other agents are touching.

use protocol::{Plan, PlanDiff, PlanList};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::entry::{Answer, Entry, Interruption, Nature, directory_member, object, reads};
use super::plan::{overlap_line, title_or_none};
use crate::mcp::call::{Call, Reply, arguments};
use crate::mcp::current::own_plan;
use crate::mcp::error::ToolError;
use crate::mcp::place::directory_of;
use crate::page::percent_encode;

/// How many plans are told. An agent that has to look at more of them asks its user.
const PLANS: usize = 20;
/// How many files of each are named.
const FILES: usize = 20;

pub(super) const TOOLS: &[Entry] = &[Entry {
    name: "overlaps",
    title: "See what other agents are touching",
    description: "Lists the open plans of this repository with the files that each changes, and where they get into the way \
        of yours. Call it before larger work, and before plan_apply. Example: {}",
    schema: || object(&[], &[directory_member()]),
    nature: Nature::Reads,
    interruption: Interruption::Dropped,
    run: |call, given| Box::pin(overlaps(call, given)),
    read: reads::<Arguments>,
}];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    directory: Option<String>,
}

async fn overlaps(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let Arguments { directory } = arguments(given)?;
    let own = own_plan(call).await?;
    let directory = match (&directory, &own) {
        (None, Some(own)) => own.root.clone(),
        (named, _) => directory_of(call, named.as_deref()).await?.display().to_string(),
    };
    let path = format!(
        "/v1/plans?state=open,sealed&limit={}&directory={}",
        PLANS + 1,
        percent_encode(&directory)
    );
    let found: PlanList = call.get(&path).await?;
    let own_id = own.map(|ground| ground.id).unwrap_or_default();
    let mut text = String::new();
    for plan in found.plans.iter().filter(|plan| plan.id == own_id) {
        for overlap in &plan.overlaps {
            text.push_str(&format!("Your plan: {}", overlap_line(overlap)));
        }
    }
    for plan in found.plans.iter().filter(|plan| plan.id != own_id).take(PLANS) {
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
    let diff: PlanDiff = call
        .get(&format!("/v1/plans/{}/diff?format=json", plan.id))
        .await?;
    for file in diff.files.iter().take(FILES) {
        text.push_str(&format!("    {} {}\n", file.kind, file.path));
    }
    if diff.files.len() > FILES {
        text.push_str(&format!("    and {} more\n", diff.files.len() - FILES));
    }
    Ok(text)
}
