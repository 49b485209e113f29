//! Submits a job, and follows it to its end if requested.

use std::io::{self, IsTerminal};

use protocol::{Job, JobSubmitted, RetryJob, SubmitJob};
use serde_json::{Value, json};

use super::follow::follow_with_input;
use super::input::Source;
use super::outcome;
use super::printer::{Escapes, OutputPrinter};
use super::submission::{self, Submission, environment_here};
use super::{JOBS, path};
use crate::cli::{RetryArguments, RunArguments, Stamps, Stay};
use crate::client::{Client, Ended, Interrupts};
use crate::commands::ids::JOB;
use crate::error::{Exit, Failure};
use crate::output::{self, Format, Report, json_line};
use crate::printable::printable;
use crate::start::Repeat;

pub(super) fn run(arguments: &RunArguments, client: &Client) -> Result<Report, Failure> {
    // Report invalid arguments before starting a daemon.
    let Submission {
        mut request,
        notes,
        source,
    } = submission::build(arguments)?;
    for job in &mut request.after {
        *job = JOB.find(job, client)?;
    }
    let repeat = match request.idempotency_key {
        // A retry with the key gets the same job.
        Some(_) => Repeat::Harmless,
        None => Repeat::Harmful,
    };
    let answer = client.ask(repeat, |client| send(client, &request))?;
    // The command only got a terminal if there is one here.
    stay(arguments.stay(), answer, Escapes::Keep, source, client).map(|report| with_notes(report, notes))
}

pub(super) fn retry(arguments: &RetryArguments, client: &Client) -> Result<Report, Failure> {
    let id = JOB.find(&arguments.job.job, client)?;
    // The original environment was dropped when the job ended.
    let (environment, _) = environment_here();
    let again = RetryJob {
        environment: Some(environment),
    };
    let answer = client.ask(Repeat::Harmful, |client| {
        client.post(&path(&id, "/retry"), Some(&again))
    })?;
    stay(arguments.stay(), answer, Escapes::for_here(), None, client)
}

fn send(client: &Client, request: &SubmitJob) -> Result<Value, crate::client::ClientError> {
    client.post(JOBS, Some(request))
}

/// Reports that a job was submitted, or stays until it has ended.
fn stay(
    stay: Stay,
    answer: Value,
    escapes: Escapes,
    source: Option<Source>,
    client: &Client,
) -> Result<Report, Failure> {
    let submitted: JobSubmitted = printable(&answer)?;
    match stay {
        Stay::Submitted => Ok(report(&answer, &submitted)),
        Stay::Ended => to_the_end(&answer, &submitted.job, escapes, source, client),
    }
}

fn report(answer: &Value, submitted: &JobSubmitted) -> Report {
    let job = &submitted.job;
    let mut value = answer["job"].clone();
    value["known"] = json!(submitted.known);
    let text = format!("{} {}\n", job.id, job.state.as_str());
    let mut notes = Vec::new();
    if submitted.known {
        notes.push("this job was already submitted with the same key".to_owned());
    }
    if io::stderr().is_terminal() {
        notes.push(format!("watch it with `tidelock job logs -f {}`", job.id));
    }
    Report::success(value, text).with_notes(notes)
}

fn to_the_end(
    answer: &Value,
    job: &Job,
    escapes: Escapes,
    source: Option<Source>,
    client: &Client,
) -> Result<Report, Failure> {
    let mut interrupts = catch_interrupts(client, &job.id)?;
    if client.format() == Format::Json {
        // If the reader is gone, the first output will show that.
        drop(output::write(
            io::stdout(),
            &json_line(&json!({ "submitted": answer["job"] })),
        ));
    }
    let printer = OutputPrinter::new(client.format(), escapes, Stamps::None);
    match follow_with_input(client, &job.id, source, &mut interrupts, printer)? {
        Ended::Over {
            end: job,
            interrupted,
        } => outcome::conclude(&job, interrupted, client.format()),
        Ended::LeftAlone => Ok(leave(
            Exit::Command(outcome::INTERRUPTED),
            format!(
                "detached from {}; see `tidelock job show {}` or `tidelock job logs -f {}`",
                job.id, job.id, job.id
            ),
        )),
        Ended::NobodyReads => Ok(leave(
            Exit::Failed,
            format!(
                "the output was closed; {} keeps running, see `tidelock job show {}`",
                job.id, job.id
            ),
        )),
    }
}

pub(in crate::commands) fn catch_interrupts(client: &Client, id: &str) -> Result<Interrupts, Failure> {
    client.catch_interrupts().map_err(|error| {
        let message = format!("can't listen for Ctrl-C: {error}");
        Failure::new(Exit::Failed, "no_resources", message).advise(format!(
            "the job keeps running; watch it with `tidelock job logs -f {id}`"
        ))
    })
}

fn leave(exit: Exit, note: String) -> Report {
    Report {
        exit,
        ..Report::already_told().with_notes(vec![note])
    }
}

fn with_notes(mut report: Report, mut notes: Vec<String>) -> Report {
    notes.append(&mut report.notes);
    report.with_notes(notes)
}
