//! Jobs, one a line.

use std::time::Duration;

use protocol::{Job, JobCounts, JobList, JobState};
use serde_json::{Value, json};

use super::times::age;
use super::{JOBS, ask};
use crate::cli::ListArguments;
use crate::client::Client;
use crate::commands::lsp::printable::{cut, printable};
use crate::commands::machine::with_machines;
use crate::context::Context;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, table};
use crate::start::Repeat;
use crate::units::format_duration;

/// How many jobs are asked for at a time.
const PAGE_JOBS: usize = 500;
/// How much of a title is shown.
const TITLE_CHARACTERS: usize = 60;
/// How much is said behind it.
const NOTE_CHARACTERS: usize = 60;

pub(super) fn list(arguments: &ListArguments, context: &Context, client: &Client) -> Result<Report, Failure> {
    let mut jobs: Vec<Value> = Vec::new();
    let mut before: Option<String> = None;
    let counts = loop {
        let left = arguments.most().map_or(PAGE_JOBS, |most| most - jobs.len());
        let mut path = format!("{JOBS}?limit={}", left.min(PAGE_JOBS));
        if let Some(state) = arguments.state {
            path.push_str(&format!("&state={}", state.name()));
        }
        if let Some(before) = &before {
            path.push_str(&format!("&before={before}"));
        }
        let mut answer = ask(context, client, Repeat::Harmless, |client| client.get(&path))?;
        if let Value::Array(page) = answer["jobs"].take() {
            jobs.extend(page);
        }
        before = answer["next_before"].as_str().map(str::to_owned);
        let is_enough = arguments.most().is_some_and(|most| jobs.len() >= most);
        if before.is_none() || is_enough {
            break answer["counts"].take();
        }
    };
    let mut value = json!({ "jobs": jobs, "counts": counts });
    if let Some(before) = &before {
        value["next_before"] = json!(before);
    }
    let shown: JobList = printable(&value)?;
    let mut text = rows(context.palette, &shown.jobs);
    text.push_str(&foot(&shown.counts, before.is_some()));
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
    if jobs.is_empty() {
        return "No jobs found. Submit one with: tidelock job run -- COMMAND\n".to_owned();
    }
    let heading = ["ID", "STATE", "ATTEMPTS", "AGE", "RAN", "TITLE", ""];
    let mut rows = vec![heading.map(|word| Cell::toned(word, Tone::Quiet)).into()];
    rows.extend(jobs.iter().map(|job| {
        let ran = job.ran_ms.map(|ms| format_duration(Duration::from_millis(ms)));
        vec![
            Cell::new(&job.id),
            state(job),
            Cell::new(attempts(job)),
            Cell::new(age(&job.submitted_at).map_or_else(|| "-".to_owned(), format_duration)),
            Cell::new(ran.unwrap_or_else(|| "-".to_owned())),
            Cell::new(cut(&job.title, TITLE_CHARACTERS)),
            Cell::toned(cut(&note(job), NOTE_CHARACTERS), Tone::Quiet),
        ]
    }));
    let machines: Vec<_> = jobs.iter().map(|job| job.machine.as_ref()).collect();
    with_machines(&mut rows, 2, &machines, "anywhere");
    table(palette, &rows)
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

/// How many attempts there were, and how many there can be.
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

/// What there is to say besides.
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
        // One that was submitted at no time that can be read has no age, so that it is the same every day.
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
