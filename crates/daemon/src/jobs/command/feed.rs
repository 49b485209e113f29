//! What a command reads: what was submitted with it, or what its client sends while it runs. The client is told how much was
//! read, and can leave the rest where it found it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{BlobError, BlobReader};
use kernel::{Clock, Deadline};
use process::{INLET_BYTES, Inlet, InletReader};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;

use crate::jobs::inputs::{CommandInput, Input, Taken};

/// How long a command waits for its client to come. It comes at once; one that died before that never does.
const CLIENT_WITHIN: Duration = Duration::from_secs(10);

/// Where the input of a command comes from.
#[derive(Debug)]
pub(super) enum Content {
    /// There is none.
    Nothing,
    /// It was submitted with the command.
    Blob(Box<BlobReader>),
    /// A client sends it.
    Client(CommandInput),
}

/// What became of the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fed {
    /// The command had all of it, or did not want more.
    Whole,
    /// Its client went away before the end.
    Cut,
}

/// Why a command could not be fed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FeedError {
    #[error(transparent)]
    Blob(#[from] BlobError),
    #[error("the pipe of its standard input cannot be used")]
    Pipe(#[from] io::Error),
}

/// Gives a command its input, and then the end of it. One that reads no more need not have it all.
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

/// A command that is being fed by its client. When this goes, the client is told how much was read.
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
