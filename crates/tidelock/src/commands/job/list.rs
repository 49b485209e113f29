//! Lists jobs, one per line.

use std::time::Duration;

use protocol::{Job, JobCounts, JobList, JobState};
use serde_json::json;

use super::JOBS;
use super::times::age;
use crate::cli::ListArguments;
use crate::client::Client;
use crate::commands::machine::with_machines;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, list as list_of};
use crate::printable::{cut, printable};
use crate::units::format_duration;

const TITLE_CHARACTERS: usize = 60;
const NOTE_CHARACTERS: usize = 60;

pub(super) fn list(arguments: &ListArguments, client: &Client) -> Result<Report, Failure> {
    let state = arguments
        .state
        .map_or_else(String::new, |state| format!("&state={}", state.name()));
    let mut jobs = client.fetch_pages(&format!("{JOBS}?{state}"), "jobs", arguments.most())?;
    let mut value = json!({ "jobs": jobs.things, "counts": jobs.rest["counts"].take() });
    if let Some(before) = &jobs.next {
        value["next_before"] = json!(before);
    }
    let shown: JobList = printable(&value)?;
    let mut text = rows(client.palette(), &shown.jobs);
    text.push_str(&foot(&shown.counts, jobs.next.is_some()));
    Ok(Report::success(value, text))
}

fn foot(counts: &JobCounts, has_more: bool) -> String {
    let more = if has_more {
        " Use --all to show older jobs."
    } else {
        ""
    };
    format!(
        "{} running of at most {}, {} waiting.{more}\n",
        counts.running, counts.max_workers, counts.queued
    )
}

fn rows(palette: Palette, jobs: &[Job]) -> String {
    let mut heading = vec!["ID", "STATE", "ATTEMPTS", "AGE", "RAN", "TITLE", ""];
    let row = |job: &Job| {
        let ran = job.ran_ms.map(|ms| format_duration(Duration::from_millis(ms)));
        vec![
            Cell::new(&job.id),
            state(job),
            Cell::new(attempts(job)),
            Cell::or_dash(age(&job.submitted_at).map(format_duration)),
            Cell::or_dash(ran),
            Cell::new(cut(&job.title, TITLE_CHARACTERS)),
            Cell::toned(cut(&note(job), NOTE_CHARACTERS), Tone::Quiet),
        ]
    };
    let mut rows: Vec<_> = jobs.iter().map(row).collect();
    let machines: Vec<_> = jobs.iter().map(|job| job.machine.as_ref()).collect();
    with_machines(&mut heading, &mut rows, &machines, "anywhere");
    list_of(
        palette,
        &heading,
        rows,
        "No jobs found. Submit one with: tidelock job run -- COMMAND",
    )
}

pub(super) fn state(job: &Job) -> Cell {
    let name = job.state.as_str();
    match job.state {
        JobState::Queued => Cell::toned(name, Tone::Plain),
        JobState::Running if job.cancel.is_some() => Cell::toned("being cancelled", Tone::Warning),
        JobState::Running => match job.progress.as_ref().and_then(percentage) {
            Some(percentage) => Cell::toned(format!("{name} {percentage} %"), Tone::Warning),
            None => Cell::toned(name, Tone::Warning),
        },
        JobState::Succeeded => Cell::toned(name, Tone::Good),
        JobState::Failed => Cell::toned(name, Tone::Bad),
        JobState::Cancelled => Cell::toned(name, Tone::Quiet),
    }
}

fn percentage(progress: &protocol::JobProgress) -> Option<u128> {
    let total = progress.total.filter(|total| *total > 0)?;
    Some(u128::from(progress.done.min(total)) * 100 / u128::from(total))
}

/// The number of attempts, and the maximum.
pub(super) fn attempts(job: &Job) -> String {
    match job.max_retries {
        0 => job.attempts.to_string(),
        retries => format!(
            "{} of {}",
            job.attempts,
            u32::from(retries) + 1 + job.interruptions
        ),
    }
}

fn note(job: &Job) -> String {
    match job.state {
        JobState::Queued => {
            let waiting = job.waiting_for.as_deref();
            waiting.map_or_else(String::new, |waiting| format!("waits for {waiting}"))
        }
        JobState::Running => job
            .progress
            .as_ref()
            .map_or_else(String::new, |progress| progress.text.clone()),
        JobState::Succeeded => String::new(),
        JobState::Failed => match (job.reason.as_deref(), &job.text) {
            (Some("attempt_failed") | None, Some(text)) => text.clone(),
            (Some(reason), _) => reason.replace('_', " "),
            (None, None) => String::new(),
        },
        JobState::Cancelled => job
            .cancel
            .as_ref()
            .map_or_else(String::new, |cancel| cancel.why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use protocol::{JobCancelRequest, JobProgress};

    use super::super::outcome::tests::job;
    use super::*;

    #[test]
    fn a_list_tells_the_state_of_each() {
        // An unreadable submission time means no age, so that the output is the same every day.
        let ageless = |state| Job {
            submitted_at: String::new(),
            ..job(state)
        };
        let queued = Job {
            attempts: 0,
            waiting_for: Some("room in the lane cargo:/a".to_owned()),
            ..ageless(JobState::Queued)
        };
        let running = Job {
            ran_ms: Some(65_000),
            max_retries: 2,
            progress: Some(JobProgress {
                done: 1,
                total: Some(3),
                text: "linking".to_owned(),
            }),
            ..ageless(JobState::Running)
        };
        let cancelling = Job {
            cancel: Some(JobCancelRequest {
                by: "me".to_owned(),
                why: "wrong branch".to_owned(),
                at: String::new(),
            }),
            ..ageless(JobState::Running)
        };
        let failed = Job {
            ran_ms: Some(900),
            reason: Some("attempt_failed".to_owned()),
            text: Some("exit code 3".to_owned()),
            ..ageless(JobState::Failed)
        };
        let late = Job {
            reason: Some("deadline_passed".to_owned()),
            title: "x".repeat(70),
            ..ageless(JobState::Failed)
        };
        let jobs = [
            queued,
            running,
            cancelling,
            ageless(JobState::Succeeded),
            failed,
            late,
        ];
        insta::assert_snapshot!(rows(Palette::Plain, &jobs));
        insta::assert_snapshot!(foot(&JobCounts { queued: 3, running: 1, max_workers: 4, foreground: 0 }, true), @"1 running of at most 4, 3 waiting. Use --all to show older jobs.");
    }
}
