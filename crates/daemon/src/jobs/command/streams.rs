//! The output streams of a command.

use jobs::{Output, OutputError};
use kernel::Scope;
use process::Outlet;
use protocol::JobChannel;
use tokio::io::AsyncReadExt;

/// How much to read at once: the capacity of a pipe.
const READ_BYTES: usize = 64 * 1024;
/// How much to read after the command and its process tree have ended. A pipe can be made to hold this much, so all
/// output of the command is within it. Anything beyond comes from an unrelated process, and is dropped.
const LAST_BYTES: usize = 1024 * 1024;

/// Where the output of a command goes.
pub(super) trait Sink: Sync {
    /// Takes some bytes, waiting while there is no room for them.
    fn take(&self, channel: JobChannel, bytes: &[u8])
    -> impl Future<Output = Result<(), OutputError>> + Send;
}

impl Sink for Output {
    async fn take(&self, channel: JobChannel, bytes: &[u8]) -> Result<(), OutputError> {
        self.write(channel, bytes).await
    }
}

/// Signals to the streams that a command ends.
#[derive(Debug)]
pub(super) struct Ending {
    /// Cancelled when all its processes have ended. Its output is in the streams by then.
    pub(super) gone: Scope,
    /// Cancelled some time later, to stop waiting.
    pub(super) over: Scope,
}

/// Reads one stream of a command to its end, or as far as the output is the command's own. If the sink refuses bytes,
/// the stream is closed, so that writers don't block on it.
pub(super) async fn carry(
    mut outlet: Outlet,
    channel: JobChannel,
    sink: &impl Sink,
    ending: &Ending,
) -> Result<(), OutputError> {
    let (mut buffer, mut last) = (vec![0; READ_BYTES], LAST_BYTES);
    loop {
        let read = tokio::select! {
            biased;
            read = outlet.read(&mut buffer) => read,
            _ = ending.over.wait() => return Ok(()),
        };
        let count = match read {
            Ok(count) if count > 0 => count,
            // A stream that can't be read any more has ended, too.
            Ok(_) | Err(_) => return Ok(()),
        };
        sink.take(channel, &buffer[..count]).await?;
        if ending.gone.is_cancelled() {
            match last.checked_sub(count) {
                Some(rest) => last = rest,
                None => return Ok(()),
            }
        }
    }
}
