//! What the buttons of a plan do.
//!
//! A form about an older version is refused. An apply covers exactly the changes that its reader saw, so a click never
//! applies unseen changes. A run of checks names no version: it covers whatever is in the plan by then.

use std::sync::Arc;

use ::plans::PlanError;
use axum::extract::State;
use axum::response::Redirect;
use protocol::{
    ApplyPlans, ChangePlan, CheckPlan, CommitPlans, ErrorCode, ForgetPlan, OutcomeKind, PlanId, PlanOutcome,
    UndoPlan,
};
use serde::Deserialize;

use super::buttons::Action;
use super::notice;
use super::state::path;
use crate::app::App;
use crate::http::Problem;
use crate::http::caller::Caller;
use crate::page::parts::form::{Notice, OwnForm, done};
use crate::page::parts::text::titled;
use crate::plans::acts;

/// Who acts, as recorded in the plan.
const BY: &str = "the page";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Yes {
    Yes,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChangeForm {
    id: String,
    version: u64,
    action: Action,
    seen: Option<String>,
    changeset: Option<String>,
    commit: Option<Yes>,
    give_up: Option<Yes>,
}

pub(crate) async fn change(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<ChangeForm>,
) -> Redirect {
    let notice = notice(&app, &fields).await;
    let to = match fields.action {
        // The plan's page no longer exists, or the list still shows the plan.
        Action::Forget => "/plans".to_owned(),
        _ => path(&fields.id),
    };
    done(&app, &visitor, notice, &to)
}

async fn notice(app: &App, form: &ChangeForm) -> Notice {
    let Ok(id) = form.id.parse::<PlanId>() else {
        return notice::refused(&form.id, "There is no such plan.");
    };
    let plan = match app.plans.get(id).await {
        Ok(plan) => plan,
        Err(error) => return refused(&form.id, error),
    };
    let title = titled(&plan.record.facts.title, &form.id);
    match act(app, id, form).await {
        Ok(Done::Simply(outcome)) => notice::done(&title, outcome, &[]),
        Ok(Done::Attempted(outcome)) => attempted(&title, form.action, &outcome),
        Err(problem) if problem.code() == ErrorCode::StaleGeneration => notice::moved(&title),
        Err(problem) => notice::refused(&title, problem.detail()),
    }
}

pub(crate) fn refused(title: &str, error: PlanError) -> Notice {
    notice::refused(title, Problem::from(error).detail())
}

enum Done {
    Simply(&'static str),
    Attempted(Box<PlanOutcome>),
}

async fn act(app: &App, id: PlanId, form: &ChangeForm) -> Result<Done, Problem> {
    let by = Caller::named(BY);
    let change = ChangePlan {
        version: Some(form.version),
        even_with_work: form.give_up == Some(Yes::Yes),
    };
    Ok(match form.action {
        Action::Seal => {
            acts::seal(app, &by, id, change).await?;
            Done::Simply("is sealed and ready for review.")
        }
        Action::Discard => {
            acts::discard(app, &by, id, change).await?;
            Done::Simply("was discarded.")
        }
        Action::Forget => {
            let version = change.version;
            acts::forget(app, &by, id, ForgetPlan { version }).await?;
            Done::Simply("was forgotten. Its changes and their contents were deleted.")
        }
        Action::Check | Action::CheckAll => {
            let request = CheckPlan {
                all: form.action == Action::CheckAll,
                ..CheckPlan::default()
            };
            acts::check(app, &by, id, request).await?;
            Done::Simply("is being checked. Each check runs as a job.")
        }
        Action::Refresh => Done::Attempted(Box::new(acts::refresh(app, &by, id, change).await?)),
        Action::Apply => {
            let request = ApplyPlans {
                plans: vec![id.to_string()],
                seen: form.seen.iter().cloned().collect(),
                dry_run: false,
                commit: form.commit.map(|Yes::Yes| CommitPlans::default()),
            };
            Done::Attempted(Box::new(acts::apply(app, &by, request).await?))
        }
        Action::Undo => {
            let request = UndoPlan {
                changeset: form.changeset.clone(),
                version: change.version,
                ..UndoPlan::default()
            };
            Done::Attempted(Box::new(acts::undo(app, &by, id, request).await?))
        }
    })
}

fn attempted(title: &str, action: Action, outcome: &PlanOutcome) -> Notice {
    let word = match action {
        Action::Undo => "undone",
        Action::Refresh => "refreshed",
        _ => "applied",
    };
    if outcome.outcome == OutcomeKind::Conflicted {
        return notice::conflicted(title, word, outcome.conflicts.len() as u64);
    }
    let merged = outcome.paths.iter().filter(|path| path.merged).count() as u64;
    let mut notes = outcome.notes.clone();
    let commit = outcome.commit.as_ref();
    notes.extend(commit.map(|commit| format!("Git commit: {commit}.")));
    notes.extend(outcome.commit_failed.as_ref().map(|why| {
        format!("The changes are in the workspace, but no git commit was made: {why}. Commit it yourself, or undo the plan.")
    }));
    let landed = notice::landed(word, outcome.paths.len() as u64, merged);
    notice::done(title, &landed, &notes)
}
