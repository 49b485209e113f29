//! What the buttons of a plan do.
//!
//! What was asked for about another version is refused. An apply is of the changes that its reader saw: what they have not
//! seen is not applied by their click. A run of checks names nothing: it is a wish about whatever is in the plan by then.

use std::sync::Arc;

use ::plans::{Actor, ApplyOrder, Outcome, PlanError, Run, Unapplied, UndoOrder};
use axum::extract::State;
use axum::response::Redirect;
use protocol::{CommitPlans, OutcomeKind, PlanId};
use serde::Deserialize;

use super::form::OwnForm;
use super::notice::Notice;
use super::plan_actions::Action;
use super::plan_notice::PlanNotice;
use super::plan_state::{path, titled};
use crate::app::App;
use crate::http::Problem;
use crate::plans::{CheckError, Which, apply, discard, forget, refresh, run_checks, undo};

/// Who asks, as it is written into the plan.
const BY: &str = "the page";

/// A box that was ticked, or a field that says yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Yes {
    Yes,
}

/// The form behind every button.
#[derive(Debug, Deserialize)]
pub(super) struct ChangeForm {
    id: String,
    version: u64,
    action: Action,
    /// Names the changes that an apply is about.
    seen: Option<String>,
    changeset: Option<String>,
    commit: Option<Yes>,
    give_up: Option<Yes>,
}

pub(super) async fn change(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<ChangeForm>,
) -> Redirect {
    let notice = notice(&app, &fields).await;
    tracing::info!(?notice, "a form of the page was handled");
    app.sessions
        .leave_notice(visitor.session.id, Notice::Plan(notice));
    match fields.action {
        // There is no page of its own any more, or the list shows it still.
        Action::Forget => Redirect::to("/plans"),
        _ => Redirect::to(&path(&fields.id)),
    }
}

async fn notice(app: &App, form: &ChangeForm) -> PlanNotice {
    let Ok(id) = form.id.parse::<PlanId>() else {
        return PlanNotice::refused(form.id.clone(), "There is no such plan.");
    };
    let plan = match app.plans.get(id).await {
        Ok(plan) => plan,
        Err(error) => return refused(form.id.clone(), error),
    };
    let title = titled(&plan.record.facts.title, &form.id);
    match act(app, id, form).await {
        Ok(done) => done.named(title),
        Err(Failed::Plan(PlanError::Stale { .. })) => PlanNotice::Moved { title },
        Err(Failed::Plan(error)) => refused(title, error),
        Err(Failed::Other(reason)) => PlanNotice::refused(title, &reason),
    }
}

fn refused(title: String, error: PlanError) -> PlanNotice {
    PlanNotice::refused(title, Problem::from(error).detail())
}

/// Why a button did nothing.
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

/// What a button did.
enum Done {
    Simply(&'static str),
    Attempted(Action, Box<Outcome>),
}

impl Done {
    fn named(self, title: String) -> PlanNotice {
        match self {
            Self::Simply(outcome) => PlanNotice::Done {
                title,
                outcome: outcome.to_owned(),
                notes: Vec::new(),
            },
            Self::Attempted(action, outcome) => attempted(title, action, &outcome),
        }
    }
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
        Action::Refresh => Done::Attempted(Action::Refresh, Box::new(refresh(app, id, by(), seen).await?)),
        Action::Apply => {
            let seen = form.seen.as_deref().map(str::parse).transpose();
            let unreadable = |_| {
                Failed::Other(
                    "The form doesn't say which changes you reviewed. Reload the page and try again."
                        .to_owned(),
                )
            };
            let order = ApplyOrder {
                plans: vec![id],
                seen: seen.map_err(unreadable)?.into_iter().collect(),
                by: by(),
                run: Run::Real,
                commit: form.commit.map(|Yes::Yes| CommitPlans::default()),
            };
            Done::Attempted(Action::Apply, Box::new(apply(app, order).await?))
        }
        Action::Undo => {
            let changeset = form.changeset.as_deref().map(str::parse).transpose();
            let changeset = changeset.map_err(|_| Failed::Other("There is no such changeset.".to_owned()))?;
            let order = UndoOrder {
                plan: id,
                changeset,
                seen,
                by: by(),
                run: Run::Real,
            };
            Done::Attempted(Action::Undo, Box::new(undo(app, order).await?))
        }
    })
}

fn attempted(title: String, action: Action, outcome: &Outcome) -> PlanNotice {
    let word = match action {
        Action::Undo => "undone",
        Action::Refresh => "refreshed",
        _ => "applied",
    };
    if outcome.kind == OutcomeKind::Conflicted {
        return PlanNotice::Conflicted {
            title,
            word,
            conflicts: outcome.conflicts.len() as u64,
        };
    }
    let merged = outcome.paths.iter().filter(|path| path.merged).count() as u64;
    let mut notes = outcome.notes.clone();
    notes.extend(
        outcome
            .commit
            .as_ref()
            .map(|commit| format!("Git commit: {commit}.")),
    );
    notes.extend(outcome.commit_failed.as_ref().map(|why| {
        format!("The changes are in the workspace, but no git commit was made: {why}. Commit it yourself, or undo the plan.")
    }));
    PlanNotice::Done {
        title,
        outcome: super::plan_notice::landed(word, outcome.paths.len() as u64, merged),
        notes,
    }
}
