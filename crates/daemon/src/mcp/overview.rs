//! What is running and what needs a person, as text for a model.

use ::jobs::ListQuery;
use ::plans::PlanQuery;
use ::sessions::SessionQuery;
use protocol::{JobState, Plan, PlanState, Session, SessionState};

use super::tools::overlap_line;
use crate::app::App;
use crate::http::Problem;
use crate::jobs::acts as jobs;
use crate::needs;
use crate::page::counted_files;
use crate::plans::acts as plans;
use crate::sessions::wire;

/// How many of each kind are listed.
const LISTED: usize = 20;

/// The newest plans that are open or sealed.
pub(super) async fn unfinished_plans(app: &App, limit: u32) -> Result<Vec<Plan>, Problem> {
    let query = PlanQuery {
        states: vec![PlanState::Open, PlanState::Sealed],
        limit,
        ..PlanQuery::default()
    };
    Ok(plans::list(app, query, None).await?.plans)
}

pub(super) async fn overview(app: &App, actor: &str) -> Result<String, Problem> {
    let plans = unfinished_plans(app, 50).await?;
    let running = ListQuery {
        state: Some(JobState::Running),
        before: None,
        limit: 20,
    };
    let running = jobs::list(app, running).await?;
    let sessions = SessionQuery {
        limit: 50,
        ..SessionQuery::default()
    };
    let sessions = wire::list(&app.sessions, &app.durable.machines, sessions)
        .await?
        .sessions;
    let mut text = format!(
        "# Tidelock {}\n\nPage: {}/\nYou are: {actor}\n",
        env!("CARGO_PKG_VERSION"),
        app.hosts.page_origin()
    );

    text.push_str("\n## Waiting for a person\n\n");
    let before = text.len();
    for need in needs::read(app).await.to_wire().needs.iter().take(LISTED) {
        // Text from another agent may contain newlines, and its lines would read as if they were ours.
        let line = format!("{} {}: {}", need.id, need.title, need.text).replace(char::is_control, " ");
        text.push_str(&format!("- {line}\n"));
    }
    none_if(&mut text, before);

    text.push_str("\n## Open plans\n\n");
    let before = text.len();
    let open = plans.iter().filter(|plan| plan.state == PlanState::Open);
    for plan in open.take(LISTED) {
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
    let is_running = |session: &&Session| session.state == SessionState::Running;
    for session in sessions.iter().filter(is_running) {
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
