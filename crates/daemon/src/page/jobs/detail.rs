//! One job: its state, its timeline, and its output.

use std::sync::Arc;

use axum::extract::State;
use eventlog::Sequence;
use maud::{Markup, html};
use protocol::{Confinement, ErrorCode, Job, JobId, JobIfInterrupted, JobKilled, JobMoment};

use super::act::actions;
use super::state::{attempts, badge, exit, explanation, has_ended, path, ran, title};
use super::{output, timeline};
use crate::app::App;
use crate::jobs::wire::{moments_to_wire, view};
use crate::page::login::Visitor;
use crate::page::parts::ansi::one_line;
use crate::page::parts::error::PageError;
use crate::page::parts::form::PathId;
use crate::page::parts::layout::{Live, NavItem, Refresh, live_path, page_around};
use crate::page::parts::list::elsewhere;
use crate::page::parts::text::{counted, size};
use crate::page::parts::times::{short, time};
use crate::page::plans::state as plan_state;

/// How many of the killed processes are listed by name.
const NAMED_PROCESSES: usize = 8;

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    PathId(id): PathId,
) -> Result<Markup, PageError> {
    let (id, job, moments) = find(&app, &id).await?;
    let live = live(&visitor, &job, &moments);
    let content = html! {
        // The output tells the script when to refresh, so that the page holds one connection instead of two.
        div data-live=(live_path(&path(&job.id))) { (live.render(&app, &visitor)) }
        (output::section(&job, &output::read(&app, id, &job).await))
    };
    Ok(page_around(&app, &visitor, NavItem::Jobs, &live.title, &content))
}

pub(crate) async fn show_live(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    PathId(id): PathId,
) -> Result<Markup, PageError> {
    let (_, job, moments) = find(&app, &id).await?;
    Ok(live(&visitor, &job, &moments).render(&app, &visitor))
}

async fn find(app: &App, text: &str) -> Result<(JobId, Job, Vec<JobMoment>), PageError> {
    let not_there = || {
        PageError::not_there(
            ErrorCode::JobNotFound,
            "job",
            "jobs",
            text,
            "It may have expired.",
        )
    };
    let unreadable = |error| PageError::unreadable(&error);
    let id: JobId = text.parse().map_err(|_| not_there())?;
    let job = app.jobs.get(id).await.map_err(unreadable)?;
    let job = job.ok_or_else(not_there)?;
    let moments = app.jobs.timeline(id, Sequence::START).await.map_err(unreadable)?;
    let shown = view(&app.jobs, &app.durable.machines, &job)
        .await
        .map_err(unreadable)?;
    Ok((id, shown, moments_to_wire(&job, &moments)))
}

fn live(visitor: &Visitor, job: &Job, moments: &[JobMoment]) -> Live {
    let refresh = match has_ended(job) {
        true => Refresh::Ended,
        false => Refresh::Moving,
    };
    Live::new(title(job), refresh, content(visitor, job, moments))
}

fn content(visitor: &Visitor, job: &Job, moments: &[JobMoment]) -> Markup {
    html! {
        div class="heading" {
            div data-part="heading" {
                h1 class="job-title" { (title(job)) }
                p { code { (job.id) } }
            }
            div class="actions" data-part="actions" { (actions(job, visitor)) }
        }
        section class="card" aria-labelledby="state" data-part="state" {
            div class="card-heading" {
                h2 id="state" { "State" }
                a href="/jobs" data-key="all" { "All jobs" }
            }
            (facts(job))
        }
        section class="card" aria-labelledby="timeline" data-part="timeline" {
            h2 id="timeline" { "Timeline" }
            (timeline::list(moments))
        }
    }
}

fn facts(job: &Job) -> Markup {
    html! {
        dl class="facts" {
            dt { "State" } dd class="state" id="job-state" { (badge(job)) (explanation(job)) (elsewhere(job.machine.as_ref())) }
            @if let Some(exit) = exit(job) { dt { "Exit" } dd id="job-exit" { (exit) } }
            @if job.killed_count > 0 { dt { "Killed processes" } dd { (killed(job)) } }
            @if let Some(cancel) = &job.cancel {
                dt { "Cancellation" }
                dd {
                    "requested by " (one_line(&cancel.by)) " at " (time(&cancel.at))
                    @if !cancel.why.is_empty() { small { (one_line(&cancel.why)) } }
                }
            }
            dt { "Submitted" } dd { (time(&job.submitted_at)) " by " (one_line(&job.submitted_by)) }
            @if let Some(not_before) = &job.not_before { dt { "Not before" } dd { (time(not_before)) } }
            @if let Some(started) = &job.started_at { dt { "Started" } dd { (time(started)) } }
            @if let Some(ended) = &job.ended_at { dt { "Ended" } dd { (time(ended)) } }
            @if let Some(ran) = ran(job) { dt { "Ran" } dd class="number" { (ran) } }
            dt { "Attempts" } dd class="number" { (attempts(job)) }
            @if job.interruptions > 0 { dt { "Interruptions" } dd class="number" { (job.interruptions) } }
            dt { "If interrupted" } dd { (if_interrupted(job.if_interrupted)) }
            @if let Some(limit) = job.time_limit_ms {
                dt { "Time limit" } dd class="number" { (short(limit)) " per attempt" }
            }
            @if let Some(deadline) = &job.deadline { dt { "Deadline" } dd { (time(deadline)) } }
            @if job.priority != 0 { dt { "Priority" } dd class="number" { (job.priority) } }
            @if let Some(lane) = &job.lane {
                dt { "Lane" } dd { (one_line(&lane.name)) ", at most " (lane.limit) " at a time" }
            }
            @if !job.after.is_empty() { dt { "After" } dd { (links(&job.after)) } }
            @if let Some(retry_of) = &job.retry_of {
                dt { "Retry of" } dd { (links(std::slice::from_ref(retry_of))) }
            }
            @if let Some(plan) = &job.plan {
                dt { "Plan" }
                dd {
                    a href=(plan_state::path(plan)) data-key="plan" { code { (one_line(plan)) } }
                    @if let Some(files) = job.changed_files {
                        small { "changed " (counted(files, "file", "files")) }
                    }
                }
            }
            dt { "Handler" } dd { (one_line(&job.handler)) }
            @if let Some(confinement) = job.confinement { dt { "Confinement" } dd { (confined(confinement)) } }
            @if let Some(key) = &job.idempotency_key { dt { "Idempotency key" } dd { code { (one_line(key)) } } }
            @if let Some(worker) = &job.worker { dt { "Worker" } dd { code { (one_line(worker)) } } }
            dt { "Output" } dd class="number" {
                (size(job.output_bytes, "bytes"))
                @if job.cut_bytes > 0 { ", of which " (size(job.cut_bytes, "bytes")) " were not kept" }
                @if let Some(why) = &job.output_lost { "; some output was lost: " (one_line(why)) }
            }
        }
    }
}

fn if_interrupted(policy: JobIfInterrupted) -> &'static str {
    match policy {
        JobIfInterrupted::Fail => "fails",
        JobIfInterrupted::Repeat => "queued again",
    }
}

fn confined(confinement: Confinement) -> &'static str {
    match confinement {
        Confinement::Full => "enforced",
        Confinement::Partial => "partly enforced",
        Confinement::None => "not enforced: this kernel doesn't support it",
    }
}

fn killed(job: &Job) -> Markup {
    let name = |killed: &JobKilled| format!("{} ({})", one_line(&killed.name), killed.pid);
    let names: Vec<String> = job.killed.iter().take(NAMED_PROCESSES).map(name).collect();
    html! {
        (job.killed_count)
        @if !names.is_empty() { ": " (names.join(", ")) }
        @if job.killed_count > names.len() as u64 && !names.is_empty() { " and others" }
    }
}

fn links(ids: &[String]) -> Markup {
    html! {
        @for (position, id) in ids.iter().enumerate() {
            @if position > 0 { ", " }
            a href=(path(id)) data-key={ "job " (id) } { code { (id) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::{JobCancelRequest, JobExit, JobLane, JobState};

    use super::*;
    use crate::page::jobs::state::tests::job;
    use crate::page::parts::text::tests::{HOSTILE, NOW, assert_harmless, assert_parts};

    fn rendered(job: &Job) -> String {
        content(&Visitor::example(), job, &[]).into_string()
    }

    fn full() -> Job {
        Job {
            priority: -3,
            lane: Some(JobLane {
                name: "cargo".to_owned(),
                limit: 2,
            }),
            after: vec!["job_1".to_owned(), "job_2".to_owned()],
            not_before: Some(NOW.to_owned()),
            deadline: Some(NOW.to_owned()),
            time_limit_ms: Some(90_000),
            interruptions: 1,
            if_interrupted: JobIfInterrupted::Repeat,
            cancel: Some(JobCancelRequest {
                by: "cli".to_owned(),
                why: "enough".to_owned(),
                at: NOW.to_owned(),
            }),
            reason: Some("attempt_failed".to_owned()),
            text: Some("exit code 3".to_owned()),
            exit: Some(JobExit {
                code: Some(3),
                signal: None,
            }),
            killed: vec![JobKilled {
                pid: 42,
                name: "sleep".to_owned(),
            }],
            killed_count: 2,
            confinement: Some(Confinement::Partial),
            output_bytes: 3 << 20,
            cut_bytes: 1536,
            worker: Some("home_1".to_owned()),
            retry_of: Some("job_0".to_owned()),
            idempotency_key: Some("nightly".to_owned()),
            plan: Some("plan_1".to_owned()),
            changeset: Some("changeset_1".to_owned()),
            changed_files: Some(3),
            ..job(JobState::Failed)
        }
    }

    #[test]
    fn everything_that_is_known_is_shown() {
        let page = rendered(&full());
        assert_parts(
            &page,
            &[
                "<h1 class=\"job-title\">cargo test</h1>",
                "<small>no attempts left</small><small class=\"error\">exit code 3</small>",
                "<dd id=\"job-exit\">code 3</dd>",
                "<dt>Killed processes</dt><dd>2: sleep (42) and others</dd>",
                "requested by cli at <time datetime=\"2026-01-31T09:31:00Z\">2026-01-31 09:31:00 UTC</time><small>enough</small>",
                "<dt>Ran</dt><dd class=\"number\">2.5 s</dd>",
                "<dt>Interruptions</dt><dd class=\"number\">1</dd>",
                "<dd>queued again</dd>",
                "<dd class=\"number\">1 min 30 s per attempt</dd>",
                "<dt>Priority</dt><dd class=\"number\">-3</dd>",
                "<dd>cargo, at most 2 at a time</dd>",
                "<a href=\"/jobs/job_1\" data-key=\"job job_1\"><code>job_1</code></a>, <a href=\"/jobs/job_2\"",
                "<dt>Retry of</dt><dd><a href=\"/jobs/job_0\"",
                "<a href=\"/plans/plan_1\" data-key=\"plan\"><code>plan_1</code></a><small>changed 3 files</small>",
                "<dd>partly enforced</dd>",
                "<code>nightly</code>",
                "3.0 MiB, of which 1.5 KiB were not kept",
            ],
        );
        let bare = rendered(&job(JobState::Queued));
        for absent in [
            "Exit",
            "Ran",
            "killed",
            "Cancellation",
            "Lane",
            "Retry",
            "Deadline",
            "Plan",
        ] {
            assert!(!bare.contains(&format!("<dt>{absent}")), "{absent}: {bare}");
        }
    }

    #[test]
    fn what_a_job_says_is_shown_as_text() {
        let hostile = HOSTILE.to_owned();
        let job = Job {
            title: hostile.clone(),
            submitted_by: hostile.clone(),
            handler: hostile.clone(),
            text: Some(hostile.clone()),
            reason: None,
            worker: Some(hostile.clone()),
            idempotency_key: Some(hostile.clone()),
            killed: vec![JobKilled {
                pid: 1,
                name: hostile.clone(),
            }],
            lane: Some(JobLane {
                name: hostile.clone(),
                limit: 1,
            }),
            cancel: Some(JobCancelRequest {
                by: hostile.clone(),
                why: hostile,
                at: NOW.to_owned(),
            }),
            ..full()
        };
        assert_harmless(&rendered(&job));
    }
}
