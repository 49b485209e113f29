//! Shows a job's output, past and new.

use std::io::{self, ErrorKind};
use std::time::Duration;

use protocol::{Job, JobOutput};
use serde_json::{Value, json};

use super::follow::follow_from;
use super::path;
use super::printer::{Escapes, OutputPrinter};
use crate::cli::{LogsArguments, Reach};
use crate::client::{Client, ClientError, Ended, Interrupts};
use crate::commands::ids::JOB;
use crate::error::{Exit, Failure};
use crate::output::Report;
use crate::printable::printable;

/// How long the daemon may take to send the next chunk of existing output.
const SILENCE: Duration = Duration::from_secs(60);
/// The longest line we read. A chunk of output has at most 64 KiB, which can take six times as much as JSON.
const LINE_LIMIT_BYTES: usize = 1 << 20;

pub(super) fn logs(arguments: &LogsArguments, client: &Client) -> Result<Report, Failure> {
    let id = JOB.find(&arguments.job.job, client)?;
    // Report a missing job or daemon before anything else.
    let answer = client.fetch(&path(&id, ""))?;
    let mut job: Job = printable(&answer)?;
    let channel = arguments.channel.map(|channel| channel.name());
    let mut printer = OutputPrinter::new(client.format(), Escapes::for_here(), arguments.stamps());
    match arguments.reach() {
        Reach::Past => past(client, &id, arguments.after, channel, &mut printer)?,
        Reach::Follow => {
            let interrupts = &mut Interrupts::default();
            // If the reader closed its end, it has seen enough. Reporting how the job ended is up to `wait`.
            match follow_from(client, &id, arguments.after, channel, interrupts, &mut printer)? {
                Ended::Over { end, .. } => job = printable(&json!(end))?,
                Ended::LeftAlone | Ended::NobodyReads => {}
            }
        }
    }
    drop(printer);
    match &job.output_lost {
        None => Ok(Report::already_told()),
        Some(why) => Err(Failure::new(
            Exit::Failed,
            "output_lost",
            format!("some of the output of {id} was lost: {why}"),
        )
        .advise("make room on the disk, then run it again with `tidelock job retry`")),
    }
}

fn past(
    client: &Client,
    id: &str,
    after: u64,
    channel: Option<&str>,
    printer: &mut OutputPrinter,
) -> Result<(), Failure> {
    let channel = channel.map_or_else(String::new, |channel| format!("&channel={channel}"));
    let path = path(id, &format!("/logs?follow=false&after={after}{channel}"));
    let mut line = Vec::new();
    let told = client.download(&path, &[], SILENCE, |piece| {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            if line.len() + part.len() > LINE_LIMIT_BYTES {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "a line of the logs is too long",
                ));
            }
            line.extend_from_slice(part);
            if line.ends_with(b"\n") {
                tell(&line, printer)?;
                line.clear();
            }
        }
        Ok(())
    });
    match told {
        Err(ClientError::Output { source }) if source.kind() == ErrorKind::BrokenPipe => Ok(()),
        told => Ok(told?),
    }
}

fn tell(line: &[u8], printer: &mut OutputPrinter) -> io::Result<()> {
    let value: Value = serde_json::from_slice(line)?;
    if let Some(after) = value["resync"]["after"].as_u64() {
        return printer.resync(after);
    }
    let output: JobOutput = serde_json::from_value(value)?;
    printer.output(&output)
}
