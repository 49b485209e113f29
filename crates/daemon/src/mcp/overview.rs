//! What runs now, and what waits for somebody: for a model that wants to know where it is.

use protocol::{JobList, PlanList, PlanState, SessionList, SessionState, Status};

use super::inside::{Inside, Refused};
use super::tools::overlap_line;
use crate::app::App;
use crate::needs;
use crate::page::counted_files;

/// How many of each kind are told.
const LISTED: usize = 20;

/// The overview as a text.
pub(super) async fn overview(app: &App, inside: &Inside, actor: &str) -> Result<String, Refused> {
    let status: Status = inside.get(actor, "/v1/status").await?;
    let plans: PlanList = inside.get(actor, "/v1/plans?state=open,sealed&limit=50").await?;
    let running: JobList = inside.get(actor, "/v1/jobs?state=running&limit=20").await?;
    let sessions: SessionList = inside.get(actor, "/v1/sessions?limit=50").await?;
    let mut text = format!(
        "# Tidelock {}\n\nPage: {}/\nYou are: {actor}\n",
        status.version,
        app.hosts.page_origin()
    );

    text.push_str("\n## Waiting for a person\n\n");
    let before = text.len();
    for need in needs::read(app).await.to_wire().needs.iter().take(LISTED) {
        // What another agent asks for may have lines of its own, which would read as if they were ours.
        let line = format!("{} {}: {}", need.id, need.title, need.text).replace(char::is_control, " ");
        text.push_str(&format!("- {line}\n"));
    }
    none_if(&mut text, before);

    text.push_str("\n## Open plans\n\n");
    let before = text.len();
    for plan in plans
        .plans
        .iter()
        .filter(|plan| plan.state == PlanState::Open)
        .take(LISTED)
    {
        text.push_str(&format!(
            "- {} by {} in {}: {} ({})\n",
            plan.id,
            plan.opened_by,
            plan.root,
            plan.title,
            counted_files(plan.summary.files)
        ));
        for overlap in &plan.overlaps {
            text.push_str(&format!("  - {}", overlap_line(overlap)));
        }
    }
    none_if(&mut text, before);

    text.push_str("\n## Running\n\n");
    let before = text.len();
    for job in running.jobs.iter().take(LISTED) {
        text.push_str(&format!("- {} by {}: {}\n", job.id, job.submitted_by, job.title));
    }
    for session in sessions
        .sessions
        .iter()
        .filter(|session| session.state == SessionState::Running)
    {
        text.push_str(&format!("- session {}: {}\n", session.id, session.title));
    }
    none_if(&mut text, before);

    text.push_str("\n## Connected agents\n\n");
    for client in app.mcp.clients.list().iter().take(LISTED) {
        let plan = client
            .plan
            .as_deref()
            .map(|plan| format!(", working in {plan}"))
            .unwrap_or_default();
        text.push_str(&format!("- {}{plan}\n", client.actor));
    }
    Ok(text)
}

fn none_if(text: &mut String, before: usize) {
    if text.len() == before {
        text.push_str("Nothing.\n");
    }
}
