//! The handle by which an attempt says something.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use eventlog::{Lease, Log, LogError};
use kernel::{Clock, Scope};
use process::Tasks;
use protocol::{JobChannel, JobId, JobProgress};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::{
    book::EVENT_BYTES,
    item::OutputSummary,
    stream,
    writer::{self, Message},
};

/// How much output of an attempt may wait for the log: as much as goes into one commit. Whoever writes more waits,
/// and so does the program whose pipe is not read meanwhile.
const QUEUE_BYTES: usize = 1024 * 1024;
/// How many pieces and words of progress may wait, however small they are. Whoever says more waits.
const QUEUE_MESSAGES: usize = 1024;

/// Where the output of an attempt goes. Clones are the same place.
///
/// Nothing is read, written or started before something is said: most small jobs say nothing.
#[derive(Clone, Debug)]
pub struct Output {
    shared: Arc<Shared>,
}

/// What an output needs.
#[derive(Clone, Debug)]
pub(crate) struct OutputOptions {
    /// Where it is kept.
    pub(crate) log: Log,
    /// The lease of the worker, if it needs one.
    pub(crate) lease: Option<Lease>,
    /// Cancelled when that is lost. Until then an outage of the log is waited for.
    pub(crate) lease_scope: Scope,
    /// Whose output it is.
    pub(crate) job: JobId,
    /// Which attempt of the job says it.
    pub(crate) attempt: u32,
    /// How much is kept of the output of the job.
    pub(crate) limit_bytes: u64,
    /// Where the task runs that writes it.
    pub(crate) tasks: Tasks,
    /// The time.
    pub(crate) clock: Arc<dyn Clock>,
}

/// A piece of output was not taken.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OutputError {
    /// The attempt is no longer the current one, or its worker has lost its lease.
    #[error("another worker has this job now")]
    Fenced,
    /// The attempt has ended.
    #[error("the attempt has ended, and says no more")]
    Finished,
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

#[derive(Debug)]
struct Shared {
    options: OutputOptions,
    /// Guards whether there is a writer, so that there is one at most.
    stage: Mutex<Stage>,
    /// Why the writer gave up.
    fault: Arc<OnceLock<OutputError>>,
}

#[derive(Debug)]
enum Stage {
    /// Nothing was said yet.
    Silent,
    /// The writer has the other end.
    Speaking(Queue),
    /// It is finished; the writer may still be at work.
    Finished,
}

/// The way to the writer.
#[derive(Clone, Debug)]
struct Queue {
    messages: mpsc::Sender<Message>,
    /// The bytes that are free; closed when the writer has gone.
    room: Arc<Semaphore>,
}

impl Output {
    pub(crate) fn new(options: OutputOptions) -> Self {
        let shared = Shared {
            options,
            stage: Mutex::new(Stage::Silent),
            fault: Arc::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Takes the next bytes of a channel, and returns when there is room for them in the queue to the log; the order
    /// of a channel is kept. Lines that speak of progress are found and taken out. If the log fails later, the next
    /// call says so.
    ///
    /// *Cancel safety*: dropped half-way, some of the first bytes may have been taken.
    pub async fn write(&self, channel: JobChannel, bytes: &[u8]) -> Result<(), OutputError> {
        for piece in bytes.chunks(EVENT_BYTES) {
            let queue = self.shared.queue()?;
            // A piece is no larger than an event, which is far less than there is room for.
            let size = u32::try_from(piece.len()).unwrap_or(u32::MAX);
            let room = Arc::clone(&queue.room).acquire_many_owned(size).await;
            let room = room.map_err(|_| self.shared.refused())?;
            let bytes = piece.to_vec();
            let sent = queue.messages.send(Message::Piece { channel, bytes, room });
            sent.await.map_err(|_| self.shared.refused())?;
        }
        Ok(())
    }

    /// Says how far the job is. What is said too often is left out; the latest never is.
    ///
    /// *Cancel safety*: dropped half-way, it may or may not have been said.
    pub async fn progress(&self, progress: JobProgress) -> Result<(), OutputError> {
        let queue = self.shared.queue()?;
        let sent = queue.messages.send(Message::Progress(progress));
        sent.await.map_err(|_| self.shared.refused())
    }

    /// Writes out what was said, and the end of what was too long to be kept. From then on nothing is taken.
    ///
    /// When this returns, a durable commit that is made later comes after the output for everybody.
    ///
    /// *Cancel safety*: dropped half-way, nothing more is taken, and what was said is still written.
    pub(crate) async fn finish(&self) -> Result<OutputSummary, OutputError> {
        match self.shared.close() {
            Stage::Speaking(queue) => {
                let (reply, answer) = oneshot::channel();
                let sent = queue.messages.send(Message::Finish { reply });
                sent.await.map_err(|_| self.shared.refused())?;
                answer.await.unwrap_or_else(|_| Err(self.shared.refused()))
            }
            Stage::Silent if self.shared.options.attempt > 1 => {
                let options = &self.shared.options;
                Ok(stream::summary(&options.log, options.job).await?)
            }
            Stage::Silent => Ok(OutputSummary::default()),
            Stage::Finished => Err(self.shared.refused()),
        }
    }
}

impl Shared {
    /// The way to the writer, which is started if this is the first word.
    fn queue(&self) -> Result<Queue, OutputError> {
        let mut stage = self.stage();
        match &*stage {
            Stage::Speaking(queue) => Ok(queue.clone()),
            Stage::Finished => {
                drop(stage);
                Err(self.refused())
            }
            Stage::Silent => {
                let (messages, received) = mpsc::channel(QUEUE_MESSAGES);
                let room = Arc::new(Semaphore::new(QUEUE_BYTES));
                let queue = Queue { messages, room };
                *stage = Stage::Speaking(queue.clone());
                drop(stage);
                let options = self.options.clone();
                let task = writer::run(
                    options,
                    received,
                    Arc::clone(&queue.room),
                    Arc::clone(&self.fault),
                );
                self.options.tasks.spawn("job-output", task);
                Ok(queue)
            }
        }
    }

    /// Lets nobody say anything from now on.
    fn close(&self) -> Stage {
        std::mem::replace(&mut *self.stage(), Stage::Finished)
    }

    /// Why nothing is taken any more.
    fn refused(&self) -> OutputError {
        self.fault.get().cloned().unwrap_or(OutputError::Finished)
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
