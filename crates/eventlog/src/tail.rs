//! A stream as it grows: replay, then live, without a gap and without a repeat.

use std::{collections::VecDeque, sync::Arc};

use kernel::{Cause, Deadline, Held, Scope};

use crate::{
    commit::Event,
    error::LogError,
    hub::Progress,
    names::{Sequence, StreamId},
    store::Store,
};

/// How many events a tail reads from the store at a time: enough to be fast, few enough to be cheap to hold.
const PAGE_EVENTS: u32 = 256;

/// What a tail yields.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TailItem {
    /// The next event.
    Event(Arc<Event>),
    /// The events up to here were dropped before they could be read. The next item is the event after it.
    Resync {
        /// The tail goes on after this place.
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

/// Whether a tail has reached the end of what was there when it began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// The store may have events that the progress of the stream does not speak of.
    Replaying,
    /// Whatever comes after the tail's place moves the progress, so there is no need to ask the store before.
    Live,
}

/// A reader of one stream.
#[derive(Debug)]
pub struct Tail {
    store: Arc<dyn Store>,
    stream: StreamId,
    progress: Held<StreamId, Progress>,
    /// The last event that was handed out, or the place it was to start after.
    place: Sequence,
    /// Events that are read and not handed out yet; at most a page or a window of them.
    ready: VecDeque<Arc<Event>>,
    phase: Phase,
    scope: Scope,
}

impl Tail {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        stream: StreamId,
        progress: Held<StreamId, Progress>,
        after: Sequence,
        scope: Scope,
    ) -> Self {
        Self {
            store,
            stream,
            progress,
            place: after,
            ready: VecDeque::new(),
            phase: Phase::Replaying,
            scope,
        }
    }

    /// The next item; waits for one if need be. *Cancel safety*: dropped half-way, nothing is skipped.
    pub async fn next(&mut self) -> Result<TailItem, TailEnd> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.place = event.sequence;
                return Ok(TailItem::Event(event));
            }
            let seen = self.progress.read().state;
            if let Some(events) = seen.after(self.place).filter(|events| !events.is_empty()) {
                self.ready.extend(events);
                continue;
            }
            if self.phase == Phase::Live && seen.last <= self.place {
                self.moved().await?;
                continue;
            }
            let page = self.store.read(&self.stream, self.place, PAGE_EVENTS).await?;
            if page.first > self.place.next() {
                self.place = Sequence::from_u64(page.first.get() - 1);
                return Ok(TailItem::Resync { after: self.place });
            }
            if page.events.is_empty() {
                self.phase = Phase::Live;
                self.moved().await?;
            }
            self.ready.extend(page.events.into_iter().map(Arc::new));
        }
    }

    /// Waits until the stream is beyond the tail's place.
    async fn moved(&self) -> Result<(), TailEnd> {
        let place = self.place;
        let moved = self.progress.wait_until(
            move |progress| progress.last > place,
            Deadline::never(),
            &self.scope,
        );
        match moved.await {
            Err(kernel::WaitError::Cancelled { cause, .. }) => Err(TailEnd::Cancelled(cause)),
            _ => Ok(()),
        }
    }
}
