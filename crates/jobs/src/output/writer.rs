//! The task that writes the output of one attempt: everything that has queued up goes into one commit.
//!
//! Commits are relaxed, because a command may write a thousand lines a second. A later durable commit flushes
//! them too, so the end of a job is never on disk without the output before it.

use std::mem;
use std::sync::{Arc, OnceLock};

use eventlog::{
    Commit, CommitError, Durability, Head, Health, LogError, NewEvent, Sequence, StoredHead, StreamId,
    UnsettledEvents, Version, Write,
};
use kernel::Deadline;
use protocol::{JobChannel, JobProgress};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::buffer::{Batch, Due, OutputBuffer};
use super::handle::{OutputError, OutputOptions};
use super::item::OutputSummary;
use super::stream::{self, OutputHead};
use crate::history;

/// How many events are collected before they are written: half of the limit of a commit, because a single message
/// may become several.
const BATCH_EVENTS: usize = eventlog::COMMIT_LIMIT_ITEMS / 2;

/// How much output that the log may still lose is kept in memory. Beyond that, a durable commit flushes it.
const UNSETTLED_BYTES: usize = 1024 * 1024;

/// How many times a writer tries to take the stream over: once more for what readers did not see yet, and once
/// for safety. No earlier attempt should still be writing then.
const TAKE_OVER_TRIES: usize = 3;

#[derive(Debug)]
pub(super) enum Message {
    /// The next bytes of a channel.
    Piece {
        channel: JobChannel,
        bytes: Vec<u8>,
        /// Their share of the queue. It is released when they are written.
        room: OwnedSemaphorePermit,
    },
    Progress(JobProgress),
    /// There will be no more.
    Finish {
        /// Answered when everything is written.
        reply: oneshot::Sender<Result<OutputSummary, OutputError>>,
    },
}

/// Runs the writer. It ends on a finish message, when all handles are gone, or when it can't write; then `fault`
/// says why.
pub(super) async fn run(
    options: OutputOptions,
    mut messages: mpsc::Receiver<Message>,
    room: Arc<Semaphore>,
    fault: Arc<OnceLock<OutputError>>,
) {
    let job = options.job;
    let (written, reply) = match Writer::open(options).await {
        Ok(mut writer) => {
            let mut reply = None;
            let written = writer.write_all(&mut messages, &room, &mut reply).await;
            (written, reply)
        }
        Err(error) => (Err(error), None),
    };
    if let Err(error) = &written {
        tracing::warn!(%job, %error, "stopped writing the output of a job");
        // Only this task sets it, and only once.
        drop(fault.set(error.clone()));
    }
    // The fault is set before anyone learns that the queue is closed.
    room.close();
    messages.close();
    if let Some(reply) = reply {
        drop(reply.send(written));
    }
}

#[derive(Debug)]
struct Writer {
    options: OutputOptions,
    stream: StreamId,
    /// The version that the next write names.
    version: Version,
    buffer: OutputBuffer,
    unsettled: UnsettledEvents,
}

type Reply = Option<oneshot::Sender<Result<OutputSummary, OutputError>>>;

impl Writer {
    /// Takes the stream over from earlier attempts. The first attempt needn't check for one.
    async fn open(options: OutputOptions) -> Result<Self, OutputError> {
        let is_first = options.attempt <= 1;
        let mut writer = Self {
            stream: history::output_stream(options.job),
            version: Version::NONE,
            buffer: OutputBuffer::new(options.attempt, options.limit_bytes, OutputSummary::default()),
            unsettled: UnsettledEvents::default(),
            options,
        };
        if is_first {
            return Ok(writer);
        }
        let mut before = writer.options.log.head(&writer.stream).await?;
        for _ in 0..TAKE_OVER_TRIES {
            if let Some(stored) = &before {
                writer.continue_after(stored)?;
            }
            match writer.try_commit().await {
                Ok(()) => return Ok(writer),
                // Readers may not have seen the last write of the previous attempt yet.
                Err(CommitError::Conflict {
                    actual: Some(actual), ..
                }) => before = Some(*actual),
                Err(error) => return Err(writer.refused(error)),
            }
        }
        Err(OutputError::Fenced)
    }

    /// Continues where an earlier attempt has ended.
    fn continue_after(&mut self, stored: &StoredHead) -> Result<(), OutputError> {
        let head = OutputHead::of(stored)?;
        let attempt = self.options.attempt;
        if head.attempt >= attempt {
            return Err(OutputError::Fenced);
        }
        self.version = stored.version;
        self.buffer = OutputBuffer::new(attempt, self.options.limit_bytes, head.summary);
        Ok(())
    }

    /// Writes messages until there are no more.
    async fn write_all(
        &mut self,
        messages: &mut mpsc::Receiver<Message>,
        room: &Semaphore,
        reply: &mut Reply,
    ) -> Result<OutputSummary, OutputError> {
        loop {
            let mut next = self.next(messages).await;
            let is_last = matches!(next, Next::End);
            // The permits are released when this is dropped, which is after the commit.
            let mut held = Vec::new();
            while let Next::Message(message) = next {
                match message {
                    Message::Piece { channel, bytes, room } => {
                        self.buffer.take(channel, &bytes);
                        held.push(room);
                    }
                    Message::Progress(progress) => self.buffer.progress(progress),
                    Message::Finish { reply: asked } => {
                        // What is in the queue was accepted, so it is written; waiting senders are refused.
                        *reply = Some(asked);
                        room.close();
                        messages.close();
                    }
                }
                if self.buffer.drafts() >= BATCH_EVENTS {
                    break;
                }
                next = messages.try_recv().map_or(Next::Due, Next::Message);
            }
            if self.buffer.due(self.options.clock.now()) == Due::Now {
                self.commit().await?;
            }
            if is_last {
                return self.finish().await;
            }
        }
    }

    /// Waits for a message, or until something is due.
    async fn next(&self, messages: &mut mpsc::Receiver<Message>) -> Next {
        let clock = &self.options.clock;
        let due = match self.buffer.due(clock.now()) {
            Due::Now => return Next::Due,
            // The time may have passed in the meantime.
            Due::At(at) => Deadline::after(clock, at.saturating_duration_since(clock.now())),
            Due::Never => Deadline::never(),
        };
        tokio::select! {
            biased;
            message = messages.recv() => message.map_or(Next::End, Next::Message),
            () = due.passed() => Next::Due,
        }
    }

    async fn finish(&mut self) -> Result<OutputSummary, OutputError> {
        self.buffer.finish();
        if self.buffer.due(self.options.clock.now()) == Due::Now {
            self.commit().await?;
        }
        Ok(self.buffer.summary().clone())
    }

    async fn commit(&mut self) -> Result<(), OutputError> {
        let committed = self.try_commit().await;
        committed.map_err(|error| self.refused(error))
    }

    /// Writes what is due. If the commit is refused, that output is lost.
    async fn try_commit(&mut self) -> Result<(), CommitError> {
        let Batch { drafts, summary } = self.buffer.batch(self.options.clock.now());
        let attempt = self.options.attempt;
        let head = OutputHead { attempt, summary }.to_head()?;
        let events: Result<Vec<_>, LogError> = drafts.into_iter().map(stream::event).collect();
        let events = events?;
        let durability = match self.unsettled.bytes() < UNSETTLED_BYTES {
            true => Durability::Relaxed,
            false => Durability::Durable,
        };
        match self.append(&head, events.clone(), durability).await {
            Err(CommitError::RolledBack { actual, .. }) => self.write_again(&head, actual, events).await,
            done => done,
        }
    }

    /// Rewrites the output that the log's server lost in a crash because it hadn't been flushed.
    async fn write_again(
        &mut self,
        head: &Head,
        actual: Option<Box<StoredHead>>,
        events: Vec<NewEvent>,
    ) -> Result<(), CommitError> {
        let job = self.options.job;
        tracing::warn!(%job, "the log has lost output of a job; writing it again");
        let (version, last) = actual.map_or((Version::NONE, Sequence::START), |actual| {
            (actual.version, actual.last_sequence)
        });
        self.version = version;
        let mut lost = mem::take(&mut self.unsettled).after(last);
        lost.extend(events);
        for events in lost.chunks(BATCH_EVENTS) {
            self.append(head, events.to_vec(), Durability::Durable).await?;
        }
        Ok(())
    }

    async fn append(
        &mut self,
        head: &Head,
        events: Vec<NewEvent>,
        durability: Durability,
    ) -> Result<(), CommitError> {
        let commit = Commit {
            writes: vec![Write {
                stream: self.stream.clone(),
                expected: self.version,
                head: Some(head.clone()),
                events: events.clone(),
            }],
            under: self.options.lease.iter().cloned().collect(),
            durability,
        };
        let (log, clock) = (&self.options.log, &self.options.clock);
        let committed = log
            .commit_through(commit, clock, &self.options.lease_scope)
            .await?;
        if let Some(committed) = committed.first() {
            self.version = committed.version;
            self.buffer.wrote(committed.last_sequence);
            self.unsettled
                .acknowledged(durability, committed.last_sequence, events);
        }
        Ok(())
    }

    fn refused(&self, error: CommitError) -> OutputError {
        match error {
            CommitError::Fenced { .. } => OutputError::Fenced,
            CommitError::Conflict { actual, .. } => self.overtaken(actual.as_deref()),
            CommitError::Log(error) => OutputError::Log(error),
            other => OutputError::Log(LogError::Engine(Arc::new(other))),
        }
    }

    /// Explains why the stream isn't as this writer left it. Either a later attempt is writing, or the log had
    /// to roll back output that it had acknowledged, because it couldn't be written to disk.
    fn overtaken(&self, actual: Option<&StoredHead>) -> OutputError {
        let is_ours = actual
            .and_then(|stored| OutputHead::of(stored).ok())
            .is_none_or(|head| head.attempt <= self.options.attempt);
        match self.options.log.health() {
            _ if !is_ours => OutputError::Fenced,
            Health::Refusing { reason } => OutputError::Log(reason),
            // There may be space again by now, but the earlier output is lost anyway.
            _ => OutputError::Log(LogError::Engine(Arc::new(OutputRolledBack))),
        }
    }
}

/// The log lost output that it had acknowledged.
#[derive(Debug, thiserror::Error)]
#[error("the output could not be written to disk and was rolled back")]
struct OutputRolledBack;

enum Next {
    Message(Message),
    Due,
    End,
}
