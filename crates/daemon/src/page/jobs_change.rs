//! The buttons of jobs, and how many of them run at once.
//!
//! Most forms of the page name the version that their reader saw. These need not. A cancellation is a wish about the
//! job as a whole, whatever it is doing by now; the same wish twice is one, and for a job that has ended it is refused.
//! A retry is of a job that has ended, and what has ended does not change. How many may run at once is a setting of the
//! daemon, of which the last word counts.

use std::sync::Arc;

use ::jobs::{ChangeError, Requested};
use axum::extract::State;
use axum::response::Redirect;
use maud::{Markup, html};
use protocol::{ErrorCode, Job, JobId, JobState};
use serde::Deserialize;

use super::error::PageError;
use super::form::{OwnForm, token_field};
use super::job_state::{has_ended, path, title};
use super::jobs::{Filter, unreadable};
use super::notice::Notice;
use super::sign_in::Visitor;
use crate::app::App;
use crate::http::log_problem::reason_text;
use crate::jobs::MOST_WORKERS;
use crate::jobs::wire::view;

/// Who asks, as it is written into the job.
const BY: &str = "the page";

/// How long the reason for a cancellation may be, in characters.
const WHY_CHARACTERS: usize = 200;

/// The button with a job in the list.
pub(super) fn cancel_button(job: &Job, filter: &Filter, visitor: &Visitor) -> Markup {
    let state = filter.state.map(JobState::as_str);
    html! {
        @if can_be_cancelled(job) {
            form method="post" action="/jobs/cancel" {
                (token_field(visitor))
                input type="hidden" name="id" value=(job.id);
                input type="hidden" name="origin" value="list";
                @if let Some(state) = state { input type="hidden" name="state" value=(state); }
                @if let Some(before) = &filter.before { input type="hidden" name="before" value=(before); }
                button data-key={ "cancel " (job.id) } aria-label={ "Cancel " (title(job)) } { "Cancel" }
            }
        }
    }
}

/// What can be done on the page of a job. It looks the same while the job waits and while it runs, so that the script
/// leaves it alone while somebody writes a reason.
pub(super) fn actions(job: &Job, visitor: &Visitor) -> Markup {
    html! {
        @if can_be_cancelled(job) {
            form method="post" action="/jobs/cancel" class="with-field" {
                (token_field(visitor))
                input type="hidden" name="id" value=(job.id);
                input type="hidden" name="origin" value="detail";
                label class="skip" for="why" { "Reason for cancelling" }
                input type="text" id="why" name="why" maxlength=(WHY_CHARACTERS) placeholder="Reason (optional)"
                    autocomplete="off" data-key="why";
                button id="cancel" data-key="cancel" { "Cancel" }
            }
        }
        @if has_ended(job) {
            form method="post" action="/jobs/retry" {
                (token_field(visitor))
                input type="hidden" name="id" value=(job.id);
                button id="retry" data-key="retry" { "Retry" }
            }
        }
    }
}

/// Whether a wish to cancel it would do anything.
fn can_be_cancelled(job: &Job) -> bool {
    !has_ended(job) && job.cancel.is_none()
}

/// The form for how many jobs run at once.
pub(super) fn workers_form(max_workers: u64, visitor: &Visitor) -> Markup {
    html! {
        form method="post" action="/jobs/workers" class="with-field" {
            (token_field(visitor))
            label for="workers" { "Parallel jobs" }
            input type="number" id="workers" name="max_workers" min="0" max=(MOST_WORKERS) required
                value=(max_workers) data-key="workers";
            button data-key="set workers" { "Set" }
        }
    }
}

/// The form behind the Cancel buttons.
#[derive(Debug, Deserialize)]
pub(super) struct CancelForm {
    id: String,
    #[serde(default)]
    why: String,
    #[serde(default)]
    origin: Origin,
    state: Option<JobState>,
    before: Option<String>,
}

/// The page that a form stands on, and leads back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Origin {
    #[default]
    List,
    Detail,
}

pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<CancelForm>,
) -> Result<Redirect, PageError> {
    let request = Requested {
        by: BY.to_owned(),
        why: fields.why.trim().chars().take(WHY_CHARACTERS).collect(),
    };
    let notice = match parsed(&fields.id) {
        Err(notice) => notice,
        Ok(id) => match app.jobs.cancel(id, request).await {
            Ok(job) => Notice::JobCancelled {
                job: shown(&app, &job).await?,
            },
            Err(error) => refused(&app, &fields.id, error).await?,
        },
    };
    let back = match fields.origin {
        Origin::Detail => path(&fields.id),
        Origin::List => {
            let filter = Filter {
                state: fields.state,
                before: fields.before,
            };
            filter.path()
        }
    };
    Ok(done(&app, &visitor, notice, &back))
}

/// The form behind the Retry button.
#[derive(Debug, Deserialize)]
pub(super) struct RetryForm {
    id: String,
}

pub(super) async fn retry(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<RetryForm>,
) -> Result<Redirect, PageError> {
    let (notice, id) = match parsed(&fields.id) {
        Err(notice) => (notice, fields.id),
        Ok(id) => match app.environments.retry(&app.jobs, id, BY, None).await {
            Ok(job) => {
                let job = shown(&app, &job).await?;
                let id = job.id.clone();
                (Notice::JobRetried { job }, id)
            }
            Err(error) => (refused(&app, &fields.id, error).await?, fields.id),
        },
    };
    Ok(done(&app, &visitor, notice, &path(&id)))
}

/// The form for how many jobs run at once.
#[derive(Debug, Deserialize)]
pub(super) struct WorkersForm {
    max_workers: usize,
}

pub(super) async fn set_workers(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<WorkersForm>,
) -> Result<Redirect, PageError> {
    let count = fields.max_workers;
    if count > MOST_WORKERS {
        let detail =
            html! { p { "At most " (MOST_WORKERS) " jobs can run at a time. Nothing was changed." } };
        return Err(PageError::new(ErrorCode::InvalidRequest, detail));
    }
    let notice = match app.job_workers.choose(&app.jobs, count).await {
        Ok(()) => Notice::Workers { count },
        Err(error) => Notice::NotWritten {
            reason: error.to_string(),
        },
    };
    Ok(done(&app, &visitor, notice, "/jobs"))
}

fn parsed(id: &str) -> Result<JobId, Notice> {
    id.parse().map_err(|_| not_there(id))
}

fn not_there(id: &str) -> Notice {
    Notice::JobRefused {
        id: id.to_owned(),
        reason: "there is no such job, or it has expired".to_owned(),
    }
}

async fn shown(app: &App, job: &::jobs::Job) -> Result<Box<Job>, PageError> {
    let job = view(&app.jobs, &app.durable.machines, job)
        .await
        .map_err(|error| unreadable(&error))?;
    Ok(Box::new(job))
}

async fn refused(app: &App, id: &str, error: ChangeError) -> Result<Notice, PageError> {
    Ok(match error {
        ChangeError::NotFound { .. } => not_there(id),
        ChangeError::Ended { job } | ChangeError::NotEnded { job } => Notice::JobMoved {
            job: shown(app, &job).await?,
        },
        ChangeError::Log(error) => Notice::NotWritten {
            reason: reason_text(&error),
        },
        ChangeError::Forgotten { .. } | ChangeError::Submit(_) | ChangeError::Commit(_) => {
            Notice::JobRefused {
                id: id.to_owned(),
                reason: error.to_string(),
            }
        }
    })
}

fn done(app: &App, visitor: &Visitor, notice: Notice, back: &str) -> Redirect {
    tracing::info!(?notice, "a form of the page was handled");
    app.sessions.leave_notice(visitor.session.id, notice);
    Redirect::to(back)
}

#[cfg(test)]
mod tests {
    use protocol::JobCancelRequest;

    use super::super::job_state::tests::{HOSTILE, NOW, assert_harmless, job};
    use super::*;
    use crate::app::tests::detached;

    fn being_cancelled() -> Job {
        Job {
            cancel: Some(JobCancelRequest {
                by: BY.to_owned(),
                why: String::new(),
                at: NOW.to_owned(),
            }),
            ..job(JobState::Running)
        }
    }

    #[tokio::test]
    async fn a_job_has_the_buttons_that_would_do_something() {
        let app = detached().await;
        let visitor = Visitor::for_tests(&app);
        for (job, cancel, retry) in [
            (job(JobState::Queued), true, false),
            (job(JobState::Running), true, false),
            (being_cancelled(), false, false),
            (job(JobState::Succeeded), false, true),
            (job(JobState::Failed), false, true),
            (job(JobState::Cancelled), false, true),
        ] {
            let found = actions(&job, &visitor).into_string();
            assert_eq!(
                (found.contains("id=\"cancel\""), found.contains("id=\"retry\"")),
                (cancel, retry),
                "{job:?}"
            );
            let in_list = cancel_button(&job, &Filter::default(), &visitor).into_string();
            assert_eq!(in_list.contains("Cancel"), cancel, "{job:?}");
        }
        // Whoever writes a reason keeps it when the job starts.
        assert_eq!(
            actions(&job(JobState::Queued), &visitor).into_string(),
            actions(&job(JobState::Running), &visitor).into_string()
        );
    }

    #[tokio::test]
    async fn a_form_in_the_list_leads_back_to_the_same_list() {
        let app = detached().await;
        let visitor = Visitor::for_tests(&app);
        let filter = Filter {
            state: Some(JobState::Running),
            before: Some("job_9".to_owned()),
        };
        let form = cancel_button(&job(JobState::Running), &filter, &visitor).into_string();
        let token = visitor.session.form_token.reveal();
        for part in [
            format!("name=\"form_token\" value=\"{token}\""),
            "name=\"id\" value=\"job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX\"".to_owned(),
            "name=\"origin\" value=\"list\"".to_owned(),
            "name=\"state\" value=\"running\"".to_owned(),
            "name=\"before\" value=\"job_9\"".to_owned(),
            "aria-label=\"Cancel cargo test\"".to_owned(),
        ] {
            assert!(form.contains(&part), "{part}: {form}");
        }
    }

    #[test]
    fn notices_say_what_became_of_it() {
        let hostile = |state| {
            Box::new(Job {
                title: HOSTILE.to_owned(),
                ..job(state)
            })
        };
        for (notice, expected) in [
            (
                Notice::JobCancelled {
                    job: hostile(JobState::Cancelled),
                },
                "” was cancelled.",
            ),
            (
                Notice::JobCancelled {
                    job: hostile(JobState::Running),
                },
                "” is stopping, along with everything it started.",
            ),
            (
                Notice::JobMoved {
                    job: hostile(JobState::Succeeded),
                },
                "” has moved since you looked: it is now <strong>succeeded</strong>. Nothing was changed.",
            ),
            (
                Notice::JobRetried {
                    job: hostile(JobState::Queued),
                },
                "” was submitted again.",
            ),
        ] {
            let rendered = notice.render().into_string();
            assert!(rendered.contains(expected), "{rendered}");
            assert_harmless(&rendered);
        }
        for (count, expected) in [
            (0, "No new jobs will start."),
            (1, "Now running at most 1 job at a time."),
            (8, "Now running at most 8 jobs at a time."),
        ] {
            let rendered = Notice::Workers { count }.render().into_string();
            assert!(rendered.contains(expected), "{rendered}");
        }
        let refused = not_there("<b>").render().into_string();
        assert!(
            refused.contains("<code>&lt;b&gt;</code> could not be changed: there is no such job"),
            "{refused}"
        );
    }
}
