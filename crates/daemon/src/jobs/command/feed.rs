//! The input of a command: submitted with it, or sent by its client while it runs. The client learns how much was read,
//! so it can leave the rest unread on its side.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{BlobError, BlobReader};
use kernel::{Clock, Deadline};
use process::{INLET_BYTES, Inlet, InletReader};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;

use crate::jobs::inputs::{CommandInput, Input, Taken};

/// How long a command waits for its client to connect. Clients connect at once; one that died before that never does.
const CLIENT_WITHIN: Duration = Duration::from_secs(10);

/// Where the input of a command comes from.
#[derive(Debug)]
pub(super) enum Content {
    Nothing,
    /// It was submitted with the command.
    Blob(Box<BlobReader>),
    /// A client sends it.
    Client(CommandInput),
}

/// What happened to the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fed {
    /// The command read all of it, or didn't want more.
    Whole,
    /// The client disconnected before the end.
    Cut,
}

/// Why a command couldn't be fed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FeedError {
    #[error(transparent)]
    Blob(#[from] BlobError),
    #[error("the pipe of its standard input cannot be used")]
    Pipe(#[from] io::Error),
}

/// Feeds a command its input, then closes it. A command may stop reading early.
pub(super) async fn feed(
    stdin: Option<Sender>,
    content: Content,
    clock: &Arc<dyn Clock>,
) -> Result<Fed, FeedError> {
    match (stdin, content) {
        (Some(stdin), Content::Blob(content)) => feed_blob(stdin, *content).await,
        (Some(stdin), Content::Client(input)) => {
            let inlet = Inlet::new(stdin)?;
            Feeding { inlet, input }.run(clock).await
        }
        (_, Content::Nothing) | (None, _) => Ok(Fed::Whole),
    }
}

async fn feed_blob(mut stdin: Sender, mut content: BlobReader) -> Result<Fed, FeedError> {
    while let Some(chunk) = content.next_chunk().await? {
        if stdin.write_all(&chunk).await.is_err() {
            break;
        }
    }
    Ok(Fed::Whole)
}

/// A command that is being fed by its client. Dropping this tells the client how much was read.
struct Feeding {
    inlet: Inlet,
    input: CommandInput,
}

impl Drop for Feeding {
    fn drop(&mut self) {
        self.input.taken.send_replace(Taken {
            bytes: self.inlet.read_bytes(),
            is_over: true,
        });
    }
}

impl Feeding {
    async fn run(mut self, clock: &Arc<dyn Clock>) -> Result<Fed, FeedError> {
        let mut client_within = Deadline::after(clock, CLIENT_WITHIN);
        loop {
            let piece = tokio::select! {
                biased;
                piece = self.input.pieces.recv() => piece,
                () = client_within.clone().passed() => None,
            };
            client_within = Deadline::never();
            match piece {
                Some(Input::Hello) => {}
                Some(Input::Data(bytes)) => {
                    for page in bytes.chunks(INLET_BYTES) {
                        if self.inlet.write(page).await? == InletReader::Gone {
                            return Ok(Fed::Whole);
                        }
                        self.input.taken.send_replace(Taken {
                            bytes: self.inlet.read_bytes(),
                            is_over: false,
                        });
                    }
                }
                Some(Input::End) => return Ok(Fed::Whole),
                None => return Ok(Fed::Cut),
            }
        }
    }
}
