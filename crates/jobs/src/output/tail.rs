//! Output as it is read: what is there, then what comes, until the job has ended.
//!
//! Two streams are followed: the output, and the job itself. The worker finishes the output before it commits the end
//! of the job. So whoever has seen the end finds all of the output in the log, and reads it until there is no more.
//!
//! Each step asks for all that it may need at once, because the log may be far away.

use std::{collections::VecDeque, sync::Arc};

use eventlog::{Bookmark, Event, Log, LogError, Page, Sequence, StreamId, Tail, TailEnd, TailItem};
use kernel::{Cause, Scope};
use protocol::JobId;

use super::{
    book::EVENT_BYTES,
    item::{OutputItem, OutputSummary},
    stream,
};
use crate::{
    history,
    job::{Job, State},
};

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
    /// The last event that was handed out, or what the reader says is at the place that it starts after.
    place: Bookmark,
    past: Past,
    /// Events that are read and not handed out yet; at most a page of them.
    ready: VecDeque<Event>,
    /// How many events are read next: as many as fill one large event, going by those that were read last.
    page: usize,
    /// Follows the output, once all that was there has been read.
    live: Option<Tail>,
    job: Watched,
    is_queued: bool,
    scope: Scope,
}

/// What is known of the job.
#[derive(Debug)]
enum Watched {
    /// It has to be looked at: it was not yet, or it has moved since.
    Unknown(Option<Moved>),
    /// It had not ended; its stream tells when to look again.
    Open(Box<Tail>),
    /// It has ended, and all of its output is in the log.
    Ended(Box<Job>),
    /// It has ended, and all of its output was read.
    Over(Box<Job>, OutputSummary),
}

/// Whether the log may still lose what was handed out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Past {
    /// It may, if its server crashes. So each read looks at the last event again.
    MayChange,
    /// The end of the job is on disk, and all of its output with it; and that is what was read.
    Settled,
}

/// The job has moved.
#[derive(Debug)]
struct Moved {
    tail: Box<Tail>,
    /// Whether that was its end.
    is_end: bool,
}

/// What came first.
enum Happened {
    Said(TailItem),
    Moved(TailItem),
}

impl OutputTail {
    /// Follows from a place on.
    pub(crate) fn new(log: &Log, id: JobId, after: Bookmark, scope: &Scope) -> Self {
        Self {
            log: log.clone(),
            id,
            output: history::output_stream(id),
            place: after,
            past: Past::MayChange,
            ready: VecDeque::new(),
            page: 1,
            live: None,
            job: Watched::Unknown(None),
            is_queued: true,
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
                (Watched::Unknown(_), _) => {
                    if let Some(after) = self.look().await? {
                        return Ok(self.resync(after));
                    }
                }
                (Watched::Open(job), Some(live)) => {
                    let moved = tokio::select! {
                        biased;
                        item = live.next() => Happened::Said(item?),
                        moved = job.next() => Happened::Moved(moved?),
                    };
                    match moved {
                        Happened::Said(TailItem::Resync { after }) => return Ok(self.resync(after)),
                        Happened::Said(TailItem::Event(event)) => {
                            if let Some(item) = self.hand_out(&event)? {
                                return Ok(item);
                            }
                        }
                        Happened::Moved(TailItem::Event(event)) if history::is_claim(&event.kind) => {
                            self.is_queued = false;
                        }
                        Happened::Moved(TailItem::Event(event)) => {
                            self.job_moved(history::is_end(&event.kind))
                        }
                        Happened::Moved(TailItem::Resync { .. }) => self.job_moved(false),
                    }
                }
                (Watched::Open(_), None) => {
                    let page = self.read().await?;
                    if let Some(after) = self.take_or_follow(page) {
                        return Ok(self.resync(after));
                    }
                }
                (Watched::Ended(job), _) => {
                    let job = job.clone();
                    let (page, summary) = tokio::try_join!(self.read(), self.summary())?;
                    if let Some(after) = self.take(page) {
                        return Ok(self.resync(after));
                    }
                    if self.ready.is_empty() {
                        self.job = Watched::Over(job, summary);
                    }
                }
                (Watched::Over(job, summary), _) => return Ok(OutputItem::End(job.clone(), summary.clone())),
            }
        }
    }

    /// Looks at the job and at its output, so that nobody begins to follow a job that is not there.
    ///
    /// *Cancel safety*: dropped half-way, the next item is preceded by it.
    pub async fn begin(&mut self) -> Result<(), FollowEnd> {
        if matches!(self.job, Watched::Unknown(None)) {
            // A place that is not there is found again by the next read, and told then.
            self.look().await?;
        }
        Ok(())
    }

    /// The place after what was handed out last, for a reader that comes back.
    #[must_use]
    pub fn place(&self) -> Bookmark {
        self.place
    }

    /// Whether the job waited for its turn when it was last looked at.
    #[must_use]
    pub fn is_queued(&self) -> bool {
        self.is_queued
    }

    /// Looks at the job, and reads the next page of its output. The place to go on after, if that is not there.
    async fn look(&mut self) -> Result<Option<Sequence>, FollowEnd> {
        let job_stream = history::job_stream(self.id);
        let is_end = matches!(&self.job, Watched::Unknown(Some(moved)) if moved.is_end);
        let summary = async {
            match is_end {
                true => self.summary().await,
                false => Ok(OutputSummary::default()),
            }
        };
        let (head, page, summary) = tokio::try_join!(self.log.head(&job_stream), self.read(), summary)?;
        let head = head.ok_or(FollowEnd::NotFound)?;
        let job = history::job(self.id, &head).map_err(|error| LogError::Corrupt(Arc::new(error)))?;
        self.is_queued = matches!(job.record.state, State::Queued { .. });
        if !job.record.state.is_terminal() {
            let known = match &mut self.job {
                Watched::Unknown(moved) => moved.take().map(|moved| moved.tail),
                _ => None,
            };
            let tail = || Box::new(self.log.tail(&job_stream, head.last_sequence, &self.scope));
            self.job = Watched::Open(known.unwrap_or_else(tail));
            // What is followed already comes that way.
            return Ok(match self.live {
                Some(_) => None,
                None => self.take_or_follow(page),
            });
        }
        self.live = None;
        let job = Box::new(job);
        let resync = self.take(page);
        self.job = match is_end && resync.is_none() && self.ready.is_empty() {
            true => Watched::Over(job, summary),
            false => Watched::Ended(job),
        };
        Ok(resync)
    }

    fn job_moved(&mut self, is_end: bool) {
        let job = std::mem::replace(&mut self.job, Watched::Unknown(None));
        if let Watched::Open(tail) = job {
            self.job = Watched::Unknown(Some(Moved { tail, is_end }));
        }
    }

    /// What is known of the output. What cannot be read of it is quarantined, and keeps nobody from seeing the end.
    async fn summary(&self) -> Result<OutputSummary, LogError> {
        match stream::summary(&self.log, self.id).await {
            Err(LogError::Corrupt(_)) => Ok(OutputSummary::default()),
            summary => summary,
        }
    }

    /// Reads the next page. It begins with what was handed out last, as long as that may have been lost: something else may be
    /// in its place by now, also if this waited for a server that came back.
    async fn read(&self) -> Result<Page, LogError> {
        let limit = u32::try_from(self.page).unwrap_or(1);
        let place = self.place.sequence;
        let is_checked = self.past == Past::MayChange && self.place.at_ms.is_some();
        match place.get().checked_sub(1) {
            Some(before) if is_checked => {
                let before = Sequence::from_u64(before);
                self.log.read(&self.output, before, limit + 1).await
            }
            _ => self.log.read(&self.output, place, limit).await,
        }
    }

    /// Takes a page. If events were dropped before it, it says up to where and takes nothing. So it does if the place is
    /// beyond the end, because the log has lost what was shown. If something else is there by now, the reader starts over.
    fn take(&mut self, mut page: Page) -> Option<Sequence> {
        let place = self.place;
        if page.last < place.sequence {
            return Some(page.last);
        }
        let start = Sequence::from_u64(page.first.get().saturating_sub(1));
        if page.first > place.sequence.next() || page.events.iter().any(|event| place.is_replaced_by(event)) {
            return Some(start);
        }
        if matches!(self.job, Watched::Ended(_)) {
            self.past = Past::Settled;
        }
        page.events.retain(|event| event.sequence > place.sequence);
        let bytes: usize = page.events.iter().map(|event| event.body.len()).sum();
        self.page = (EVENT_BYTES * page.events.len() / bytes.max(1)).clamp(1, PAGE_EVENTS);
        // These may be larger than those before. What is too much to hold is read again when its turn comes.
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

    /// The same. After an empty page, what comes is followed.
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

    /// Moves on to an event, and says what it is, if it says anything.
    fn hand_out(&mut self, event: &Event) -> Result<Option<OutputItem>, LogError> {
        self.place = event.into();
        stream::item(event)
    }
}
