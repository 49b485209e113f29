//! Cancels and forgets jobs, and sets how many the daemon runs at once.

use protocol::{CancelJob, CollectJobs, Job, JobCounts, JobState, JobsCollected, SetJobWorkers};
use serde_json::Value;

use super::outcome::ended_text;
use super::wait::until_ended;
use super::{JOBS, path};
use crate::cli::{CancelArguments, GcArguments, Stay, WorkersArguments};
use crate::client::{Client, whole_ms};
use crate::commands::ids::JOB;
use crate::error::Failure;
use crate::output::Report;
use crate::printable::{Answer, printable};
use crate::start::Repeat;
use crate::units::{format_bytes, format_count};

pub(super) fn cancel(arguments: &CancelArguments, client: &Client) -> Result<Report, Failure> {
    let id = JOB.find(&arguments.job.job, client)?;
    let request = CancelJob {
        why: arguments.why.clone(),
    };
    let mut answer = client.ask(Repeat::Harmless, |client| {
        client.post(&path(&id, "/cancel"), Some(&request))
    })?;
    if arguments.stay() == Stay::Ended {
        answer = until_ended(&id, None, client)?;
    }
    let job: Job = printable(&answer)?;
    let text = match job.state {
        JobState::Queued | JobState::Running => format!("{id} is being cancelled\n"),
        JobState::Succeeded => format!("{id} succeeded before it could be cancelled\n"),
        JobState::Failed | JobState::Cancelled => format!("{id} {}\n", ended_text(&job)),
    };
    Ok(Report::success(answer, text))
}

pub(super) fn collect(arguments: &GcArguments, client: &Client) -> Result<Report, Failure> {
    let request = CollectJobs {
        older_than_ms: Some(whole_ms(arguments.older_than)),
        keep_newest: Some(arguments.keep),
    };
    let collected: Answer<JobsCollected> = client.ask(Repeat::Harmless, |client| {
        client.post_and_wait(&format!("{JOBS}/gc"), Some(&request))
    })?;
    Ok(Report::shown(collected_text(&collected), collected))
}

fn collected_text(collected: &JobsCollected) -> String {
    let mut text = match collected.jobs {
        0 => "No jobs to forget.\n".to_owned(),
        jobs => format!(
            "Forgot {} and {} of output.\n",
            format_count(jobs, "job"),
            format_bytes(collected.output_bytes)
        ),
    };
    if collected.in_use > 0 {
        text.push_str(&format!(
            "Kept {} that other jobs are waiting for.\n",
            format_count(collected.in_use, "job")
        ));
    }
    text
}

pub(super) fn workers(arguments: &WorkersArguments, client: &Client) -> Result<Report, Failure> {
    let answer: Value = match arguments.max_workers {
        Some(max_workers) => client.ask(Repeat::Harmless, |client| {
            client.put(&format!("{JOBS}/workers"), &SetJobWorkers { max_workers })
        })?,
        None => {
            let path = format!("{JOBS}?limit=1");
            client.fetch::<Value>(&path)?["counts"].take()
        }
    };
    let counts: JobCounts = printable(&answer)?;
    Ok(Report::success(answer, workers_text(&counts)))
}

fn workers_text(counts: &JobCounts) -> String {
    let most = match counts.max_workers {
        0 => "No new jobs start".to_owned(),
        most => format!("At most {} at once", format_count(most, "job")),
    };
    format!("{most}; {} running, {} waiting.\n", counts.running, counts.queued)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forgotten_is_counted() {
        let collected = |jobs, output_bytes, in_use| JobsCollected {
            jobs,
            output_bytes,
            in_use,
        };
        for (collected, expected) in [
            (collected(0, 0, 0), "No jobs to forget.\n"),
            (collected(1, 10, 0), "Forgot 1 job and 10 B of output.\n"),
            (
                collected(3, 2048, 2),
                "Forgot 3 jobs and 2.0 KiB of output.\nKept 2 jobs that other jobs are waiting for.\n",
            ),
        ] {
            assert_eq!(collected_text(&collected), expected);
        }
    }

    #[test]
    fn the_workers_are_told_in_one_line() {
        let counts = |max_workers| JobCounts {
            queued: 2,
            running: 1,
            max_workers,
            foreground: 0,
        };
        for (counts, expected) in [
            (counts(4), "At most 4 jobs at once; 1 running, 2 waiting.\n"),
            (counts(1), "At most 1 job at once; 1 running, 2 waiting.\n"),
            (counts(0), "No new jobs start; 1 running, 2 waiting.\n"),
        ] {
            assert_eq!(workers_text(&counts), expected);
        }
    }
}
