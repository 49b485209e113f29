//! The handle through which an attempt writes output.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use eventlog::{Lease, Log, LogError};
use kernel::{Clock, Scope};
use process::Tasks;
use protocol::{JobChannel, JobId, JobProgress};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::buffer::EVENT_BYTES;
use super::item::OutputSummary;
use super::stream;
use super::writer::{self, Message};

/// How much output of an attempt may wait for the log: as much as fits into one commit. When it is full, writers
/// wait, and so does the program, because its pipe isn't read in the meantime.
const QUEUE_BYTES: usize = 1024 * 1024;
/// How many pieces and progress messages may wait, however small they are. When it is full, writers wait.
const QUEUE_MESSAGES: usize = 1024;

/// Receives the output of an attempt. Clones refer to the same output.
///
/// Nothing is read, written or started before the first output: most small jobs have none.
#[derive(Clone, Debug)]
pub struct Output {
    shared: Arc<OutputShared>,
}

#[derive(Clone, Debug)]
pub(crate) struct OutputOptions {
    /// Stores the output.
    pub(crate) log: Log,
    /// The lease of the worker, if it needs one.
    pub(crate) lease: Option<Lease>,
    /// Cancelled when the lease is lost. Until then, the writer waits for the log during an outage.
    pub(crate) lease_scope: Scope,
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    /// How much output of the job is kept.
    pub(crate) limit_bytes: u64,
    /// Runs the writer's task.
    pub(crate) tasks: Tasks,
    /// The time source.
    pub(crate) clock: Arc<dyn Clock>,
}

/// Why output wasn't accepted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OutputError {
    /// The attempt is no longer the current one, or its worker has lost its lease.
    #[error("another worker has this job now")]
    Fenced,
    /// The attempt has ended.
    #[error("the attempt has ended and accepts no more output")]
    Finished,
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

#[derive(Debug)]
struct OutputShared {
    options: OutputOptions,
    /// Guards that there is at most one writer.
    stage: Mutex<OutputStage>,
    /// Why the writer failed.
    fault: Arc<OnceLock<OutputError>>,
}

#[derive(Debug)]
enum OutputStage {
    /// There was no output yet.
    Silent,
    /// The writer has the other end of this queue.
    Speaking(Queue),
    /// Finished; the writer may still be running.
    Finished,
}

#[derive(Clone, Debug)]
struct Queue {
    messages: mpsc::Sender<Message>,
    /// The free bytes; closed when the writer is gone.
    room: Arc<Semaphore>,
}

impl Output {
    pub(crate) fn new(options: OutputOptions) -> Self {
        let shared = OutputShared {
            options,
            stage: Mutex::new(OutputStage::Silent),
            fault: Arc::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Writes the next bytes of a channel, and returns when they are in the queue to the log; the order of a
    /// channel is kept. Progress lines are recognized and removed. If the log fails later, the next call returns
    /// the error.
    ///
    /// *Cancel safety*: if the future is dropped, some of the first bytes may have been accepted.
    pub async fn write(&self, channel: JobChannel, bytes: &[u8]) -> Result<(), OutputError> {
        for piece in bytes.chunks(EVENT_BYTES) {
            let queue = self.shared.queue()?;
            // A piece is no larger than an event, which is far below the size of the queue.
            let size = u32::try_from(piece.len()).unwrap_or(u32::MAX);
            let room = Arc::clone(&queue.room).acquire_many_owned(size).await;
            let room = room.map_err(|_| self.shared.refused())?;
            let bytes = piece.to_vec();
            let sent = queue.messages.send(Message::Piece { channel, bytes, room });
            sent.await.map_err(|_| self.shared.refused())?;
        }
        Ok(())
    }

    /// Reports progress. Frequent reports are thinned out, but the latest one is never omitted.
    ///
    /// *Cancel safety*: if the future is dropped, the progress may or may not have been reported.
    pub async fn progress(&self, progress: JobProgress) -> Result<(), OutputError> {
        let queue = self.shared.queue()?;
        let sent = queue.messages.send(Message::Progress(progress));
        sent.await.map_err(|_| self.shared.refused())
    }

    /// Writes out all output, and the end of what exceeded the limit. Nothing is accepted from then on.
    ///
    /// When this returns, everyone sees later durable commits after the output.
    ///
    /// *Cancel safety*: if the future is dropped, nothing more is accepted, and the output is still written.
    pub(crate) async fn finish(&self) -> Result<OutputSummary, OutputError> {
        match self.shared.close() {
            OutputStage::Speaking(queue) => {
                let (reply, answer) = oneshot::channel();
                let sent = queue.messages.send(Message::Finish { reply });
                sent.await.map_err(|_| self.shared.refused())?;
                answer.await.unwrap_or_else(|_| Err(self.shared.refused()))
            }
            OutputStage::Silent if self.shared.options.attempt > 1 => {
                let options = &self.shared.options;
                Ok(stream::summary(&options.log, options.job).await?)
            }
            OutputStage::Silent => Ok(OutputSummary::default()),
            OutputStage::Finished => Err(self.shared.refused()),
        }
    }
}

impl OutputShared {
    /// The queue to the writer, which is started with the first output.
    fn queue(&self) -> Result<Queue, OutputError> {
        let mut stage = self.stage();
        match &*stage {
            OutputStage::Speaking(queue) => Ok(queue.clone()),
            OutputStage::Finished => {
                drop(stage);
                Err(self.refused())
            }
            OutputStage::Silent => {
                let (messages, received) = mpsc::channel(QUEUE_MESSAGES);
                let room = Arc::new(Semaphore::new(QUEUE_BYTES));
                let queue = Queue { messages, room };
                *stage = OutputStage::Speaking(queue.clone());
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

    /// Refuses all output from now on.
    fn close(&self) -> OutputStage {
        std::mem::replace(&mut *self.stage(), OutputStage::Finished)
    }

    /// Why nothing is accepted anymore.
    fn refused(&self) -> OutputError {
        self.fault.get().cloned().unwrap_or(OutputError::Finished)
    }

    fn stage(&self) -> MutexGuard<'_, OutputStage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
