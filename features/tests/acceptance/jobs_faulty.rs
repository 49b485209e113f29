//! The algorithms of the reports: workers that write what they have decided without looking at what they find.
//!
//! They use the streams of the real service, and a service that claims nothing beside them, so that the scenarios look
//! at both in the same way.

use std::sync::Arc;

use eventlog::{CommitError, Log};
use jobs::{Attempt, AttemptVerdict, Ending, Job, Record, State, UnixMs, Worker};
use kernel::CancellationToken;
use protocol::JobId;
use serde_json::{Value, json};

use crate::job_subjects::{
    board::{Board, Part, Script},
    daemon::{stream, write_record},
};

/// A worker of the reports.
#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    pub(crate) name: Arc<str>,
    pub(crate) log: Log,
    pub(crate) board: Board,
}

/// A job as one of them has it: the row as it was read, which is all that it ever looks at.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) id: JobId,
    pub(crate) record: Record,
}

impl Faulty {
    /// Reads a row.
    pub(crate) async fn poll(&self, id: JobId) -> Row {
        let stored = self
            .log
            .head(&stream(id))
            .await
            .unwrap()
            .expect("there is such a job");
        let record = serde_json::from_slice(&stored.head.body).unwrap();
        Row { id, record }
    }

    /// Marks a row as its own, and begins to run it.
    pub(crate) async fn mark(&self, row: &Row) -> Row {
        let mut row = row.clone();
        let number = row.record.attempts + 1;
        row.record.attempts = number;
        row.record.state = State::Running {
            attempt: Attempt {
                number,
                worker: Worker {
                    lease_key: Arc::clone(&self.name),
                    lease_token: 0,
                    home: Arc::clone(&self.name),
                },
                claimed_at: UnixMs::default(),
            },
        };
        let claimed = json!({ "event": "claimed", "attempt": number, "home": &*self.name });
        self.overwrite(&row, claimed).await;
        self.begin(&row, number);
        row
    }

    /// Puts a job back that is said to run, whoever runs it.
    pub(crate) async fn reset(&self, id: JobId) -> Row {
        let mut row = self.poll(id).await;
        row.record.state = State::Queued {
            since: row.record.submitted_at,
            not_before: None,
            last: None,
        };
        let interrupted = json!({ "event": "interrupted", "attempt": row.record.attempts, "text": "" });
        self.overwrite(&row, interrupted).await;
        row
    }

    /// Writes how its attempt ended into the row that it has.
    pub(crate) async fn finish(&self, row: &Row, verdict: AttemptVerdict) {
        let mut row = row.clone();
        let ending = Ending {
            home: None,
            attempt: row.record.attempts,
            started_at: UnixMs::default(),
            ended_at: UnixMs::default(),
            text: format!("{verdict:?} on {}", self.name),
            result: Value::Null,
            output: jobs::OutputEnd::default(),
        };
        let (state, event) = match verdict {
            AttemptVerdict::Succeeded => (
                State::Succeeded {
                    ending: ending.clone(),
                },
                "succeeded",
            ),
            _ => (
                State::Cancelled {
                    ending: Some(ending.clone()),
                },
                "cancelled",
            ),
        };
        row.record.state = state;
        self.overwrite(&row, json!({ "event": event, "ending": ending }))
            .await;
    }

    /// Writes a heartbeat: the whole row, as it was read.
    pub(crate) async fn heartbeat(&self, row: &Row) {
        self.overwrite(row, json!({ "event": "heartbeat" })).await;
    }

    /// The fault of all of them: the version that is named is not the one that was decided on.
    async fn overwrite(&self, row: &Row, event: Value) {
        loop {
            let version = self.log.head(&stream(row.id)).await.unwrap().unwrap().version;
            match write_record(&self.log, row.id, version, &row.record, &event.to_string()).await {
                Ok(_) => return,
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn begin(&self, row: &Row, attempt: u32) {
        let (board, name) = (self.board.clone(), Arc::clone(&self.name));
        let part = Part {
            job: row.id,
            attempt,
            title: row.record.facts.title.clone(),
            // What stalls a daemon would stall the test: these have no daemon of their own.
            script: Script::Ordered,
            scope: CancellationToken::new().scope(),
            output: None,
        };
        tokio::spawn(async move { board.play(&name, part).await });
    }
}

/// The row of a job.
pub(crate) fn row(job: &Job) -> Row {
    Row {
        id: job.id,
        record: job.record.clone(),
    }
}
