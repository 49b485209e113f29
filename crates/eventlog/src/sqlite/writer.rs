//! The one thread that writes.
//!
//! It takes all requests that have queued up while it was busy, applies them in one transaction, and writes that
//! to disk once (group commit). Its guarantees:
//!
//! 1. A durable commit is answered after its transaction is on disk, whatever the answer is. So nobody learns of
//!    a state that a crash could undo.
//! 2. A relaxed commit is answered when it is applied, and its transaction is on disk within [`FLUSH_WITHIN`].
//! 3. The hub is told about what is on disk, and about nothing else, before the commit is answered.
//! 4. When the engine fails, the open transaction is rolled back as a whole, everyone in it is told, and the log
//!    refuses writes until one succeeds again.

use std::{mem, path::PathBuf, task::Poll, time::Duration};

use kernel::{Deadline, Slot, block_on};
use tokio::sync::mpsc;

use super::{
    removal,
    request::{Failure, Reply, Request},
    reserve, restore, retention, upkeep,
    writer_state::WriterState,
};
use crate::{
    blob::BlobError,
    commit::Durability::{self, Durable, Relaxed},
    error::LogError,
    hub::Hub,
    record::{Record, RestoreError},
    store::Health,
};

/// A relaxed commit is on disk after this time.
const FLUSH_WITHIN: Duration = Duration::from_millis(20);
/// How many requests go into one transaction: enough to share the cost of the disk, few enough that the first
/// doesn't wait long for the last.
const BATCH_REQUESTS: usize = 256;

/// After how many transactions the writer checks the length of the write-ahead log.
const LOOK_AT_WAL_EVERY: u32 = 256;

pub(super) struct Writer {
    path: PathBuf,
    state: WriterState,
    requests: mpsc::Receiver<Request>,
    hub: Hub,
    health: Slot<Health>,
    open: Option<Open>,
    /// How many transactions there were since the last check of the write-ahead log.
    transactions: u32,
    /// Whether it was already logged that the write-ahead log is gone.
    wal_loss_logged: bool,
}

/// What the thread does next.
enum Next {
    Request(Request),
    Flush,
    /// All handles to the log are gone.
    End,
}

/// The open transaction, and the answers to send when it is on disk.
struct Open {
    flush_by: Deadline,
    is_durable: bool,
    answers: Vec<Answer>,
}

/// An answer that waits for the disk.
type Answer = Box<dyn FnOnce(Result<(), LogError>) + Send>;

impl Writer {
    pub(super) fn new(
        path: PathBuf,
        state: WriterState,
        requests: mpsc::Receiver<Request>,
        (hub, health): (Hub, Slot<Health>),
    ) -> Self {
        reserve::allocate_ahead(&path);
        Self {
            path,
            state,
            requests,
            hub,
            health,
            open: None,
            transactions: 0,
            wal_loss_logged: false,
        }
    }

    /// Runs until the last handle to the log is gone.
    pub(super) fn run(mut self) {
        loop {
            match self.next() {
                Next::Request(first) => self.take_all(first),
                Next::Flush => {}
                Next::End => break,
            }
            let is_due = self
                .open
                .as_ref()
                .is_some_and(|open| open.is_durable || open.flush_by.has_passed());
            if is_due {
                self.flush();
            }
        }
        self.flush();
    }

    /// Waits for a request, or for the time to flush.
    fn next(&mut self) -> Next {
        let flush_by = self
            .open
            .as_ref()
            .map_or(Deadline::never(), |open| open.flush_by.clone());
        let requests = &mut self.requests;
        block_on(async {
            let mut passed = std::pin::pin!(flush_by.passed());
            std::future::poll_fn(|context| {
                if let Poll::Ready(request) = requests.poll_recv(context) {
                    return Poll::Ready(request.map_or(Next::End, Next::Request));
                }
                passed.as_mut().poll(context).map(|()| Next::Flush)
            })
            .await
        })
    }

    /// Takes a request, the ones queued up behind it, and those that join the queue meanwhile. Callers that were
    /// answered last come back while the first of them are being served, and so all of them share one flush.
    fn take_all(&mut self, first: Request) {
        self.take(first);
        for _ in 1..BATCH_REQUESTS {
            let Ok(request) = self.requests.try_recv() else {
                break;
            };
            self.take(request);
        }
    }

    fn take(&mut self, request: Request) {
        match request {
            Request::Commit { commit, reply } => {
                self.perform(commit.durability, reply, |state| state.commit(&commit));
            }
            Request::Lease {
                key,
                owner,
                ttl,
                reply,
            } => {
                // The counter is on disk before the token is used, so that no later process assigns it again.
                self.perform(Durable, reply, |state| state.lease(key, owner, ttl));
            }
            Request::Renew { lease, ttl, reply } => {
                answer(reply, self.state.leases.renew(&lease, ttl, self.state.now()));
            }
            Request::Release { lease, reply } => {
                answer(reply, self.state.leases.release(&lease, self.state.now()));
            }
            Request::BeginUpload { reply } => self.perform(Relaxed, reply, |state| {
                let now = state.now();
                state.blobs.begin(&state.connection, now)
            }),
            Request::PutChunk {
                upload,
                number,
                compressed,
                reply,
            } => self.perform_with_space(reply, |state| {
                let now = state.now();
                state
                    .blobs
                    .put_chunk(&state.connection, upload, number, &compressed, now)
            }),
            Request::FinishUpload {
                upload,
                id,
                info,
                reply,
            } => self.perform(Durable, reply, |state| {
                let now = state.now();
                state.blobs.finish(&state.connection, upload, id, info, now)
            }),
            Request::UnpinBlobs { ids, reply } => self.perform(Relaxed, reply, |state| {
                state.blobs.unpin(&ids);
                Ok(())
            }),
            Request::MarkBlobs { after, reply } => self.perform(Durable, reply, |state| {
                let now = state.now();
                state.blobs.mark(&state.connection, after, now)
            }),
            Request::FreeBlobs { reply } => self.perform(Durable, reply, |state| {
                let now = state.now();
                state.blobs.free(&state.connection, now)
            }),
            Request::Trim { cut, reply } => {
                self.perform(Durable, reply, |state| retention::trim(&state.connection, &cut));
            }
            Request::DropEvents {
                stream,
                up_to,
                seen,
                reply,
            } => {
                self.perform(Durable, reply, |state| state.drop_events(&stream, up_to, seen));
            }
            Request::Remove { streams, reply } => {
                self.perform(Durable, reply, |state| state.remove(&streams));
            }
            Request::Sweep { reply } => {
                self.perform(Relaxed, reply, |state| removal::sweep(&state.connection));
            }
            Request::Vacuum { reply } => {
                self.perform(Durable, reply, |state| upkeep::vacuum(&state.connection));
            }
            Request::Checkpoint { reply } => {
                self.flush();
                let truncated = upkeep::truncate_wal(&self.state.connection);
                // The blocks allocated ahead went with the rest.
                reserve::allocate_ahead(&self.path);
                answer(reply, truncated);
            }
            Request::Restore { records, reply } => self.restore(records, reply),
            #[cfg(test)]
            Request::LimitPages { pages, reply } => {
                let sql = format!("PRAGMA max_page_count = {pages}");
                let limited = self.state.connection.query_row(&sql, [], |_| Ok(()));
                answer(reply, limited.map_err(LogError::from));
            }
        }
    }

    /// Runs an operation in the open transaction, and answers at once or when it is on disk.
    fn perform<T: Send + 'static, E: Failure>(
        &mut self,
        durability: Durability,
        reply: Reply<T, E>,
        work: impl FnOnce(&mut WriterState) -> Result<T, E>,
    ) {
        if let Err(error) = self.begin() {
            return answer(reply, Err(error.into()));
        }
        let done = work(&mut self.state);
        if let Some(error) = done.as_ref().err().and_then(E::of_engine).cloned() {
            self.roll_back(&error);
            return answer(reply, done);
        }
        match durability {
            Relaxed => answer(reply, done),
            Durable => self.when_on_disk(Box::new(move |flushed| {
                answer(reply, flushed.map_err(E::from).and(done));
            })),
        }
    }

    /// Stores a piece of content, if there is space. Otherwise nothing was begun, and the transaction continues
    /// without it.
    fn perform_with_space(
        &mut self,
        reply: Reply<(), BlobError>,
        work: impl FnOnce(&mut WriterState) -> Result<(), BlobError>,
    ) {
        match reserve::check_content_space(&self.path) {
            Ok(()) => self.perform(Relaxed, reply, work),
            Err(full) => answer(reply, Err(full.into())),
        }
    }

    /// Fills the log from records, in a transaction of its own, while everyone else waits.
    fn restore(&mut self, records: mpsc::Receiver<Record>, reply: Reply<(), RestoreError>) {
        self.flush();
        if let Err(error) = self.begin() {
            return answer(reply, Err(error.into()));
        }
        match restore::restore(&mut self.state, records) {
            Ok(streams) => {
                let hub = self.hub.clone();
                self.when_on_disk(Box::new(move |flushed| {
                    if flushed.is_ok() {
                        hub.publish_restored(&streams);
                    }
                    answer(reply, flushed.map_err(RestoreError::from));
                }));
                self.flush();
            }
            Err(RestoreError::Log(error)) => {
                self.roll_back(&error);
                answer(reply, Err(error.into()));
            }
            Err(refused) => {
                self.open = None;
                let rolled_back = self.state.roll_back();
                tracing::warn!(%refused, rolled_back, "restoring the log failed");
                answer(reply, Err(refused));
            }
        }
    }

    fn begin(&mut self) -> Result<(), LogError> {
        if self.open.is_none() {
            self.state
                .connection
                .execute_batch("BEGIN IMMEDIATE")
                .map_err(|error| self.refuse(error.into()))?;
            self.open = Some(Open {
                flush_by: Deadline::after(&self.state.clock, FLUSH_WITHIN),
                is_durable: false,
                answers: Vec::new(),
            });
        }
        Ok(())
    }

    fn when_on_disk(&mut self, answer: Answer) {
        if let Some(open) = &mut self.open {
            open.is_durable = true;
            open.answers.push(answer);
        }
    }

    /// Commits the open transaction and answers everyone in it.
    fn flush(&mut self) {
        if self.open.is_none() {
            return;
        }
        let changes = match self.state.write_out() {
            Ok(changes) => changes,
            Err(error) => return self.roll_back(&error.into()),
        };
        // This comes before anyone is answered: what they are told must not be lost.
        self.watch_wal();
        self.set_health(Health::Writable);
        self.hub.publish_changes(&changes);
        let answers = self.open.take().into_iter().flat_map(|open| open.answers);
        answers.for_each(|answer| answer(Ok(())));
        self.transactions += 1;
        if self.transactions >= LOOK_AT_WAL_EVERY {
            self.transactions = 0;
            if let Err(error) = upkeep::keep_wal_short(&self.state.connection) {
                tracing::warn!(%error, "the write-ahead log could not be shortened");
            }
            reserve::allocate_ahead(&self.path);
        }
    }

    /// If somebody has removed the write-ahead log, its content would be lost with this process. So it is copied
    /// into the file at once.
    fn watch_wal(&mut self) {
        if upkeep::has_wal(&self.state.connection) {
            return;
        }
        if !self.wal_loss_logged {
            self.wal_loss_logged = true;
            tracing::error!(
                "the write-ahead log was removed while the daemon is running; restart the daemon"
            );
        }
        if let Err(error) = upkeep::truncate_wal(&self.state.connection) {
            tracing::warn!(%error, "the write-ahead log could not be copied into the file");
        }
    }

    /// Rolls the open transaction back after a failure, and tells everyone in it.
    fn roll_back(&mut self, error: &LogError) {
        let rolled_back = self.state.roll_back();
        let open = mem::take(&mut self.open);
        tracing::error!(%error, rolled_back, "the log could not be written");
        self.refuse(error.clone());
        for answer in open.into_iter().flat_map(|open| open.answers) {
            answer(Err(error.clone()));
        }
    }

    fn refuse(&self, reason: LogError) -> LogError {
        self.set_health(Health::Refusing {
            reason: reason.clone(),
        });
        reason
    }

    fn set_health(&self, health: Health) {
        let seen = self.health.read();
        let is_news = match (&*seen.state, &health) {
            (Health::Refusing { reason: known }, Health::Refusing { reason }) => {
                mem::discriminant(known) != mem::discriminant(reason)
            }
            (known, new) => mem::discriminant(known) != mem::discriminant(new),
        };
        if is_news {
            let moved = self.health.transition(seen.generation, health);
            assert!(moved.is_ok(), "only this thread writes the health");
        }
    }
}

/// Answers, unless the caller has gone away.
fn answer<T, E>(reply: Reply<T, E>, value: Result<T, E>) {
    drop(reply.send(value));
}
