//! Jobs on the first page.

use ::jobs::{Counts, ListQuery, StateName};
use api::Job;
use maud::{Markup, html};

use super::job_state::{badge, explanation, path, title};
use crate::app::App;
use crate::jobs::wire::list;

/// How many running jobs are named.
const NAMED_JOBS: u32 = 8;

/// How many there are, and those that run.
pub(super) async fn show(app: &App) -> Markup {
    let query = ListQuery {
        state: Some(StateName::Running),
        before: None,
        limit: NAMED_JOBS,
    };
    // The first page has much to tell. If the log cannot be read, another card says so.
    let running = list(&app.jobs, query).await.map(|list| list.jobs);
    card(&running.unwrap_or_default(), &app.jobs.counts())
}

fn card(running: &[Job], counts: &Counts) -> Markup {
    let Counts {
        succeeded,
        failed,
        cancelled,
        ..
    } = counts;
    let is_unused = counts.queued + counts.running + succeeded + failed + cancelled == 0;
    html! {
        section class="card" aria-labelledby="jobs" {
            div class="card-heading" {
                h2 id="jobs" { "Jobs" }
                a href="/jobs" data-key="jobs" { "See all" }
            }
            @if is_unused {
                p { "None since this daemon started. " code { "tidelock job run -- cargo test" } " submits one." }
            } @else {
                p {
                    (counts.running) " running of " (counts.max_workers) ", " (counts.queued) " queued. Since this "
                    "daemon started: " (succeeded) " succeeded, " (failed) " failed, " (cancelled) " cancelled."
                }
            }
            @if !running.is_empty() {
                dl class="facts" {
                    @for job in running {
                        dt { (badge(job)) }
                        dd { a href=(path(&job.id)) data-key={ "job " (job.id) } { (title(job)) } (explanation(job)) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use api::JobState;

    use super::super::job_state::tests::{HOSTILE, assert_harmless, job};
    use super::*;

    #[test]
    fn they_are_counted_and_those_that_run_are_named() {
        let counts = Counts {
            queued: 3,
            running: 2,
            max_workers: 4,
            succeeded: 10,
            failed: 1,
            ..Counts::default()
        };
        let busy = card(&[job(JobState::Running)], &counts).into_string();
        for part in [
            "2 running of 4, 3 queued. Since this daemon started: 10 succeeded, 1 failed, 0 cancelled.",
            ">cargo test</a>",
        ] {
            assert!(busy.contains(part), "{part}: {busy}");
        }
        let unused = card(&[], &Counts::default()).into_string();
        assert!(unused.contains("None since this daemon started."), "{unused}");
    }

    #[test]
    fn what_jobs_say_is_shown_as_text() {
        let hostile = Job {
            title: HOSTILE.to_owned(),
            text: Some(HOSTILE.to_owned()),
            ..job(JobState::Running)
        };
        assert_harmless(&card(&[hostile], &Counts::default()).into_string());
    }
}
