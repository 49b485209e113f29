//! Shows one job and its history.

use std::time::Duration;

use protocol::{Confinement, Job, JobHistory, JobIfInterrupted, JobMoment};
use serde_json::Value;

use super::list::{attempts, state};
use super::outcome::ended_text;
use super::path;
use super::times::{between, local, with_age};
use crate::client::Client;
use crate::commands::ids::JOB;
use crate::commands::machine::elsewhere;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, fields, table};
use crate::printable::{cut, one_line, printable};
use crate::units::{format_bytes, format_duration};

const TEXT_CHARACTERS: usize = 300;

pub(super) fn show(wanted: &str, client: &Client) -> Result<Report, Failure> {
    let id = JOB.find(wanted, client)?;
    let get = |rest: &str| client.fetch(&path(&id, rest));
    let answer = get("")?;
    let history = get("/history")?;
    let job: Job = printable(&answer)?;
    let moments: JobHistory = printable(&history)?;
    let mut text = describe(client.palette(), &job);
    text.push('\n');
    text.push_str(&time_line(client.palette(), &moments.moments));
    Ok(Report::success(with_history(answer, history), text))
}

fn with_history(mut job: Value, mut history: Value) -> Value {
    job["history"] = history["moments"].take();
    job
}

pub(super) fn describe(palette: Palette, job: &Job) -> String {
    let duration = |ms: u64| format_duration(Duration::from_millis(ms));
    let text = |text: &str| Cell::new(cut(text, TEXT_CHARACTERS));
    let mut pairs = vec![
        ("job", Cell::new(&job.id)),
        ("state", state(job)),
        ("title", text(&job.title)),
        ("submitted", Cell::new(with_age(&job.submitted_at))),
        ("by", text(&job.submitted_by)),
        ("attempts", Cell::new(attempts(job))),
    ];
    let mut add = |name: &'static str, cell: Option<Cell>| pairs.extend(cell.map(|cell| (name, cell)));
    add("waits for", job.waiting_for.as_deref().map(text));
    add("not before", job.not_before.as_deref().map(Cell::new));
    add(
        "started",
        job.started_at.as_deref().map(|at| Cell::new(with_age(at))),
    );
    add("ended", job.ended_at.as_deref().map(|at| Cell::new(with_age(at))));
    add("ran", job.ran_ms.map(|ms| Cell::new(duration(ms))));
    let ended = job.reason.is_some() || job.cancel.is_some() || job.text.is_some();
    add("why", ended.then(|| why(job)).flatten());
    add(
        "killed",
        (job.killed_count > 0).then(|| {
            let names: Vec<String> = job
                .killed
                .iter()
                .map(|killed| format!("{} ({})", one_line(&killed.name), killed.pid))
                .collect();
            text(&format!("{}: {}", job.killed_count, names.join(", ")))
        }),
    );
    add(
        "progress",
        job.progress.as_ref().map(|progress| {
            let total = progress
                .total
                .map_or_else(String::new, |total| format!("/{total}"));
            text(format!("{}{total}  {}", progress.done, progress.text).trim_end())
        }),
    );
    let cut_away = match job.cut_bytes {
        0 => String::new(),
        bytes => format!(", of which {} were not kept", format_bytes(bytes)),
    };
    add(
        "output",
        Some(Cell::new(format!("{}{cut_away}", format_bytes(job.output_bytes)))),
    );
    add("machine", elsewhere(job.machine.as_ref()).map(Cell::new));
    add("time limit", job.time_limit_ms.map(|ms| Cell::new(duration(ms))));
    add("deadline", job.deadline.as_deref().map(Cell::new));
    add(
        "priority",
        (job.priority != 0).then(|| Cell::new(job.priority.to_string())),
    );
    add(
        "lane",
        job.lane
            .as_ref()
            .map(|lane| text(&format!("{}, at most {} at once", lane.name, lane.limit))),
    );
    add(
        "after",
        (!job.after.is_empty()).then(|| text(&job.after.join(", "))),
    );
    let repeats = job.if_interrupted == JobIfInterrupted::Repeat;
    add("interrupted", repeats.then(|| Cell::new("runs again")));
    add("confinement", job.confinement.map(confinement));
    add("followed by", job.followed_by.as_deref().map(Cell::new));
    add("retry of", job.retry_of.as_deref().map(Cell::new));
    add("key", job.idempotency_key.as_deref().map(text));
    fields(palette, pairs)
}

fn why(job: &Job) -> Option<Cell> {
    let text = match (&job.cancel, job.state) {
        (Some(cancel), protocol::JobState::Running) => {
            let why = if cancel.why.is_empty() { "" } else { ": " };
            format!("cancel requested by {}{why}{}", cancel.by, cancel.why)
        }
        (_, protocol::JobState::Failed | protocol::JobState::Cancelled) => ended_text(job),
        _ if job.output_lost.is_some() => ended_text(job),
        _ => job.text.clone()?,
    };
    Some(Cell::new(cut(&text, TEXT_CHARACTERS)))
}

fn confinement(confinement: Confinement) -> Cell {
    match confinement {
        Confinement::Full => Cell::toned("full", Tone::Good),
        Confinement::Partial => Cell::toned("partial", Tone::Warning),
        Confinement::None => Cell::toned("none", Tone::Bad),
    }
}

/// The history, with the time since the beginning.
fn time_line(palette: Palette, moments: &[JobMoment]) -> String {
    let begin = moments
        .first()
        .map(|moment| moment.at.as_str())
        .unwrap_or_default();
    let rows: Vec<Vec<Cell>> = moments
        .iter()
        .map(|moment| {
            let after = between(begin, &moment.at);
            let after = after.map_or_else(|| "?".to_owned(), |after| format!("+{}", format_duration(after)));
            let tone = match moment.event.as_str() {
                "succeeded" => Tone::Good,
                "failed" => Tone::Bad,
                "retrying" | "interrupted" | "cancel_requested" => Tone::Warning,
                _ => Tone::Plain,
            };
            vec![
                Cell::toned(one_line(&local(&moment.at)), Tone::Quiet),
                Cell::new(after),
                Cell::toned(moment.event.replace('_', " "), tone),
                Cell::new(cut(&moment.text, TEXT_CHARACTERS)),
            ]
        })
        .collect();
    table(palette, &rows)
}

#[cfg(test)]
mod tests {
    use protocol::{JobCancelRequest, JobExit, JobKilled, JobLane, JobState};

    use super::super::outcome::tests::job;
    use super::*;

    #[test]
    fn a_job_is_told_in_fields() {
        let at = |text: &str| Some(text.to_owned());
        let whole = Job {
            submitted_at: "long ago".to_owned(),
            started_at: at("later"),
            ended_at: at("at last"),
            ran_ms: Some(3_500),
            attempts: 2,
            max_retries: 3,
            cancel: Some(JobCancelRequest {
                by: "req_2 over tcp".to_owned(),
                why: "wrong branch".to_owned(),
                at: String::new(),
            }),
            text: at("signal 9"),
            exit: Some(JobExit {
                code: None,
                signal: Some(9),
            }),
            killed: vec![JobKilled {
                pid: 7,
                name: "sleep".to_owned(),
            }],
            killed_count: 2,
            output_bytes: 5 << 20,
            cut_bytes: 1 << 20,
            time_limit_ms: Some(60_000),
            priority: -2,
            lane: Some(JobLane {
                name: "cargo:/a".to_owned(),
                limit: 2,
            }),
            after: vec!["job_A".to_owned(), "job_B".to_owned()],
            if_interrupted: JobIfInterrupted::Repeat,
            confinement: Some(Confinement::Partial),
            retry_of: at("job_C"),
            idempotency_key: at("k"),
            plan: None,
            changeset: None,
            changed_files: None,
            ..job(JobState::Cancelled)
        };
        let bare = Job {
            submitted_at: "long ago".to_owned(),
            ..job(JobState::Queued)
        };
        insta::assert_snapshot!(format!(
            "{}\n{}",
            describe(Palette::Plain, &whole),
            describe(Palette::Plain, &bare)
        ));
    }

    #[test]
    fn the_time_line_counts_from_the_beginning() {
        let moment = |sequence, second: &str, event: &str, text: &str| JobMoment {
            sequence,
            at: format!("2026-01-31T09:30:{second}Z"),
            event: event.to_owned(),
            text: text.to_owned(),
        };
        let moments = [
            moment(1, "00.000", "submitted", "by req_1 over unix"),
            moment(2, "00.012", "claimed", "attempt 1, by home_1"),
            moment(3, "05.500", "cancel_requested", "by req_2 over tcp"),
            moment(4, "07.600", "cancelled", "nothing of it runs any more"),
        ];
        insta::assert_snapshot!(time_line(Palette::Plain, &moments), @r"
        2026-01-31 09:30:00.000  +0 ms   submitted         by req_1 over unix
        2026-01-31 09:30:00.012  +12 ms  claimed           attempt 1, by home_1
        2026-01-31 09:30:05.500  +5 s    cancel requested  by req_2 over tcp
        2026-01-31 09:30:07.600  +7 s    cancelled         nothing of it runs any more
        ");
    }
}
