//! The jobs page: what is waiting, what is running, and how the rest ended.

use std::sync::Arc;

use ::jobs::ListQuery;
use maud::{Markup, html};
use protocol::{Job, JobCounts, JobList, JobState};

use super::act::{cancel_button, workers_form};
use super::state::{attempts, badge, exit, explanation, has_ended, path, ran, title};
use crate::app::App;
use crate::jobs::wire::list;
use crate::page::login::Visitor;
use crate::page::parts::ansi::one_line;
use crate::page::parts::error::PageError;
use crate::page::parts::layout::{Live, Refresh};
use crate::page::parts::list::Column::{Actions, Count, Text};
use crate::page::parts::list::{
    Choice, Filter, SHOWN, count, elsewhere, empty, heading, no_match, table_card,
};
use crate::page::parts::text::or_dash;
use crate::page::parts::times::time_ago;
use crate::times::now_ms;

/// The filters of the list.
const STATES: [Choice<Option<JobState>>; 6] = [
    Choice::new("", "All", None),
    Choice::new("queued", "Queued", Some(JobState::Queued)),
    Choice::new("running", "Running", Some(JobState::Running)),
    Choice::new("succeeded", "Succeeded", Some(JobState::Succeeded)),
    Choice::new("failed", "Failed", Some(JobState::Failed)),
    Choice::new("cancelled", "Cancelled", Some(JobState::Cancelled)),
];

pub(crate) async fn read(app: Arc<App>, visitor: Visitor, filter: Filter) -> Result<Live, PageError> {
    let wanted = ListQuery {
        state: filter.chosen(filter.state.as_deref(), &STATES)?,
        before: filter.id(filter.before.as_deref())?,
        limit: SHOWN,
    };
    let list = list(&app.jobs, &app.durable.machines, wanted).await;
    let list = list.map_err(|error| PageError::unreadable(&error))?;
    // A run time counts up.
    let refresh = Refresh::while_moving(!list.jobs.iter().all(has_ended));
    let content = content(&list, now_ms(), &filter, &visitor);
    Ok(Live::new("Jobs", refresh, content))
}

fn content(list: &JobList, now_ms: u64, filter: &Filter, visitor: &Visitor) -> Markup {
    html! {
        (heading("Jobs", "Commands that keep running when you or your agent disconnect. Cancelling a job also stops everything it started."))
        (tiles(list.counts))
        // A separate part, which the script leaves alone while somebody types.
        div class="workers" data-part="workers" { (workers_form(list.counts.max_workers, visitor)) }
        (filter.state_links("State", &STATES, &html! {}))
        div data-part="jobs" {
            @if !list.jobs.is_empty() {
                (table_card(
                    &[Text("Job"), Text("State"), Count("Attempts"), Count("Submitted"), Count("Ran"), Count("Exit"), Actions],
                    list.jobs.iter().map(|job| row(job, now_ms, filter, visitor)),
                ))
            } @else if filter.is_everything() {
                (empty(
                    "No jobs yet",
                    "Run a long command as a job. It keeps running when you or your agent disconnect.",
                    "tidelock job run -- cargo test",
                ))
            } @else {
                (no_match(filter, "All jobs"))
            }
            (filter.pages(list.next_before.as_ref()))
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

fn row(job: &Job, now_ms: u64, filter: &Filter, visitor: &Visitor) -> Markup {
    html! {
        tr data-job=(job.id) {
            th scope="row" {
                a class="job-title" href=(path(&job.id)) data-key={ "show " (job.id) } { (title(job)) }
                small { (job.id) }
                (elsewhere(job.machine.as_ref()))
                @if let Some(lane) = &job.lane { small { "lane " (one_line(&lane.name)) } }
            }
            td class="state" { (badge(job)) (explanation(job)) }
            (count("Attempts", attempts(job)))
            (count("Submitted", time_ago(&job.submitted_at, now_ms)))
            (count("Ran", or_dash(ran(job))))
            (count("Exit", or_dash(exit(job))))
            td class="act" { div class="actions" { (cancel_button(job, filter, visitor)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::{JobLane, JobState};

    use super::*;
    use crate::page::jobs::state::tests::job;
    use crate::page::parts::text::tests::{HOSTILE, NOW, assert_absent, assert_harmless, assert_parts};
    use crate::times::parse;

    const COUNTS: JobCounts = JobCounts {
        queued: 3,
        running: 2,
        max_workers: 4,
        foreground: 0,
    };

    /// With several jobs, the list also has older ones.
    fn rendered(jobs: &[Job], filter: &Filter) -> String {
        let list = JobList {
            jobs: jobs.to_vec(),
            next_before: (jobs.len() > 1).then(|| "job_49".to_owned()),
            counts: COUNTS,
        };
        content(&list, parse(NOW).unwrap(), filter, &Visitor::example()).into_string()
    }

    fn all() -> Filter {
        Filter::all("jobs")
    }

    #[test]
    fn a_row_has_what_people_look_for() {
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
        let page = rendered(&[job], &all());
        assert_parts(
            &page,
            &[
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
            ],
        );
        assert_absent(&page, &["jobs-older"]);
    }

    #[test]
    fn only_a_job_on_another_machine_says_where_it_is() {
        let on = |name: &str, here: bool| {
            let machine = Some(protocol::Machine {
                name: name.to_owned(),
                home: "home_1".to_owned(),
                here,
            });
            let job = Job {
                machine,
                ..job(JobState::Running)
            };
            rendered(&[job], &all())
        };
        assert_parts(&on("desk", false), &["<small class=\"machine\">on desk</small>"]);
        assert_harmless(&on(HOSTILE, false));
        assert_absent(&on("box", true), &["on box"]);
    }

    #[test]
    fn what_has_not_ended_can_be_cancelled() {
        for (state, expected) in [
            (JobState::Queued, true),
            (JobState::Running, true),
            (JobState::Succeeded, false),
            (JobState::Failed, false),
            (JobState::Cancelled, false),
        ] {
            let page = rendered(&[job(state)], &all());
            assert_eq!(page.contains(">Cancel</button>"), expected, "{state:?}: {page}");
        }
    }

    #[test]
    fn older_jobs_are_behind_a_link_that_keeps_the_state() {
        let jobs = [job(JobState::Failed), job(JobState::Failed)];
        let filter = Filter {
            state: Some("failed".to_owned()),
            before: Some("job_x".to_owned()),
            ..all()
        };
        assert_parts(
            &rendered(&jobs, &filter),
            &[
                "<a href=\"/jobs?state=failed\" data-key=\"newest\">Newest</a>",
                "<a id=\"jobs-older\" href=\"/jobs?state=failed&amp;before=job_49\" data-key=\"older\">Older</a>",
                "<a href=\"/jobs?state=failed\" data-key=\"filter Failed\" aria-current=\"true\">Failed</a>",
            ],
        );
        assert_absent(&rendered(&jobs[..1], &filter), &["jobs-older"]);
    }

    #[test]
    fn without_jobs_the_page_says_what_to_do() {
        assert_parts(
            &rendered(&[], &all()),
            &["<code>tidelock job run -- cargo test</code>"],
        );
        let narrowed = Filter {
            state: Some("queued".to_owned()),
            ..all()
        };
        let page = rendered(&[], &narrowed);
        assert_parts(&page, &["No matching jobs"]);
        assert_absent(&page, &["cargo test"]);
    }

    #[test]
    fn what_jobs_say_is_shown_as_text() {
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
        for state in [
            JobState::Queued,
            JobState::Running,
            JobState::Succeeded,
            JobState::Failed,
            JobState::Cancelled,
        ] {
            // The daemon generates ids without such characters; if one had them, they would still be text.
            assert_absent(&rendered(&[hostile(state)], &all()), &["<script>alert"]);
            let tame_id = Job {
                id: "job_1".to_owned(),
                ..hostile(state)
            };
            assert_harmless(&rendered(&[tame_id], &all()));
        }
    }
}
