//! Output as it is read: what is there, then what comes, until the job has ended.
//!
//! Two streams are followed: the output, and the job itself. The worker finishes the output before it commits the end
//! of the job. So whoever has seen the end finds all of the output in the log, and reads it until there is no more.

use std::{collections::VecDeque, sync::Arc};

use eventlog::{Event, Log, LogError, Sequence, StreamId, Tail, TailEnd, TailItem};
use kernel::{Cause, JobId, Scope};

use super::{book::EVENT_BYTES, item::OutputItem, stream};
use crate::{history, job::Job};

/// How many events are read from the log at a time, at most. A reader that does not read on holds what was read for it, and
/// there may be hundreds of them, so of large events fewer are read.
const PAGE_EVENTS: usize = 4;

/// Following ended before the job did.
#[derive(Debug, thiserror::Error)]
pub enum FollowEnd {
    /// There is no such job, or no longer.
    #[error("there is no such job")]
    NotFound,
    /// The reader's scope was cancelled.
    #[error("following was cancelled by {0}")]
    Cancelled(Arc<Cause>),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<TailEnd> for FollowEnd {
    fn from(end: TailEnd) -> Self {
        match end {
            TailEnd::Cancelled(cause) => Self::Cancelled(cause),
            TailEnd::Log(error) => Self::Log(error),
        }
    }
}

/// Reads the output of a job, while it is written or later.
#[derive(Debug)]
pub struct OutputTail {
    log: Log,
    id: JobId,
    output: StreamId,
    /// The last event that was handed out, or the place it was to start after.
    place: Sequence,
    /// Events that are read and not handed out yet; at most a page of them.
    ready: VecDeque<Event>,
    /// How many events are read next: as many as fill one large event, going by those that were read last.
    page: usize,
    /// Follows the output, once all that was there has been read.
    live: Option<Tail>,
    job: Watched,
    scope: Scope,
}

/// What is known of the job.
#[derive(Debug)]
enum Watched {
    /// It has to be looked at: it was not yet, or it has moved since.
    Unknown(Option<Box<Tail>>),
    /// It had not ended; its stream tells when to look again.
    Open(Box<Tail>),
    /// It has ended, and all of its output is in the log.
    Ended(Box<Job>),
}

impl OutputTail {
    /// Follows from a place on.
    pub(crate) fn new(log: &Log, id: JobId, after: Sequence, scope: &Scope) -> Self {
        Self {
            log: log.clone(),
            id,
            output: history::output_stream(id),
            place: after,
            ready: VecDeque::new(),
            page: 1,
            live: None,
            job: Watched::Unknown(None),
            scope: scope.clone(),
        }
    }

    /// The next item; waits for one if need be. After [`OutputItem::End`] there is none but that again.
    ///
    /// *Cancel safety*: dropped half-way, nothing is skipped.
    pub async fn next(&mut self) -> Result<OutputItem, FollowEnd> {
        loop {
            if let Some(cause) = self.scope.cause() {
                return Err(FollowEnd::Cancelled(cause));
            }
            if let Some(event) = self.ready.pop_front() {
                if let Some(item) = self.hand_out(&event)? {
                    return Ok(item);
                }
                continue;
            }
            // Each wait changes the state only when it is over, so that it may be dropped.
            match (&mut self.job, &mut self.live) {
                (Watched::Unknown(_), _) => self.look().await?,
                (Watched::Open(job), Some(live)) => {
                    let moved = tokio::select! {
                        biased;
                        item = live.next() => Some(item?),
                        moved = job.next() => moved.map(|_| None)?,
                    };
                    match moved {
                        Some(TailItem::Resync { after }) => return Ok(self.resync(after)),
                        Some(TailItem::Event(event)) => {
                            if let Some(item) = self.hand_out(&event)? {
                                return Ok(item);
                            }
                        }
                        None => self.job_moved(),
                    }
                }
                (Watched::Open(_), None) => {
                    let page = self.read().await?;
                    if let Some(after) = page {
                        return Ok(self.resync(after));
                    }
                    if self.ready.is_empty() {
                        self.live = Some(self.log.tail(&self.output, self.place, &self.scope));
                    }
                }
                (Watched::Ended(job), _) => {
                    let end = OutputItem::End(job.clone());
                    let dropped = self.read().await?;
                    if let Some(after) = dropped {
                        return Ok(self.resync(after));
                    }
                    if self.ready.is_empty() {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// Looks at the job.
    async fn look(&mut self) -> Result<(), FollowEnd> {
        let job_stream = history::job_stream(self.id);
        let head = self.log.head(&job_stream).await?.ok_or(FollowEnd::NotFound)?;
        let job = history::job(self.id, &head).map_err(|error| LogError::Corrupt(Arc::new(error)))?;
        self.job = if job.record.state.is_terminal() {
            Watched::Ended(Box::new(job))
        } else {
            let known = match &mut self.job {
                Watched::Unknown(tail) => tail.take(),
                Watched::Open(_) | Watched::Ended(_) => None,
            };
            Watched::Open(
                known
                    .unwrap_or_else(|| Box::new(self.log.tail(&job_stream, head.last_sequence, &self.scope))),
            )
        };
        Ok(())
    }

    fn job_moved(&mut self) {
        let job = std::mem::replace(&mut self.job, Watched::Unknown(None));
        if let Watched::Open(tail) = job {
            self.job = Watched::Unknown(Some(tail));
        }
    }

    /// Reads the next page. If events were dropped before it, it says up to where and reads nothing. So it does if the place
    /// is beyond the end, because the log has lost what was shown.
    async fn read(&mut self) -> Result<Option<Sequence>, LogError> {
        let limit = u32::try_from(self.page).unwrap_or(1);
        let page = self.log.read(&self.output, self.place, limit).await?;
        if page.last < self.place {
            return Ok(Some(page.last));
        }
        if page.first > self.place.next() {
            return Ok(Some(Sequence::from_u64(page.first.get() - 1)));
        }
        let bytes: usize = page.events.iter().map(|event| event.body.len()).sum();
        self.page = (EVENT_BYTES * page.events.len() / bytes.max(1)).clamp(1, PAGE_EVENTS);
        self.ready.extend(page.events);
        Ok(None)
    }

    fn resync(&mut self, after: Sequence) -> OutputItem {
        self.place = after;
        OutputItem::Resync { after }
    }

    /// Moves on to an event, and says what it is, if it says anything.
    fn hand_out(&mut self, event: &Event) -> Result<Option<OutputItem>, LogError> {
        self.place = event.sequence;
        stream::item(event)
    }
}
