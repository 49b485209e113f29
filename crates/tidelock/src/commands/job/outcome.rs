//! The exit code and message for a job that has ended.

use protocol::{Job, JobState};
use serde_json::json;

use crate::client::Interrupted;
use crate::error::{Exit, Failure};
use crate::output::{Format, Report};
use crate::printable::printable;

/// The shell's base exit code for a command ended by a signal; the signal's number is added.
const BY_SIGNAL: i32 = 128;
pub(in crate::commands) const INTERRUPTED: u8 = 130;

/// Ends this process after a job that was followed. Adds nothing if the command itself decided how to end.
pub(super) fn conclude(job: &Job, interrupted: Interrupted, format: Format) -> Result<Report, Failure> {
    let exit = exit_of(job, interrupted);
    if format == Format::Json {
        // Programs have already received the whole job.
        return Ok(Report {
            exit,
            ..Report::already_told()
        });
    }
    // The following text contains parts that others wrote.
    let job: Job = printable(&json!(job))?;
    let note = match exit {
        Exit::Failed => return Err(complaint(&job)),
        Exit::Command(INTERRUPTED) if job.state == JobState::Cancelled => {
            Some(format!("{} was cancelled{}", job.id, killed_text(&job)))
        }
        _ if job.output_lost.is_some() => Some(format!("{} {}", job.id, ended_text(&job))),
        // A shell prints this as well.
        _ if job.exit.is_some_and(|exit| exit.signal.is_some()) => job.text,
        _ => None,
    };
    Ok(Report {
        exit,
        ..Report::already_told().with_notes(note.into_iter().collect())
    })
}

/// The exit code for a job that was waited for: that of the command, if the command decided.
pub(in crate::commands) fn exit_of(job: &Job, interrupted: Interrupted) -> Exit {
    let by_itself = job.reason.is_none() || job.reason.as_deref() == Some("attempt_failed");
    match (job.state, job.exit) {
        // The caller asked for the output, does not have all of it, and must not assume so.
        (JobState::Succeeded, _) if job.output_lost.is_some() => Exit::Failed,
        (JobState::Succeeded, _) => Exit::Success,
        (JobState::Cancelled, _) if interrupted == Interrupted::Yes => Exit::Command(INTERRUPTED),
        (JobState::Failed, Some(exit)) if by_itself => {
            let code = exit.code.or_else(|| exit.signal.map(|signal| BY_SIGNAL + signal));
            // A failure never exits with 0, whatever the command ended with.
            let code = code
                .and_then(|code| u8::try_from(code).ok())
                .filter(|code| *code != 0);
            code.map_or(Exit::Failed, Exit::Command)
        }
        _ => Exit::Failed,
    }
}

/// Why a job failed, when that was not up to its command.
fn complaint(job: &Job) -> Failure {
    let code = match job.state {
        JobState::Cancelled => "job_cancelled",
        JobState::Succeeded => "output_lost",
        _ => "job_failed",
    };
    Failure::new(Exit::Failed, code, format!("{} {}", job.id, ended_text(job)))
        .advise(format!("`tidelock job show {}` shows what happened", job.id))
}

pub(in crate::commands) fn ended_text(job: &Job) -> String {
    let text = state_text(job);
    match &job.output_lost {
        None => text,
        Some(why) => format!("{text}; some of its output was lost: {why}"),
    }
}

fn state_text(job: &Job) -> String {
    let said = job.text.as_deref().unwrap_or_default();
    let with = |beginning: &str| match said {
        "" => beginning.to_owned(),
        said => format!("{beginning}: {said}"),
    };
    match job.state {
        JobState::Cancelled => match &job.cancel {
            Some(cancel) if cancel.why.is_empty() => {
                format!("was cancelled by {}{}", cancel.by, killed_text(job))
            }
            Some(cancel) => format!(
                "was cancelled by {}: {}{}",
                cancel.by,
                cancel.why,
                killed_text(job)
            ),
            None => format!("was cancelled{}", killed_text(job)),
        },
        JobState::Failed => match job.reason.as_deref() {
            Some("timed_out") => with("timed out"),
            Some("deadline_passed") => with("missed its deadline"),
            Some("interrupted") => with("was interrupted and won't run again"),
            Some("dependency_failed") => with("was dropped because a job that it depends on didn't succeed"),
            Some("no_handler") => with("has no handler here"),
            _ => with("failed"),
        },
        state => state.as_str().to_owned(),
    }
}

fn killed_text(job: &Job) -> String {
    match job.killed_count {
        0 => String::new(),
        1 => " (1 process had to be killed)".to_owned(),
        count => format!(" ({count} processes had to be killed)"),
    }
}

#[cfg(test)]
pub(in crate::commands) mod tests {
    use protocol::{JobCancelRequest, JobExit, JobIfInterrupted};

    use super::*;

    pub(in crate::commands) fn job(state: JobState) -> Job {
        Job {
            id: "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX".to_owned(),
            state,
            machine: None,
            version: 3,
            title: "cargo test".to_owned(),
            handler: "command".to_owned(),
            priority: 0,
            lane: None,
            after: Vec::new(),
            submitted_by: "req_1 over unix".to_owned(),
            submitted_at: "2026-01-31T09:30:00.000Z".to_owned(),
            started_at: None,
            ended_at: None,
            ran_ms: None,
            not_before: None,
            deadline: None,
            time_limit_ms: None,
            attempts: 1,
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

    fn failed(reason: &str, code: Option<i32>, signal: Option<i32>) -> Job {
        Job {
            reason: Some(reason.to_owned()),
            exit: Some(JobExit { code, signal }),
            ..job(JobState::Failed)
        }
    }

    fn without_output(job: Job) -> Job {
        Job {
            output_lost: Some("the disk is full".to_owned()),
            ..job
        }
    }

    #[test]
    fn the_exit_code_is_the_commands_if_the_command_decided() {
        use Interrupted::{No, Yes};
        for (job, interrupted, expected) in [
            (job(JobState::Succeeded), No, Exit::Success),
            (job(JobState::Succeeded), Yes, Exit::Success),
            (without_output(job(JobState::Succeeded)), No, Exit::Failed),
            (
                without_output(failed("attempt_failed", Some(3), None)),
                No,
                Exit::Command(3),
            ),
            (failed("attempt_failed", Some(3), None), No, Exit::Command(3)),
            (failed("attempt_failed", Some(255), None), Yes, Exit::Command(255)),
            (failed("attempt_failed", None, Some(11)), No, Exit::Command(139)),
            (failed("attempt_failed", Some(0), None), No, Exit::Failed),
            (failed("attempt_failed", Some(-1), None), No, Exit::Failed),
            (failed("attempt_failed", None, None), No, Exit::Failed),
            (failed("timed_out", None, Some(15)), No, Exit::Failed),
            (failed("interrupted", None, None), No, Exit::Failed),
            (job(JobState::Failed), No, Exit::Failed),
            (job(JobState::Cancelled), No, Exit::Failed),
            (job(JobState::Cancelled), Yes, Exit::Command(130)),
        ] {
            assert_eq!(exit_of(&job, interrupted), expected, "{job:?} {interrupted:?}");
        }
    }

    #[test]
    fn why_it_ended_is_said_where_the_command_did_not() {
        let cancelled = |why: &str| Job {
            cancel: Some(JobCancelRequest {
                by: "req_2 over tcp".to_owned(),
                why: why.to_owned(),
                at: String::new(),
            }),
            killed_count: 2,
            ..job(JobState::Cancelled)
        };
        let timed_out = Job {
            text: Some("signal 15".to_owned()),
            ..failed("timed_out", None, Some(15))
        };
        for (job, expected) in [
            (timed_out, "timed out: signal 15"),
            (failed("deadline_passed", None, None), "missed its deadline"),
            (
                failed("interrupted", None, None),
                "was interrupted and won't run again",
            ),
            (failed("from_the_future", None, None), "failed"),
            (
                without_output(job(JobState::Succeeded)),
                "succeeded; some of its output was lost: the disk is full",
            ),
            (
                cancelled(""),
                "was cancelled by req_2 over tcp (2 processes had to be killed)",
            ),
            (
                cancelled("wrong branch"),
                "was cancelled by req_2 over tcp: wrong branch (2 processes had to be killed)",
            ),
        ] {
            let failure = conclude(&job, Interrupted::No, Format::Human).unwrap_err();
            assert_eq!(failure.message, format!("{} {expected}", job.id));
            let report = conclude(&job, Interrupted::No, Format::Json).unwrap();
            assert_eq!(report.exit, Exit::Failed);
        }
    }
}
