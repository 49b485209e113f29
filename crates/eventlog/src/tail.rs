//! Follows a stream: the events that exist, then new ones, without a gap and without duplicates.

use std::{collections::VecDeque, sync::Arc};

use kernel::{Cause, Deadline, HeldSlot, Scope};

use crate::{
    batch::{Batch, EventBatch},
    bookmark::Bookmark,
    commit::Event,
    error::LogError,
    hub::{self, StreamProgress},
    names::{Incarnation, Sequence, StreamId},
    store::{Page, Store},
};

/// How many events a tail reads from the store at a time: enough to be fast, few enough to be cheap to hold.
const PAGE_EVENTS: u32 = 256;

/// For how many delivered events a tail remembers the time: more than a server loses in a crash.
const REMEMBERED_EVENTS: usize = 256;

/// What a tail returns.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TailItem {
    /// The next event.
    Event(Arc<Event>),
    /// The reader's position is no longer in the stream. Either the events up to here were dropped before they
    /// could be read; or the stream was removed, and this is the start; or a database server lost relaxed commits
    /// in a crash that readers had already seen, and what follows this position is something else or nothing yet.
    /// A reader whose bookmark names an event that was replaced starts over.
    ///
    /// The next item is the event after this position. After a removal it comes once there is a stream of that
    /// name again.
    Resync {
        /// The tail continues after this position.
        after: Sequence,
    },
}

/// What a tail returns to a reader that takes events in batches.
#[derive(Clone, Debug)]
pub enum TailBatch {
    /// The next events.
    Events(EventBatch),
    /// See [`TailItem::Resync`].
    Resync {
        /// The tail continues after this position.
        after: Sequence,
    },
}

/// A tail ended.
#[derive(Debug, thiserror::Error)]
pub enum TailEnd {
    /// The reader's scope was cancelled.
    #[error("the tail was cancelled by {0}")]
    Cancelled(Arc<Cause>),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Whether a tail has reached the end of what existed when it began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// The store may have events that aren't in the progress of the stream yet.
    Replaying,
    /// Every event after the tail's position shows in the progress, so the store needn't be asked first.
    Live,
}

/// A reader of one stream.
#[derive(Debug)]
pub struct Tail {
    store: Arc<dyn Store>,
    stream: StreamId,
    progress: HeldSlot<StreamId, StreamProgress>,
    /// The incarnation that the position belongs to, once it is known. The stream may not exist yet.
    incarnation: Incarnation,
    /// The last event that was delivered, or the position to start after.
    place: Sequence,
    /// The event that the reader expects at its starting position, until the store was asked.
    start: Option<Bookmark>,
    /// The number of rewinds that the position accounts for.
    rewinds: u64,
    /// The number of doubts that the tail has checked.
    doubts: u64,
    /// When the last events up to the position were written, if known. An event that replaced another one has a
    /// later time.
    handed_out: VecDeque<i64>,
    /// Events that were read but not delivered yet; at most a page.
    ready: VecDeque<EventBatch>,
    phase: Phase,
    scope: Scope,
}

impl Tail {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        stream: StreamId,
        progress: HeldSlot<StreamId, StreamProgress>,
        after: Bookmark,
        scope: Scope,
    ) -> Self {
        let seen = progress.read().state;
        Self {
            store,
            stream,
            progress,
            incarnation: Incarnation::NONE,
            place: after.sequence,
            start: after.at_ms.map(|_| after),
            rewinds: seen.rewinds,
            doubts: seen.doubts,
            handed_out: VecDeque::new(),
            ready: VecDeque::new(),
            phase: Phase::Replaying,
            scope,
        }
    }

    /// The next item; waits for one if necessary. *Cancel safety*: if the future is dropped, nothing is skipped.
    pub async fn next(&mut self) -> Result<TailItem, TailEnd> {
        let batch = match self.find_batch().await? {
            TailBatch::Events(batch) => batch,
            TailBatch::Resync { after } => return Ok(TailItem::Resync { after }),
        };
        let (event, rest) = batch.split_first();
        self.hand_out(std::slice::from_ref(&event));
        rest.into_iter().for_each(|rest| self.ready.push_front(rest));
        Ok(TailItem::Event(event))
    }

    /// Like [`next`](Self::next), but returns events in batches of bounded size.
    pub async fn next_batch(&mut self) -> Result<TailBatch, TailEnd> {
        let found = self.find_batch().await?;
        if let TailBatch::Events(batch) = &found {
            self.hand_out(batch.events());
        }
        Ok(found)
    }

    fn hand_out(&mut self, events: &[Arc<Event>]) {
        self.place = events.last().map_or(self.place, |event| event.sequence);
        let newest = &events[events.len().saturating_sub(REMEMBERED_EVENTS)..];
        let room = REMEMBERED_EVENTS - newest.len();
        self.handed_out
            .drain(..self.handed_out.len().saturating_sub(room));
        self.handed_out.extend(newest.iter().map(|event| event.at_ms));
    }

    /// Continues at another position than after the delivered events.
    fn go_to(&mut self, place: Sequence) {
        self.place = place;
        self.start = None;
        self.handed_out.clear();
    }

    /// Finds the next batch. It isn't delivered yet.
    async fn find_batch(&mut self) -> Result<TailBatch, TailEnd> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(TailBatch::Events(batch));
            }
            let seen = self.progress.read().state;
            if self.rewinds != seen.rewinds {
                if let Some(after) = self.rewound(&seen) {
                    return Ok(TailBatch::Resync { after });
                }
                continue;
            }
            if self.incarnation != Incarnation::NONE && self.incarnation < seen.incarnation {
                if let Some(after) = self.start_over() {
                    return Ok(TailBatch::Resync { after });
                }
                continue;
            }
            if self.doubts != seen.doubts {
                self.look_back(&seen).await?;
                continue;
            }
            let is_window_ours = self.start.is_none()
                && (self.incarnation == Incarnation::NONE || self.incarnation == seen.incarnation);
            if let Some(batch) = is_window_ours.then(|| seen.after(self.place)).flatten() {
                self.incarnation = batch.incarnation();
                self.ready.push_back(batch);
                continue;
            }
            if self.phase == Phase::Live && seen.last <= self.place {
                self.wait_for_change().await?;
                continue;
            }
            let page = self.read().await?;
            if let Some(after) = self.take(&seen, page) {
                return Ok(TailBatch::Resync { after });
            }
        }
    }

    /// Reads the next page, together with the event before it. That event may have been lost and replaced before
    /// the tail was told to look back.
    async fn read(&self) -> Result<Page, LogError> {
        let (after, limit) = match self.place.get().checked_sub(1) {
            Some(before) => (Sequence::from_u64(before), PAGE_EVENTS + 1),
            None => (self.place, PAGE_EVENTS),
        };
        self.store.read(&self.stream, after, limit).await
    }

    /// Checks whether the store still has the delivered events. If not, tells all tails up to where it has.
    async fn look_back(&mut self, seen: &StreamProgress) -> Result<(), TailEnd> {
        let count = self.handed_out.len();
        if count == 0 {
            self.doubts = seen.doubts;
            return Ok(());
        }
        let before = self.place.get().saturating_sub(count as u64);
        let limit = u32::try_from(count).unwrap_or(u32::MAX);
        let page = self
            .store
            .read(&self.stream, Sequence::from_u64(before), limit)
            .await?;
        if page.incarnation == self.incarnation {
            let written = |sequence: Sequence| {
                let index = usize::try_from(sequence.get().checked_sub(before + 1)?).ok()?;
                self.handed_out.get(index)
            };
            let is_other = |event: &&Event| written(event.sequence).is_some_and(|at| *at != event.at_ms);
            let other = page.events.iter().find(is_other).map(|event| event.sequence);
            let same = other.map(|other| Sequence::from_u64(other.get() - 1));
            if let Some(same) = same.or((page.last < self.place).then_some(page.last)) {
                hub::rewind(&self.progress, seen.place(), (page.incarnation, same));
                hub::hint(&self.progress, page.incarnation, page.last);
                return Ok(());
            }
        }
        self.doubts = seen.doubts;
        Ok(())
    }

    /// Processes a page that was read after the progress was `seen`.
    fn take(&mut self, seen: &StreamProgress, page: Page) -> Option<Sequence> {
        // The incarnation that the store reports matters to all tails, and they may not know it yet.
        if page.incarnation > seen.incarnation {
            hub::hint(&self.progress, page.incarnation, page.last);
        } else if page.incarnation == Incarnation::NONE && seen.last > Sequence::START {
            hub::hint(&self.progress, seen.incarnation.next(), Sequence::START);
        } else if page.incarnation != Incarnation::NONE && (page.incarnation, page.last) < seen.place() {
            hub::rewind(&self.progress, seen.place(), (page.incarnation, page.last));
            return None;
        }
        let is_gone = page.incarnation == Incarnation::NONE && self.place > Sequence::START;
        if is_gone || (self.incarnation != Incarnation::NONE && self.incarnation != page.incarnation) {
            return self.start_over();
        }
        self.incarnation = page.incarnation;
        if page.last < self.place {
            self.go_to(page.last);
            return Some(self.place);
        }
        if page.first > self.place.next() {
            self.go_to(Sequence::from_u64(page.first.get() - 1));
            return Some(self.place);
        }
        let mut events: Vec<_> = page.events.into_iter().map(Arc::new).collect();
        let known = events.extract_if(.., |event| event.sequence == self.place).last();
        let start = self.start.take();
        if let Some(known) = known {
            if start.is_some_and(|start| start.is_replaced_by(&known)) {
                // It is unknown how much of the stream the reader really has, so it starts over.
                self.go_to(Sequence::from_u64(page.first.get().saturating_sub(1)));
                return Some(self.place);
            }
            match self.handed_out.back() {
                Some(at_ms) if *at_ms != known.at_ms => {
                    // Looking back finds the last event that matches, and tells all tails.
                    self.doubts = seen.doubts.wrapping_sub(1);
                    return None;
                }
                Some(_) => {}
                None => self.handed_out.push_back(known.at_ms),
            }
        }
        if events.is_empty() {
            self.phase = Phase::Live;
        }
        let batches = Batch::split(self.incarnation, &events).into_iter();
        self.ready
            .extend(batches.filter_map(|batch| EventBatch::after(batch, self.place)));
        None
    }

    /// Handles a rewind of the store. A tail that has seen none of the lost events needn't resync, unless it
    /// missed more than one rewind: then nobody knows.
    fn rewound(&mut self, seen: &StreamProgress) -> Option<Sequence> {
        let is_first_missed = self.rewinds + 1 == seen.rewinds;
        let (incarnation, last) = seen.rewound_to;
        self.rewinds = seen.rewinds;
        if self.incarnation != Incarnation::NONE && self.incarnation != incarnation {
            return self.start_over();
        }
        if self.place <= last && is_first_missed {
            return None;
        }
        self.go_to(self.place.min(last));
        self.phase = Phase::Replaying;
        Some(self.place)
    }

    /// Starts over because the stream is gone. A reader that has seen nothing of it needn't resync.
    fn start_over(&mut self) -> Option<Sequence> {
        let has_seen = self.place > Sequence::START;
        self.go_to(Sequence::START);
        (self.incarnation, self.phase) = (Incarnation::NONE, Phase::Replaying);
        has_seen.then_some(self.place)
    }

    /// Waits until the stream is beyond the tail's position, is gone, or was rewound.
    async fn wait_for_change(&self) -> Result<(), TailEnd> {
        let (incarnation, place) = (self.incarnation, self.place);
        let (rewinds, doubts) = (self.rewinds, self.doubts);
        let moved = self.progress.wait_until(
            move |progress| {
                progress.last > place
                    || (incarnation != Incarnation::NONE && progress.incarnation > incarnation)
                    || progress.rewinds != rewinds
                    || progress.doubts != doubts
            },
            Deadline::never(),
            &self.scope,
        );
        match moved.await {
            Err(kernel::WaitError::Cancelled { cause, .. }) => Err(TailEnd::Cancelled(cause)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
