//! The buttons of jobs, and the setting for how many run at once.
//!
//! Most forms on the page name the version that the reader saw. These don't need to. A cancellation is about the job as
//! a whole, whatever it is doing by now; asking twice changes nothing, and a job that has ended refuses it. Only a job
//! that has ended can be retried, and an ended job no longer changes. How many jobs run at once is a setting: the last
//! value wins.

use std::sync::Arc;

use ::jobs::{ChangeError, Requested};
use axum::extract::State;
use axum::response::Redirect;
use maud::{Markup, html};
use protocol::{ErrorCode, Job};
use serde::Deserialize;

use super::state::{has_ended, label, path, title};
use crate::app::App;
use crate::http::log_problem::reason_text;
use crate::jobs::MOST_WORKERS;
use crate::jobs::wire::view;
use crate::page::login::Visitor;
use crate::page::parts::error::PageError;
use crate::page::parts::form::{Notice, OwnForm, button_form, done, hidden, token_field};
use crate::page::parts::list::Filter;
use crate::page::parts::text::counted;

/// Who acts, as recorded in the job.
const BY: &str = "the page";

/// How long the reason for a cancellation may be, in characters.
const WHY_CHARACTERS: usize = 200;

pub(crate) fn cancel_button(job: &Job, filter: &Filter, visitor: &Visitor) -> Markup {
    html! {
        @if can_be_cancelled(job) {
            (button_form(visitor, "/jobs/cancel", &[("id", &job.id), ("origin", &"list")], &html! {
                @if let Some(state) = &filter.state { (hidden("state", state)) }
                @if let Some(before) = &filter.before { (hidden("before", before)) }
                button data-key={ "cancel " (job.id) } aria-label={ "Cancel " (title(job)) } { "Cancel" }
            }))
        }
    }
}

/// The actions on a job's page. They look the same while the job waits and while it runs, so that the script leaves
/// them alone while somebody types a reason.
pub(crate) fn actions(job: &Job, visitor: &Visitor) -> Markup {
    html! {
        @if can_be_cancelled(job) {
            form method="post" action="/jobs/cancel" class="with-field" {
                (token_field(visitor))
                (hidden("id", &job.id))
                (hidden("origin", "detail"))
                label class="skip" for="why" { "Reason for cancelling" }
                input type="text" id="why" name="why" maxlength=(WHY_CHARACTERS) placeholder="Reason (optional)"
                    autocomplete="off" data-key="why";
                button id="cancel" data-key="cancel" { "Cancel" }
            }
        }
        @if has_ended(job) {
            (button_form(visitor, "/jobs/retry", &[("id", &job.id)], &html! {
                button id="retry" data-key="retry" { "Retry" }
            }))
        }
    }
}

fn can_be_cancelled(job: &Job) -> bool {
    !has_ended(job) && job.cancel.is_none()
}

pub(crate) fn workers_form(max_workers: u64, visitor: &Visitor) -> Markup {
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

#[derive(Debug, Deserialize)]
pub(crate) struct CancelForm {
    id: String,
    #[serde(default)]
    why: String,
    #[serde(default)]
    origin: Origin,
    state: Option<String>,
    before: Option<String>,
}

/// The page that a form is on, and returns to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Origin {
    #[default]
    List,
    Detail,
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<CancelForm>,
) -> Result<Redirect, PageError> {
    let request = Requested {
        by: BY.to_owned(),
        why: fields.why.trim().chars().take(WHY_CHARACTERS).collect(),
    };
    let notice = match fields.id.parse() {
        Err(_) => not_there(&fields.id),
        Ok(id) => match app.jobs.cancel(id, request).await {
            Ok(job) => cancelled(&shown(&app, &job).await?),
            Err(error) => refused(&app, &fields.id, error).await?,
        },
    };
    let back = match fields.origin {
        Origin::Detail => path(&fields.id),
        Origin::List => {
            let filter = Filter {
                state: fields.state,
                before: fields.before,
                ..Filter::all("jobs")
            };
            filter.path()
        }
    };
    Ok(done(&app, &visitor, notice, &back))
}

fn cancelled(job: &Job) -> Notice {
    let outcome = match has_ended(job) {
        true => "was cancelled.",
        false => "is stopping, along with everything it started.",
    };
    Notice::good(html! { "“" (title(job)) "” " (outcome) })
}

#[derive(Debug, Deserialize)]
pub(crate) struct RetryForm {
    id: String,
}

pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<RetryForm>,
) -> Result<Redirect, PageError> {
    let (notice, id) = match fields.id.parse() {
        Err(_) => (not_there(&fields.id), fields.id),
        Ok(id) => match app.environments.retry(&app.jobs, id, BY, None).await {
            Ok(job) => {
                let job = shown(&app, &job).await?;
                (retried(&job), job.id)
            }
            Err(error) => (refused(&app, &fields.id, error).await?, fields.id),
        },
    };
    Ok(done(&app, &visitor, notice, &path(&id)))
}

fn retried(job: &Job) -> Notice {
    Notice::good(html! { "“" (title(job)) "” was submitted again. This is the new job." })
}

#[derive(Debug, Deserialize)]
pub(crate) struct WorkersForm {
    max_workers: usize,
}

pub(crate) async fn set_workers(
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
        Ok(()) => workers(count),
        Err(error) => Notice::not_written(&error.to_string()),
    };
    Ok(done(&app, &visitor, notice, "/jobs"))
}

fn workers(count: usize) -> Notice {
    Notice::good(match count {
        0 => html! { "No new jobs will start. Running jobs continue." },
        count => html! { "Now running at most " (counted(count as u64, "job", "jobs")) " at a time." },
    })
}

fn not_there(id: &str) -> Notice {
    not_changed(id, "there is no such job, or it has expired")
}

fn not_changed(id: &str, reason: &str) -> Notice {
    Notice::warn(html! { "The job " code { (id) } " could not be changed: " (reason) "." })
}

async fn shown(app: &App, job: &::jobs::Job) -> Result<Job, PageError> {
    let job = view(&app.jobs, &app.durable.machines, job).await;
    job.map_err(|error| PageError::unreadable(&error))
}

async fn refused(app: &App, id: &str, error: ChangeError) -> Result<Notice, PageError> {
    Ok(match error {
        ChangeError::NotFound { .. } => not_there(id),
        ChangeError::Ended { job } | ChangeError::NotEnded { job } => moved(&shown(app, &job).await?),
        ChangeError::Log(error) => Notice::not_written(&reason_text(&error)),
        ChangeError::Forgotten { .. } | ChangeError::Submit(_) | ChangeError::Commit(_) => {
            not_changed(id, &error.to_string())
        }
    })
}

fn moved(job: &Job) -> Notice {
    Notice::moved(&title(job), label(job), None)
}

#[cfg(test)]
mod tests {
    use protocol::{JobCancelRequest, JobState};

    use super::*;
    use crate::page::jobs::state::tests::job;
    use crate::page::parts::text::tests::{HOSTILE, NOW, assert_harmless, assert_parts};

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

    #[test]
    fn a_job_has_the_buttons_that_would_do_something() {
        let visitor = Visitor::example();
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
            let in_list = cancel_button(&job, &Filter::all("jobs"), &visitor).into_string();
            assert_eq!(in_list.contains("Cancel"), cancel, "{job:?}");
        }
        // A reason that somebody is typing survives the start of the job.
        assert_eq!(
            actions(&job(JobState::Queued), &visitor).into_string(),
            actions(&job(JobState::Running), &visitor).into_string()
        );
    }

    #[test]
    fn a_form_in_the_list_leads_back_to_the_same_list() {
        let visitor = Visitor::example();
        let filter = Filter {
            state: Some("running".to_owned()),
            before: Some("job_9".to_owned()),
            ..Filter::all("jobs")
        };
        let token = visitor.login.form_token.reveal();
        assert_parts(
            &cancel_button(&job(JobState::Running), &filter, &visitor).into_string(),
            &[
                &format!("name=\"form_token\" value=\"{token}\""),
                "name=\"id\" value=\"job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX\"",
                "name=\"origin\" value=\"list\"",
                "name=\"state\" value=\"running\"",
                "name=\"before\" value=\"job_9\"",
                "aria-label=\"Cancel cargo test\"",
            ],
        );
    }

    #[test]
    fn notices_say_what_became_of_it() {
        let hostile = |state| Job {
            title: HOSTILE.to_owned(),
            ..job(state)
        };
        for (notice, expected) in [
            (cancelled(&hostile(JobState::Cancelled)), "” was cancelled."),
            (
                cancelled(&hostile(JobState::Running)),
                "” is stopping, along with everything it started.",
            ),
            (
                moved(&hostile(JobState::Succeeded)),
                "” has moved since you looked: it is now <strong>succeeded</strong>. Nothing was changed.",
            ),
            (retried(&hostile(JobState::Queued)), "” was submitted again."),
        ] {
            let rendered = notice.render().into_string();
            assert_parts(&rendered, &[expected]);
            assert_harmless(&rendered);
        }
        for (notice, expected) in [
            (workers(0), "No new jobs will start."),
            (workers(1), "Now running at most 1 job at a time."),
            (workers(8), "Now running at most 8 jobs at a time."),
            (
                not_there("<b>"),
                "<code>&lt;b&gt;</code> could not be changed: there is no such job",
            ),
        ] {
            assert_parts(&notice.render().into_string(), &[expected]);
        }
    }
}
