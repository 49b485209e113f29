//! The bytes of a command: what it says.

use jobs::{Output, OutputError};
use kernel::Scope;
use process::Outlet;
use protocol::JobChannel;
use tokio::io::AsyncReadExt;

/// How much is read at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// How much is read after the command and its tree have gone. A pipe can be made to hold this much, so whatever the
/// command has said is in it. More comes from somebody who has nothing to do with it, and is left.
const LAST_BYTES: usize = 1024 * 1024;

/// Where the output of a command goes.
pub(super) trait Sink: Sync {
    /// Takes some bytes, and waits while there is no room for them.
    fn take(&self, channel: JobChannel, bytes: &[u8])
    -> impl Future<Output = Result<(), OutputError>> + Send;
}

impl Sink for Output {
    async fn take(&self, channel: JobChannel, bytes: &[u8]) -> Result<(), OutputError> {
        self.write(channel, bytes).await
    }
}

/// How a command ends, as its streams are told.
#[derive(Debug)]
pub(super) struct Ending {
    /// Cancelled when everything of it has gone. What it has said is in its streams by then.
    pub(super) gone: Scope,
    /// Cancelled some time later. Nothing more is waited for.
    pub(super) over: Scope,
}

/// Carries one stream of a command to its end, or as far as it is the command's. If bytes are refused the stream is closed, so that nobody waits for them to be read.
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
            // A stream that cannot be read any more has ended too.
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
