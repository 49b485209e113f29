//! What the buttons of a plan do.
//!
//! A form about an older version is refused. An apply takes the changes that its reader saw: nobody applies with a click what
//! they haven't seen. A run of checks names no version: it is about whatever is in the plan by then.

use std::sync::Arc;

use ::plans::{Actor, ApplyRequest, LandingOutcome, PlanError, Run, Unapplied, UndoRequest};
use axum::extract::State;
use axum::response::Redirect;
use protocol::{CommitPlans, OutcomeKind, PlanId};
use serde::Deserialize;

use super::buttons::Action;
use super::notice;
use super::state::path;
use crate::app::App;
use crate::http::Problem;
use crate::page::parts::form::{Notice, OwnForm, done};
use crate::page::parts::text::titled;
use crate::plans::{CheckError, Which, apply, discard, forget, refresh, run_checks, undo};

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
        // The plan no longer has a page, or the list still shows it.
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
        Err(Failed::Plan(PlanError::Stale { .. })) => notice::moved(&title),
        Err(Failed::Plan(error)) => refused(&title, error),
        Err(Failed::Other(reason)) => notice::refused(&title, &reason),
    }
}

pub(crate) fn refused(title: &str, error: PlanError) -> Notice {
    notice::refused(title, Problem::from(error).detail())
}

enum Failed {
    Plan(PlanError),
    Other(String),
}

impl From<PlanError> for Failed {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<CheckError> for Failed {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Plan(error) => Self::Plan(error),
            other => Self::Other(format!("The checks didn't run: {other}.")),
        }
    }
}

enum Done {
    Simply(&'static str),
    Attempted(Box<LandingOutcome>),
}

async fn act(app: &App, id: PlanId, form: &ChangeForm) -> Result<Done, Failed> {
    let by = || Actor::from(BY);
    let seen = Some(form.version);
    Ok(match form.action {
        Action::Seal => {
            app.plans.seal(id, by(), seen).await?;
            Done::Simply("is sealed and ready for review.")
        }
        Action::Discard => {
            let work = match form.give_up {
                Some(Yes::Yes) => Unapplied::GiveUp,
                None => Unapplied::Keep,
            };
            discard(app, id, by(), seen, work).await?;
            Done::Simply("was discarded.")
        }
        Action::Forget => {
            forget(app, id, by(), seen).await?;
            Done::Simply("was forgotten. Its changes and their contents were deleted.")
        }
        Action::Check | Action::CheckAll => {
            let which = match form.action {
                Action::CheckAll => Which::All,
                _ => Which::NotPassed,
            };
            run_checks(&app.plan_watch, id, (by(), app.durable.home_id), which).await?;
            Done::Simply("is being checked. Each check runs as a job.")
        }
        Action::Refresh => Done::Attempted(Box::new(refresh(app, id, by(), seen).await?)),
        Action::Apply => {
            let seen = form.seen.as_deref().map(str::parse).transpose();
            let unreadable = |_| {
                Failed::Other(
                    "The form doesn't say which changes you reviewed. Reload the page and try again."
                        .to_owned(),
                )
            };
            let order = ApplyRequest {
                plans: vec![id],
                seen: seen.map_err(unreadable)?.into_iter().collect(),
                by: by(),
                run: Run::Real,
                commit: form.commit.map(|Yes::Yes| CommitPlans::default()),
            };
            Done::Attempted(Box::new(apply(app, order).await?))
        }
        Action::Undo => {
            let changeset = form.changeset.as_deref().map(str::parse).transpose();
            let changeset = changeset.map_err(|_| Failed::Other("There is no such changeset.".to_owned()))?;
            let order = UndoRequest {
                plan: id,
                changeset,
                seen,
                by: by(),
                run: Run::Real,
            };
            Done::Attempted(Box::new(undo(app, order).await?))
        }
    })
}

fn attempted(title: &str, action: Action, outcome: &LandingOutcome) -> Notice {
    let word = match action {
        Action::Undo => "undone",
        Action::Refresh => "refreshed",
        _ => "applied",
    };
    if outcome.kind == OutcomeKind::Conflicted {
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
