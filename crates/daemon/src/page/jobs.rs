//! The page of jobs: what waits, what runs, and what has become of the rest.

use std::sync::Arc;
use std::time::Duration;

use ::jobs::ListQuery;
use axum::extract::State;
use eventlog::LogError;
use maud::{Markup, html};
use protocol::{ErrorCode, Job, JobCounts, JobId, JobList, JobState};
use serde::Deserialize;

use super::ansi::one_line;
use super::error::PageError;
use super::job_state::{attempts, badge, exit, explanation, has_ended, path, ran, state_label, title};
use super::job_time::ago;
use super::jobs_change::{cancel_button, workers_form};
use super::layout::{Place, live_part, page_below};
use super::list_parts::{Asked, Choice, ListFilter, SHOWN, choices, elsewhere, id, pages, query};
use super::sign_in::Visitor;
use crate::app::App;
use crate::http::log_problem::reason_text;
use crate::jobs::wire::list;
use crate::times::now_ms;

/// A run time counts up before the eyes of whoever watches.
const REFRESH_WHILE_MOVING: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_secs(5);

/// Which jobs are shown. It stands in the address, so that it can be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Filter {
    /// Only those that are doing this.
    pub(super) state: Option<JobState>,
    /// Only those that are older than this one.
    pub(super) before: Option<String>,
}

impl ListFilter for Filter {
    const LISTED: &'static str = "jobs";
}

impl Filter {
    /// Where this part of the list is.
    pub(super) fn path(&self) -> String {
        let state = self.state.map(JobState::as_str);
        format!(
            "/jobs{}",
            query(&[("state", state), ("before", self.before.as_deref())])
        )
    }

    fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// The states that the list can be narrowed to.
const STATES: [JobState; 5] = [
    JobState::Queued,
    JobState::Running,
    JobState::Succeeded,
    JobState::Failed,
    JobState::Cancelled,
];

pub(super) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(filter): Asked<Filter>,
) -> Result<Markup, PageError> {
    let live_path = format!("/live{}", filter.path());
    let live = live(&app, &visitor, &filter).await?;
    Ok(page_below(
        &app,
        &visitor,
        Place::Jobs,
        ("Jobs", &live_path),
        &live,
    ))
}

pub(super) async fn show_live(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(filter): Asked<Filter>,
) -> Result<Markup, PageError> {
    live(&app, &visitor, &filter).await
}

/// The log cannot be read.
pub(super) fn unreadable(error: &LogError) -> PageError {
    let detail = html! { p { "Can't read the log: " (reason_text(error)) "." } };
    PageError::new(ErrorCode::LogFailed, detail)
}

async fn live(app: &App, visitor: &Visitor, filter: &Filter) -> Result<Markup, PageError> {
    let before: Option<JobId> = id::<Filter, _>(filter.before.as_deref())?;
    let wanted = ListQuery {
        state: filter.state,
        before,
        limit: SHOWN,
    };
    let list = list(&app.jobs, &app.durable.machines, wanted)
        .await
        .map_err(|error| unreadable(&error))?;
    let refresh = if list.jobs.iter().all(has_ended) {
        REFRESH
    } else {
        REFRESH_WHILE_MOVING
    };
    Ok(live_part(
        app,
        visitor,
        refresh,
        &content(&list, now_ms(), filter, visitor),
    ))
}

fn content(list: &JobList, now_ms: u64, filter: &Filter, visitor: &Visitor) -> Markup {
    let at = |before: Option<String>| {
        Filter {
            before,
            ..filter.clone()
        }
        .path()
    };
    let newest = filter.before.is_some().then(|| at(None));
    let older = list.next_before.clone().map(|older| at(Some(older)));
    html! {
        div class="heading" data-part="heading" {
            div {
                h1 { "Jobs" }
                p {
                    "Commands that keep running when you or your agent disconnect. Cancelling a job also stops everything it "
                    "started."
                }
            }
        }
        (tiles(list.counts))
        // A part of its own, which stays as it is while somebody types.
        div class="workers" data-part="workers" { (workers_form(list.counts.max_workers, visitor)) }
        (state_links(filter))
        div data-part="jobs" {
            @if list.jobs.is_empty() {
                (empty(filter))
            } @else {
                (table(&list.jobs, now_ms, filter, visitor))
            }
            (pages("jobs", newest, older))
        }
    }
}

fn tiles(counts: JobCounts) -> Markup {
    html! {
        dl class="tiles" data-part="tiles" {
            div class="tile" id="jobs-queued" { dt { "Queued" } dd { (counts.queued) } }
            div class="tile" id="jobs-running" {
                dt { "Running here" }
                dd { (counts.running) " " small { "of " (counts.max_workers) } }
            }
        }
    }
}

fn state_links(filter: &Filter) -> Markup {
    let choice = |state: Option<JobState>, word: &'static str| Choice {
        word,
        href: Filter { state, before: None }.path(),
        is_chosen: filter.state == state,
    };
    let states = STATES.map(|state| choice(Some(state), state_label(state)));
    let all: Vec<Choice<'_>> = std::iter::once(choice(None, "All")).chain(states).collect();
    choices("State", &all, &html! {})
}

fn empty(filter: &Filter) -> Markup {
    html! {
        div class="card empty" {
            @if filter.is_everything() {
                h2 { "No jobs yet" }
                p { "Run a long command as a job. It keeps running when you or your agent disconnect." }
                p { code { "tidelock job run -- cargo test" } }
            } @else {
                h2 { "No matching jobs" }
                p { a href="/jobs" data-key="all" { "All jobs" } }
            }
        }
    }
}

fn table(jobs: &[Job], now_ms: u64, filter: &Filter, visitor: &Visitor) -> Markup {
    html! {
        div class="card table" {
            table {
                thead {
                    tr {
                        th scope="col" { "Job" }
                        th scope="col" { "State" }
                        th scope="col" class="count" { "Attempts" }
                        th scope="col" class="count" { "Submitted" }
                        th scope="col" class="count" { "Ran" }
                        th scope="col" class="count" { "Exit" }
                        th scope="col" { span class="skip" { "Actions" } }
                    }
                }
                tbody { @for job in jobs { (row(job, now_ms, filter, visitor)) } }
            }
        }
    }
}

fn row(job: &Job, now_ms: u64, filter: &Filter, visitor: &Visitor) -> Markup {
    let none = || "–".to_owned();
    let submitted = ago(&job.submitted_at, now_ms).map_or_else(none, |ago| format!("{ago} ago"));
    html! {
        tr data-job=(job.id) {
            th scope="row" {
                a class="job-title" href=(path(&job.id)) data-key={ "show " (job.id) } { (title(job)) }
                small { (job.id) }
                (elsewhere(job.machine.as_ref()))
                @if let Some(lane) = &job.lane { small { "lane " (one_line(&lane.name)) } }
            }
            td class="state" { (badge(job)) (explanation(job)) }
            td class="count" data-label="Attempts" { (attempts(job)) }
            td class="count" data-label="Submitted" {
                time datetime=(job.submitted_at) { (submitted) }
            }
            td class="count" data-label="Ran" { (ran(job).unwrap_or_else(none)) }
            td class="count" data-label="Exit" { (exit(job).unwrap_or_else(none)) }
            td class="act" { div class="actions" { (cancel_button(job, filter, visitor)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::JobLane;

    use super::super::job_state::tests::{HOSTILE, NOW, assert_harmless, job};
    use super::*;
    use crate::app::tests::detached;
    use crate::times::parse;

    const COUNTS: JobCounts = JobCounts {
        queued: 3,
        running: 2,
        max_workers: 4,
        foreground: 0,
    };

    /// If there are several, there are older ones.
    async fn rendered(jobs: &[Job], filter: &Filter) -> String {
        let app = detached().await;
        let visitor = Visitor::for_tests(&app);
        let list = JobList {
            jobs: jobs.to_vec(),
            next_before: (jobs.len() > 1).then(|| "job_49".to_owned()),
            counts: COUNTS,
        };
        content(&list, parse(NOW).unwrap(), filter, &visitor).into_string()
    }

    #[tokio::test]
    async fn a_row_has_what_people_look_for() {
        let job = Job {
            lane: Some(JobLane {
                name: "cargo:/home/me".to_owned(),
                limit: 1,
            }),
            exit: Some(protocol::JobExit {
                code: Some(101),
                signal: None,
            }),
            ..job(JobState::Failed)
        };
        let page = rendered(&[job], &Filter::default()).await;
        for part in [
            "<dt>Queued</dt><dd>3</dd>",
            "<dt>Running here</dt><dd>2 <small>of 4</small></dd>",
            "<tr data-job=\"job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX\">",
            "href=\"/jobs/job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX\" data-key=\"show job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX\">cargo test</a>",
            "<small>lane cargo:/home/me</small>",
            "data-label=\"Attempts\">1</td>",
            "<time datetime=\"2026-01-31T09:30:00.000Z\">1 min 0 s ago</time>",
            "data-label=\"Ran\">2.5 s</td>",
            "data-label=\"Exit\">code 101</td>",
            "<a href=\"/jobs\" data-key=\"filter All\" aria-current=\"true\">All</a>",
            "<a href=\"/jobs?state=failed\" data-key=\"filter Failed\">Failed</a>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("jobs-older"), "{page}");
    }

    #[tokio::test]
    async fn only_a_job_on_another_machine_says_where_it_is() {
        let on = |name: &str, here: bool| Job {
            machine: Some(protocol::Machine {
                name: name.to_owned(),
                home: "home_1".to_owned(),
                here,
            }),
            ..job(JobState::Running)
        };
        let page = rendered(&[on("desk", false)], &Filter::default()).await;
        assert!(
            page.contains("<small class=\"machine\">on desk</small>"),
            "{page}"
        );
        assert_harmless(&rendered(&[on(HOSTILE, false)], &Filter::default()).await);
        let page = rendered(&[on("box", true)], &Filter::default()).await;
        assert!(!page.contains("on box"), "{page}");
    }

    #[tokio::test]
    async fn what_has_not_ended_can_be_cancelled() {
        for (state, expected) in [
            (JobState::Queued, true),
            (JobState::Running, true),
            (JobState::Succeeded, false),
            (JobState::Failed, false),
            (JobState::Cancelled, false),
        ] {
            let page = rendered(&[job(state)], &Filter::default()).await;
            assert_eq!(page.contains(">Cancel</button>"), expected, "{state:?}: {page}");
        }
    }

    #[tokio::test]
    async fn older_jobs_are_behind_a_link_that_keeps_the_state() {
        let jobs = [job(JobState::Failed), job(JobState::Failed)];
        let filter = Filter {
            state: Some(JobState::Failed),
            before: Some("job_x".to_owned()),
        };
        let page = rendered(&jobs, &filter).await;
        for part in [
            "<a href=\"/jobs?state=failed\" data-key=\"newest\">Newest</a>",
            "<a id=\"jobs-older\" href=\"/jobs?state=failed&amp;before=job_49\" data-key=\"older\">Older</a>",
            "<a href=\"/jobs?state=failed\" data-key=\"filter Failed\" aria-current=\"true\">Failed</a>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let last_page = rendered(&jobs[..1], &filter).await;
        assert!(!last_page.contains("jobs-older"), "{last_page}");
    }

    #[tokio::test]
    async fn without_jobs_the_page_says_what_to_do() {
        let page = rendered(&[], &Filter::default()).await;
        assert!(
            page.contains("<code>tidelock job run -- cargo test</code>"),
            "{page}"
        );
        let narrowed = Filter {
            state: Some(JobState::Queued),
            before: None,
        };
        let page = rendered(&[], &narrowed).await;
        assert!(
            page.contains("No matching jobs") && !page.contains("cargo test"),
            "{page}"
        );
    }

    #[tokio::test]
    async fn what_jobs_say_is_shown_as_text() {
        let hostile = |state| Job {
            id: format!("\"><{HOSTILE}"),
            title: HOSTILE.to_owned(),
            lane: Some(JobLane {
                name: HOSTILE.to_owned(),
                limit: 1,
            }),
            text: Some(HOSTILE.to_owned()),
            waiting_for: Some(HOSTILE.to_owned()),
            progress: Some(protocol::JobProgress {
                done: 1,
                total: Some(2),
                text: HOSTILE.to_owned(),
            }),
            ..job(state)
        };
        for state in STATES {
            // An id is made by the daemon and has no such characters; if it had, it would still be text.
            let page = rendered(&[hostile(state)], &Filter::default()).await;
            assert!(!page.contains("<script>alert"), "{page}");
            let tame_id = Job {
                id: "job_1".to_owned(),
                ..hostile(state)
            };
            assert_harmless(&rendered(&[tame_id], &Filter::default()).await);
        }
    }

    #[test]
    fn a_filter_fits_into_the_address() {
        for (state, before, expected) in [
            (None, None, ""),
            (Some(JobState::Queued), None, "?state=queued"),
            (None, Some("job_1"), "?before=job_1"),
            (
                Some(JobState::Failed),
                Some("a&b=ü"),
                "?state=failed&before=a%26b%3D%C3%BC",
            ),
        ] {
            let before = before.map(str::to_owned);
            assert_eq!(Filter { state, before }.path(), format!("/jobs{expected}"));
        }
    }
}
