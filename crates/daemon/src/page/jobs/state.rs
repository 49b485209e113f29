//! The state of a job, in the words and colours that every page uses.

use maud::{Markup, html};
use protocol::{Job, JobProgress, JobState};

use crate::page::parts::ansi::one_line;
use crate::page::parts::text::{self, percent_encode, titled};
use crate::page::parts::times::short;

pub(crate) fn path(id: &str) -> String {
    format!("/jobs/{}", percent_encode(id))
}

pub(crate) fn title(job: &Job) -> String {
    titled(&job.title, &job.id)
}

pub(crate) fn badge(job: &Job) -> Markup {
    text::badge(look(job))
}

pub(crate) fn label(job: &Job) -> &'static str {
    look(job).1
}

fn look(job: &Job) -> (&'static str, &'static str) {
    match job.state {
        JobState::Queued => ("badge", "Queued"),
        JobState::Running if job.cancel.is_some() => ("badge warn busy", "Stopping"),
        JobState::Running => ("badge active busy", "Running"),
        JobState::Succeeded => ("badge good", "Succeeded"),
        JobState::Failed => ("badge bad", "Failed"),
        JobState::Cancelled => ("badge", "Cancelled"),
    }
}

pub(crate) fn has_ended(job: &Job) -> bool {
    job.state.is_terminal()
}

/// The text below the badge: its progress, what it waits for, and why it failed.
pub(crate) fn explanation(job: &Job) -> Markup {
    html! {
        @if let (JobState::Running, Some(progress)) = (job.state, &job.progress) { (bar(progress)) }
        @if let (JobState::Queued, Some(waiting_for)) = (job.state, &job.waiting_for) {
            small { "waiting for " (one_line(waiting_for)) }
        }
        @if let (JobState::Failed, Some(reason)) = (job.state, &job.reason) { small { (reason_words(reason)) } }
        @if let Some(text) = &job.text {
            @if job.state == JobState::Failed {
                small class="error" { (one_line(text)) }
            } @else if !text.is_empty() {
                small { (one_line(text)) }
            }
        }
    }
}

/// The progress of a job. The total isn't always known.
fn bar(progress: &JobProgress) -> Markup {
    let far = match progress.total {
        Some(total) => format!("{} of {total}", progress.done),
        None => progress.done.to_string(),
    };
    html! {
        small class="progress" {
            (far)
            @if !progress.text.is_empty() { " · " (one_line(&progress.text)) }
            @if let Some(total) = progress.total {
                @let (total, done) = (total.max(1), progress.done.min(total));
                progress max=(total) value=(done) aria-label="Progress" { (far) }
            }
        }
    }
}

fn reason_words(reason: &str) -> &str {
    match reason {
        "attempt_failed" => "no attempts left",
        "timed_out" => "timed out",
        "deadline_passed" => "missed its deadline",
        "interrupted" => "the daemon stopped, and the job isn't set to repeat",
        "dependency_failed" => "a job it depends on didn't succeed",
        "no_handler" => "no handler for it on this machine",
        other => other,
    }
}

pub(crate) fn exit(job: &Job) -> Option<String> {
    let exit = job.exit?;
    match (exit.code, exit.signal) {
        (Some(code), _) => Some(format!("code {code}")),
        (None, Some(signal)) => Some(format!("signal {signal}")),
        (None, None) => None,
    }
}

pub(crate) fn ran(job: &Job) -> Option<String> {
    job.ran_ms.map(short)
}

pub(crate) fn attempts(job: &Job) -> Markup {
    html! {
        (job.attempts)
        @match job.max_retries {
            0 => {}
            1 => small { "1 retry" },
            retries => small { (retries) " retries" },
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use protocol::{JobCancelRequest, JobExit, JobIfInterrupted};

    use super::*;
    use crate::page::parts::text::tests::NOW;

    /// A job in a state, a minute after it was submitted.
    pub(crate) fn job(state: JobState) -> Job {
        let ended = state.is_terminal();
        Job {
            machine: None,
            id: "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX".to_owned(),
            state,
            version: 7,
            title: "cargo test".to_owned(),
            handler: "command".to_owned(),
            priority: 0,
            lane: None,
            after: Vec::new(),
            submitted_by: "unix".to_owned(),
            submitted_at: "2026-01-31T09:30:00.000Z".to_owned(),
            started_at: (state != JobState::Queued).then(|| "2026-01-31T09:30:01.000Z".to_owned()),
            ended_at: ended.then(|| "2026-01-31T09:30:03.500Z".to_owned()),
            ran_ms: (state != JobState::Queued).then_some(2500),
            not_before: None,
            deadline: None,
            time_limit_ms: None,
            attempts: u32::from(state != JobState::Queued),
            max_retries: 0,
            interruptions: 0,
            if_interrupted: JobIfInterrupted::Fail,
            cancel: None,
            reason: None,
            text: None,
            exit: None,
            killed: Vec::new(),
            killed_count: 0,
            confinement: None,
            progress: None,
            output_bytes: 0,
            cut_bytes: 0,
            output_lost: None,
            input_cut: false,
            foreground: false,
            followed_by: None,
            finished: None,
            output_sequence: 0,
            waiting_for: None,
            worker: None,
            retry_of: None,
            idempotency_key: None,
            plan: None,
            changeset: None,
            changed_files: None,
        }
    }

    fn wish() -> JobCancelRequest {
        JobCancelRequest {
            by: "page".to_owned(),
            why: "enough".to_owned(),
            at: NOW.to_owned(),
        }
    }

    #[test]
    fn each_state_has_its_badge() {
        let stopping = Job {
            cancel: Some(wish()),
            ..job(JobState::Running)
        };
        // A cancellation that came too late changes nothing.
        let too_late = Job {
            cancel: Some(wish()),
            ..job(JobState::Succeeded)
        };
        for (job, expected) in [
            (job(JobState::Queued), "<span class=\"badge\">Queued</span>"),
            (
                job(JobState::Running),
                "<span class=\"badge active busy\">Running</span>",
            ),
            (stopping, "<span class=\"badge warn busy\">Stopping</span>"),
            (
                job(JobState::Succeeded),
                "<span class=\"badge good\">Succeeded</span>",
            ),
            (too_late, "<span class=\"badge good\">Succeeded</span>"),
            (job(JobState::Failed), "<span class=\"badge bad\">Failed</span>"),
            (job(JobState::Cancelled), "<span class=\"badge\">Cancelled</span>"),
        ] {
            assert_eq!(badge(&job).into_string(), expected);
        }
    }

    #[test]
    fn below_the_badge_stands_what_matters_in_this_state() {
        let progress = |done, total| JobProgress {
            done,
            total,
            text: "tests <1>".to_owned(),
        };
        let with = |state, progress| Job {
            progress: Some(progress),
            waiting_for: Some("a free worker".to_owned()),
            ..job(state)
        };
        let failed = Job {
            reason: Some("timed_out".to_owned()),
            text: Some("killed".to_owned()),
            ..job(JobState::Failed)
        };
        for (job, expected) in [
            (
                with(JobState::Running, progress(3, Some(10))),
                "<small class=\"progress\">3 of 10 · tests &lt;1&gt;<progress max=\"10\" value=\"3\" \
                 aria-label=\"Progress\">3 of 10</progress></small>",
            ),
            (
                with(JobState::Running, progress(30, Some(10))),
                "<small class=\"progress\">30 of 10 · tests &lt;1&gt;<progress max=\"10\" value=\"10\" \
                 aria-label=\"Progress\">30 of 10</progress></small>",
            ),
            (
                with(JobState::Running, progress(0, Some(0))),
                "<small class=\"progress\">0 of 0 · tests &lt;1&gt;<progress max=\"1\" value=\"0\" \
                 aria-label=\"Progress\">0 of 0</progress></small>",
            ),
            (
                with(JobState::Running, progress(3, None)),
                "<small class=\"progress\">3 · tests &lt;1&gt;</small>",
            ),
            (
                with(JobState::Queued, progress(3, Some(10))),
                "<small>waiting for a free worker</small>",
            ),
            (with(JobState::Succeeded, progress(3, Some(10))), ""),
            (
                failed,
                "<small>timed out</small><small class=\"error\">killed</small>",
            ),
        ] {
            assert_eq!(explanation(&job).into_string(), expected);
        }
    }

    #[test]
    fn numbers_are_said_in_words() {
        let exits = |code, signal| {
            exit(&Job {
                exit: Some(JobExit { code, signal }),
                ..job(JobState::Failed)
            })
        };
        assert_eq!(exits(Some(3), None).as_deref(), Some("code 3"));
        assert_eq!(exits(None, Some(9)).as_deref(), Some("signal 9"));
        assert_eq!(exits(None, None), None);
        assert_eq!(exit(&job(JobState::Running)), None);
        for (max_retries, expected) in [
            (0, "1"),
            (1, "1<small>1 retry</small>"),
            (3, "1<small>3 retries</small>"),
        ] {
            let job = Job {
                max_retries,
                ..job(JobState::Running)
            };
            assert_eq!(attempts(&job).into_string(), expected);
        }
    }
}
