//! Reads a job's output until the job has ended, across restarts of the daemon.

use std::io;

use protocol::{CancelJob, Job, JobOutput, JobProgress, JobWaiting, Resync};
use serde_json::Value;

use super::input::{Feeding, Source};
use super::path;
use super::printer::OutputPrinter;
use crate::client::{Client, ClientError, Ended, Follower, Interrupts};
use crate::error::{Exit, Failure, UNREACHABLE, chain};
use protocol::sse::ServerEvent;

#[derive(Debug)]
pub(in crate::commands) enum JobMessage {
    Output(JobOutput),
    Progress(JobProgress),
    Waiting(String),
    /// Output up to here has expired, or output after it was lost and is sent again.
    Resync(u64),
    End(Box<Job>),
}

pub(in crate::commands) trait Listener {
    fn hear(&mut self, said: &JobMessage) -> io::Result<()>;
    /// Shows a note that is not part of the job's output.
    fn note(&mut self, text: &str);
}

/// Follows a job from its beginning. The first Ctrl-C cancels the job, the second one detaches from it.
pub(in crate::commands) fn follow(
    client: &Client,
    id: &str,
    interrupts: &mut Interrupts,
    listener: &mut dyn Listener,
) -> Result<Ended<Box<Job>>, Failure> {
    follow_from(client, id, 0, None, interrupts, listener)
}

/// Like `follow`, for a job that was just submitted: sends its input and prints its output.
pub(in crate::commands) fn follow_with_input(
    client: &Client,
    id: &str,
    source: Option<Source>,
    interrupts: &mut Interrupts,
    mut printer: OutputPrinter,
) -> Result<Ended<Box<Job>>, Failure> {
    let feeding = source
        .map(|source| Feeding::start(client, id, source))
        .transpose()?;
    let ended = follow(client, id, interrupts, &mut printer)?;
    drop(printer);
    if let (Some(feeding), Ended::Over { .. }) = (feeding, &ended) {
        feeding.finish();
    }
    Ok(ended)
}

/// Like `follow`, starting after a chunk of output, on one channel or on all.
pub(super) fn follow_from(
    client: &Client,
    id: &str,
    after: u64,
    channel: Option<&str>,
    interrupts: &mut Interrupts,
    listener: &mut dyn Listener,
) -> Result<Ended<Box<Job>>, Failure> {
    let query = channel.map_or_else(String::new, |channel| format!("&channel={channel}"));
    let path = path(id, &format!("/logs?follow=true{query}"));
    let mut following = Following { client, id, listener };
    client.follow(&path, Some(after.to_string()), interrupts, &mut following)
}

struct Following<'a> {
    client: &'a Client,
    id: &'a str,
    listener: &'a mut dyn Listener,
}

impl Follower for Following<'_> {
    type End = Box<Job>;

    fn hear(&mut self, event: &ServerEvent) -> io::Result<Option<Box<Job>>> {
        let Some(said) = understand(event) else {
            return Ok(None);
        };
        self.listener.hear(&said)?;
        Ok(match said {
            JobMessage::End(job) => Some(job),
            _ => None,
        })
    }

    fn note(&mut self, text: &str) {
        self.listener.note(text);
    }

    /// If the daemon reports the end in a form that this version doesn't understand, that is an error; otherwise this
    /// would wait forever.
    fn look_for_end(&mut self) -> Result<Option<ServerEvent>, Failure> {
        let id = self.id;
        let answer: Value = match self.client.get(&path(id, "")) {
            Ok(answer) => answer,
            Err(ClientError::Refused(refusal)) if !refusal.is_about_the_daemons_end() => {
                return Err((*refusal).into());
            }
            // The caller will look for it again.
            Err(_) => return Ok(None),
        };
        if matches!(answer["state"].as_str(), Some("queued" | "running")) {
            return Ok(None);
        }
        let end = ServerEvent {
            id: None,
            kind: "end".to_owned(),
            data: answer.to_string(),
        };
        if let Err(error) = serde_json::from_value::<Job>(answer.clone()) {
            let state = answer["state"]
                .as_str()
                .unwrap_or("unknown")
                .escape_debug()
                .to_string();
            let message = format!(
                "{id} ended ({state}), but this version of tidelock does not understand the result: {error}"
            );
            return Err(
                Failure::new(Exit::Failed, "answer_not_understood", message).advise(format!(
                    "the daemon runs another version: restart it with `tidelock down`, then run `tidelock job show {id}`"
                )),
            );
        }
        Ok(Some(end))
    }

    fn cancel(&mut self) {
        let id = self.id;
        let request = CancelJob {
            why: "Ctrl-C".to_owned(),
        };
        match self.client.post::<Value>(&path(id, "/cancel"), Some(&request)) {
            Ok(_) => self.listener.note(&format!(
                "Cancelling {id}. Press Ctrl-C again to detach; it keeps running until it has stopped."
            )),
            // It had already ended; the stream is about to report that.
            Err(ClientError::Refused(refusal)) if refusal.code == "job_ended" => {}
            Err(error) => self.listener.note(&format!(
                "Couldn't cancel {id} ({}). Press Ctrl-C again to detach; it keeps running.",
                chain(&error)
            )),
        }
    }

    fn lost(&self, error: Option<ClientError>) -> Option<Failure> {
        let id = self.id;
        let why = error.map_or_else(|| "it doesn't accept requests".to_owned(), |error| chain(&error));
        let message = format!("lost the daemon before {id} ended: {why}");
        Some(
            Failure::new(Exit::Unreachable, UNREACHABLE, message).advise(format!(
                "`tidelock job show {id}` starts a daemon and shows what happened to the job"
            )),
        )
    }
}

/// Parses an event; `None` for one that only a newer version knows.
fn understand(event: &ServerEvent) -> Option<JobMessage> {
    let data = event.data.as_str();
    match event.kind.as_str() {
        "output" => serde_json::from_str(data).ok().map(JobMessage::Output),
        "progress" => serde_json::from_str(data).ok().map(JobMessage::Progress),
        "waiting" => {
            let waiting: JobWaiting = serde_json::from_str(data).ok()?;
            Some(JobMessage::Waiting(waiting.waiting_for))
        }
        "resync" => {
            let resync: Resync = serde_json::from_str(data).ok()?;
            Some(JobMessage::Resync(resync.after))
        }
        "end" => serde_json::from_str(data).ok().map(JobMessage::End),
        _ => None,
    }
}
