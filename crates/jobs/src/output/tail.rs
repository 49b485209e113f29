//! Reads output: what exists, then what follows, until the job has ended.
//!
//! It follows two streams: the output, and the job itself. The worker finishes the output before it commits the
//! end of the job. So a reader that has seen the end finds all of the output in the log, and reads it to its end.
//!
//! Each step requests everything it may need at once, because the log may be far away.

use std::{collections::VecDeque, sync::Arc};

use eventlog::{Bookmark, Event, Log, LogError, Page, Sequence, StreamId, Tail, TailEnd, TailItem};
use kernel::{Cause, Scope};
use protocol::JobId;

use super::{
    buffer::EVENT_BYTES,
    item::{OutputItem, OutputSummary},
    stream,
};
use crate::{
    history,
    job::{Job, State},
};

/// How many events are read from the log at a time, at most. A slow reader holds what was read for it, and there
/// may be hundreds of them, so fewer large events are read.
const PAGE_EVENTS: usize = 4;

/// Why following ended before the job did.
#[derive(Debug, thiserror::Error)]
pub enum FollowEnd {
    /// The job doesn't exist, or no longer does.
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
    /// The last event that was delivered, or what the reader expects at its starting position.
    place: Bookmark,
    past: DeliveredEvents,
    /// Events that were read but not delivered yet; at most a page.
    ready: VecDeque<Event>,
    /// How many events to read next: as many as fill one large event, judging by the last ones.
    page: usize,
    /// Follows the output, once everything that existed has been read.
    live: Option<Tail>,
    job: JobWatch,
    is_queued: bool,
    scope: Scope,
}

/// What is known about the job.
#[derive(Debug)]
enum JobWatch {
    /// It must be read: it wasn't yet, or it has changed since.
    Unknown(Option<JobChange>),
    /// It hadn't ended; its stream tells when to read it again.
    Open(Box<Tail>),
    /// It has ended, and all of its output is in the log.
    Ended(Box<Job>),
    /// It has ended, and all of its output was read.
    Over(Box<Job>, OutputSummary),
}

/// Whether the log may still lose events that were delivered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DeliveredEvents {
    /// It may, if its server crashes. So each read checks the last event again.
    MayChange,
    /// The end of the job is on disk, and so is all of its output, which is what was read.
    Settled,
}

#[derive(Debug)]
struct JobChange {
    tail: Box<Tail>,
    /// Whether that was its end.
    is_end: bool,
}

/// What came first.
enum TailWake {
    LinePart(TailItem),
    JobChange(TailItem),
}

impl OutputTail {
    /// Follows from a position on.
    pub(crate) fn new(log: &Log, id: JobId, after: Bookmark, scope: &Scope) -> Self {
        Self {
            log: log.clone(),
            id,
            output: history::output_stream(id),
            place: after,
            past: DeliveredEvents::MayChange,
            ready: VecDeque::new(),
            page: 1,
            live: None,
            job: JobWatch::Unknown(None),
            is_queued: true,
            scope: scope.clone(),
        }
    }

    /// The next item; waits for one if necessary. After [`OutputItem::End`] it only returns that again.
    ///
    /// *Cancel safety*: if the future is dropped, nothing is skipped.
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
                (JobWatch::Unknown(_), _) => {
                    if let Some(after) = self.look().await? {
                        return Ok(self.resync(after));
                    }
                }
                (JobWatch::Open(job), Some(live)) => {
                    let moved = tokio::select! {
                        biased;
                        item = live.next() => TailWake::LinePart(item?),
                        moved = job.next() => TailWake::JobChange(moved?),
                    };
                    match moved {
                        TailWake::LinePart(TailItem::Resync { after }) => return Ok(self.resync(after)),
                        TailWake::LinePart(TailItem::Event(event)) => {
                            if let Some(item) = self.hand_out(&event)? {
                                return Ok(item);
                            }
                        }
                        TailWake::JobChange(TailItem::Event(event)) if history::is_claim(&event.kind) => {
                            self.is_queued = false;
                        }
                        TailWake::JobChange(TailItem::Event(event)) => {
                            self.job_moved(history::is_end(&event.kind))
                        }
                        TailWake::JobChange(TailItem::Resync { .. }) => self.job_moved(false),
                    }
                }
                (JobWatch::Open(_), None) => {
                    let page = self.read().await?;
                    if let Some(after) = self.take_or_follow(page) {
                        return Ok(self.resync(after));
                    }
                }
                (JobWatch::Ended(job), _) => {
                    let job = job.clone();
                    let (page, summary) = tokio::try_join!(self.read(), self.summary())?;
                    if let Some(after) = self.take(page) {
                        return Ok(self.resync(after));
                    }
                    if self.ready.is_empty() {
                        self.job = JobWatch::Over(job, summary);
                    }
                }
                (JobWatch::Over(job, summary), _) => {
                    return Ok(OutputItem::End(job.clone(), summary.clone()));
                }
            }
        }
    }

    /// Reads the job and its output, so that following a job that doesn't exist fails early.
    ///
    /// *Cancel safety*: if the future is dropped, the next item does the same first.
    pub async fn begin(&mut self) -> Result<(), FollowEnd> {
        if matches!(self.job, JobWatch::Unknown(None)) {
            // If the position doesn't exist, the next read finds that out again and reports it.
            self.look().await?;
        }
        Ok(())
    }

    /// The position after the last delivered item, for a reader that comes back.
    #[must_use]
    pub fn place(&self) -> Bookmark {
        self.place
    }

    /// Whether the job was queued when it was last read.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.is_queued
    }

    /// Reads the job, and the next page of its output. Returns where to resync, if the position doesn't exist.
    async fn look(&mut self) -> Result<Option<Sequence>, FollowEnd> {
        let job_stream = history::job_stream(self.id);
        let is_end = matches!(&self.job, JobWatch::Unknown(Some(moved)) if moved.is_end);
        let summary = async {
            match is_end {
                true => self.summary().await,
                false => Ok(OutputSummary::default()),
            }
        };
        let (head, page, summary) = tokio::try_join!(self.log.head(&job_stream), self.read(), summary)?;
        let head = head.ok_or(FollowEnd::NotFound)?;
        let job = Job::decode(&head).map_err(|error| LogError::Corrupt(Arc::new(error)))?;
        self.is_queued = matches!(job.record.state, State::Queued { .. });
        if !job.record.state.is_terminal() {
            let known = match &mut self.job {
                JobWatch::Unknown(moved) => moved.take().map(|moved| moved.tail),
                _ => None,
            };
            let tail = || Box::new(self.log.tail(&job_stream, head.last_sequence, &self.scope));
            self.job = JobWatch::Open(known.unwrap_or_else(tail));
            // If the output is already followed, new events arrive that way.
            return Ok(match self.live {
                Some(_) => None,
                None => self.take_or_follow(page),
            });
        }
        self.live = None;
        let job = Box::new(job);
        let resync = self.take(page);
        self.job = match is_end && resync.is_none() && self.ready.is_empty() {
            true => JobWatch::Over(job, summary),
            false => JobWatch::Ended(job),
        };
        Ok(resync)
    }

    fn job_moved(&mut self, is_end: bool) {
        let job = std::mem::replace(&mut self.job, JobWatch::Unknown(None));
        if let JobWatch::Open(tail) = job {
            self.job = JobWatch::Unknown(Some(JobChange { tail, is_end }));
        }
    }

    /// The summary of the output. If it can't be read, it is quarantined, which must not hide the end.
    async fn summary(&self) -> Result<OutputSummary, LogError> {
        match stream::summary(&self.log, self.id).await {
            Err(LogError::Corrupt(_)) => Ok(OutputSummary::default()),
            summary => summary,
        }
    }

    /// Reads the next page. It starts with the last delivered event as long as that may have been lost: another
    /// event may have replaced it, also while this waited for a server to come back.
    async fn read(&self) -> Result<Page, LogError> {
        let limit = u32::try_from(self.page).unwrap_or(1);
        let place = self.place.sequence;
        let is_checked = self.past == DeliveredEvents::MayChange && self.place.at_ms.is_some();
        match place.get().checked_sub(1) {
            Some(before) if is_checked => {
                let before = Sequence::from_u64(before);
                self.log.read(&self.output, before, limit + 1).await
            }
            _ => self.log.read(&self.output, place, limit).await,
        }
    }

    /// Processes a page. If events were dropped before it, returns up to where and processes nothing. It does the
    /// same if the position is beyond the end, because the log has lost delivered events. If the last delivered
    /// event was replaced, the reader starts over.
    fn take(&mut self, mut page: Page) -> Option<Sequence> {
        let place = self.place;
        if page.last < place.sequence {
            return Some(page.last);
        }
        let start = Sequence::from_u64(page.first.get().saturating_sub(1));
        if page.first > place.sequence.next() || page.events.iter().any(|event| place.is_replaced_by(event)) {
            return Some(start);
        }
        if matches!(self.job, JobWatch::Ended(_)) {
            self.past = DeliveredEvents::Settled;
        }
        page.events.retain(|event| event.sequence > place.sequence);
        let bytes: usize = page.events.iter().map(|event| event.body.len()).sum();
        self.page = (EVENT_BYTES * page.events.len() / bytes.max(1)).clamp(1, PAGE_EVENTS);
        // These may be larger than those before. Events that are too large to hold now are read again later.
        let mut held = 0;
        for event in page.events {
            held += event.body.len();
            if held > EVENT_BYTES && !self.ready.is_empty() {
                break;
            }
            self.ready.push_back(event);
        }
        None
    }

    /// Like [`take`](Self::take), but follows the output after an empty page.
    fn take_or_follow(&mut self, page: Page) -> Option<Sequence> {
        let resync = self.take(page);
        if resync.is_none() && self.ready.is_empty() {
            self.live = Some(self.log.tail(&self.output, self.place, &self.scope));
        }
        resync
    }

    fn resync(&mut self, after: Sequence) -> OutputItem {
        self.place = after.into();
        OutputItem::Resync { after }
    }

    /// Delivers an event, and returns its content, if it has any.
    fn hand_out(&mut self, event: &Event) -> Result<Option<OutputItem>, LogError> {
        self.place = event.into();
        stream::item(event)
    }
}
