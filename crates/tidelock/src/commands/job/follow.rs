//! Reads what a job says until it has ended, also when the daemon is started afresh in between.
//!
//! Each thing said has a number. Whenever the stream ends before the job does, it is asked for again from the last one
//! that was told, so that nothing is missed and nothing told twice. How long nobody may answer is bounded.

use std::io::{self, ErrorKind};
use std::mem;
use std::time::{Duration, Instant};

use hyper::header::{ACCEPT, HeaderName};
use protocol::{CancelJob, Job, JobOutput, JobProgress, JobWaiting, Resync};
use serde_json::Value;

use super::path;
use crate::client::{Client, ClientError, Downloaded, Interrupts, Paused};
use crate::error::{Exit, Failure, UNREACHABLE, chain};
use crate::sse::{EventReader, ServerEvent};

/// A stream has a heartbeat every 15 seconds. After three that did not come, nobody is there.
const SILENCE: Duration = Duration::from_secs(45);
/// How long to wait before looking for the daemon again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// How long nobody may answer: long enough for a daemon to end and another one to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// Something that a job says.
#[derive(Debug)]
pub(in crate::commands) enum Said {
    Output(JobOutput),
    Progress(JobProgress),
    /// What it waits for before it can run.
    Waiting(String),
    /// What came up to here was dropped after its time, or what came after it was lost and follows again.
    Resync(u64),
    End(Box<Job>),
}

/// Who is told.
pub(in crate::commands) trait Listener {
    fn hear(&mut self, said: &Said) -> io::Result<()>;
    /// Something that is not said by the job, for people.
    fn note(&mut self, text: &str);
}

/// What Ctrl-C means.
#[derive(Debug)]
pub(in crate::commands) enum WhenInterrupted<'a> {
    /// The end of this process.
    EndTheProcess,
    /// The first one cancels the job, the second one leaves it alone.
    CancelTheJob(&'a mut Interrupts),
}

/// Whether somebody has pressed Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Interrupted {
    No,
    Yes,
}

/// Why following ended.
#[derive(Debug)]
pub(in crate::commands) enum Ended {
    /// The job has ended.
    Job { job: Box<Job>, interrupted: Interrupted },
    /// Somebody pressed Ctrl-C twice.
    LeftAlone,
    /// Nobody reads what is told.
    NobodyReads,
}

/// Follows a job from a place on, on one channel or on all.
pub(in crate::commands) fn follow(
    client: &Client,
    (id, after, channel): (&str, u64, Option<&str>),
    when_interrupted: WhenInterrupted<'_>,
    listener: &mut dyn Listener,
) -> Result<Ended, Failure> {
    let mut none = Interrupts::default();
    let interrupts = match when_interrupted {
        WhenInterrupted::EndTheProcess => &mut none,
        WhenInterrupted::CancelTheJob(interrupts) => interrupts,
    };
    let mut reading = Reading {
        place: after.to_string(),
        end: None,
        silent_since: None,
        is_absence_told: false,
    };
    let query = channel.map_or_else(String::new, |channel| format!("&channel={channel}"));
    let path = path(id, &format!("/logs?follow=true{query}"));
    let mut interrupted = Interrupted::No;
    loop {
        let ended = reading.read(client, &path, interrupts, listener);
        if let Some(job) = reading.end.take() {
            return Ok(Ended::Job { job, interrupted });
        }
        let paused = match ended {
            Ok(Downloaded::UntilInterrupted) => Paused::UntilInterrupted,
            // The stream is over, and nothing in it was the end of the job as this version knows it.
            Ok(Downloaded::Whole) => {
                if let Some(job) = ended_meanwhile(client, id)? {
                    return Ok(match listener.hear(&Said::End(job.clone())) {
                        Ok(()) => Ended::Job { job, interrupted },
                        Err(_) => Ended::NobodyReads,
                    });
                }
                reading.endure(Ok(Downloaded::Whole), id, listener)?;
                client.pause(LOOK_AGAIN_AFTER, interrupts)
            }
            Err(ClientError::Output { source }) if source.kind() == ErrorKind::BrokenPipe => {
                return Ok(Ended::NobodyReads);
            }
            other => {
                reading.endure(other, id, listener)?;
                client.pause(LOOK_AGAIN_AFTER, interrupts)
            }
        };
        if paused == Paused::UntilInterrupted {
            if interrupted == Interrupted::Yes {
                return Ok(Ended::LeftAlone);
            }
            interrupted = Interrupted::Yes;
            cancel(client, id, listener);
        }
    }
}

/// The job, if it has ended. A daemon that says so in words that nobody here understands is an error, or this would wait
/// for better words without end.
fn ended_meanwhile(client: &Client, id: &str) -> Result<Option<Box<Job>>, Failure> {
    let answer: Value = match client.get(&path(id, "")) {
        Ok(answer) => answer,
        Err(ClientError::Refused(refusal)) if !refusal.is_about_the_daemons_end() => {
            return Err((*refusal).into());
        }
        // It is about to be looked for again.
        Err(_) => return Ok(None),
    };
    if matches!(answer["state"].as_str(), Some("queued" | "running")) {
        return Ok(None);
    }
    serde_json::from_value(answer.clone()).map(Some).map_err(|error| {
        let state = answer["state"].as_str().unwrap_or("unknown").escape_debug().to_string();
        let message =
            format!("{id} ended ({state}), but this version of tidelock does not understand the result: {error}");
        Failure::new(Exit::Failed, "answer_not_understood", message).advise(format!(
            "the daemon runs another version: restart it with `tidelock down`, then run `tidelock job show {id}`"
        ))
    })
}

/// How far the reading is.
#[derive(Debug)]
struct Reading {
    /// The id of the last thing that was told.
    place: String,
    end: Option<Box<Job>>,
    /// Since when nothing has come from any daemon.
    silent_since: Option<Instant>,
    is_absence_told: bool,
}

impl Reading {
    fn read(
        &mut self,
        client: &Client,
        path: &str,
        interrupts: &mut Interrupts,
        listener: &mut dyn Listener,
    ) -> Result<Downloaded, ClientError> {
        let mut reader = EventReader::default();
        let headers = [
            (ACCEPT, "text/event-stream".to_owned()),
            (HeaderName::from_static("last-event-id"), self.place.clone()),
        ];
        client.download_until(path, &headers, SILENCE, interrupts, |piece| {
            (self.silent_since, self.is_absence_told) = (None, false);
            for event in reader.read(piece) {
                let Some(said) = understand(&event) else {
                    continue;
                };
                listener.hear(&said)?;
                // Only what was told is not asked for again.
                if let Some(id) = event.id {
                    self.place = id;
                }
                if let Said::End(job) = said {
                    self.end = Some(job);
                }
            }
            Ok(())
        })
    }

    /// The stream has ended before the job. That is endured for a while, unless it cannot become better.
    fn endure(
        &mut self,
        ended: Result<Downloaded, ClientError>,
        id: &str,
        listener: &mut dyn Listener,
    ) -> Result<(), Failure> {
        let error = match ended {
            // The daemon drains.
            Ok(_) => None,
            Err(ClientError::Refused(refusal)) if refusal.is_about_the_daemons_end() => None,
            Err(
                error @ (ClientError::Unreachable { .. }
                | ClientError::Broken { .. }
                | ClientError::Timeout { .. }),
            ) => Some(error),
            Err(error) => return Err(error.into()),
        };
        let since = *self.silent_since.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE {
            // A stream that has only ended most likely goes on at once.
            if error.is_some() && !mem::replace(&mut self.is_absence_told, true) {
                listener.note("the daemon is gone; waiting for it to come back");
            }
            return Ok(());
        }
        let why = error.map_or_else(|| "it doesn't accept requests".to_owned(), |error| chain(&error));
        let message = format!("lost the daemon before {id} ended: {why}");
        Err(
            Failure::new(Exit::Unreachable, UNREACHABLE, message).advise(format!(
                "`tidelock job show {id}` starts a daemon and shows what happened to the job"
            )),
        )
    }
}

fn cancel(client: &Client, id: &str, listener: &mut dyn Listener) {
    let request = CancelJob {
        why: "Ctrl-C".to_owned(),
    };
    match client.post::<Value>(&path(id, "/cancel"), Some(&request)) {
        Ok(_) => listener.note(&format!(
            "Cancelling {id}. Press Ctrl-C again to detach; it keeps running until it has stopped."
        )),
        // It was faster; its end is about to be told.
        Err(ClientError::Refused(refusal)) if refusal.code == "job_ended" => {}
        Err(error) => listener.note(&format!(
            "Couldn't cancel {id} ({}). Press Ctrl-C again to detach; it keeps running.",
            chain(&error)
        )),
    }
}

/// An event in our words; nothing if a newer daemon says something that we have not heard of.
fn understand(event: &ServerEvent) -> Option<Said> {
    let data = event.data.as_str();
    match event.kind.as_str() {
        "output" => serde_json::from_str(data).ok().map(Said::Output),
        "progress" => serde_json::from_str(data).ok().map(Said::Progress),
        "waiting" => {
            let waiting: JobWaiting = serde_json::from_str(data).ok()?;
            Some(Said::Waiting(waiting.waiting_for))
        }
        "resync" => {
            let resync: Resync = serde_json::from_str(data).ok()?;
            Some(Said::Resync(resync.after))
        }
        "end" => serde_json::from_str(data).ok().map(Said::End),
        _ => None,
    }
}
