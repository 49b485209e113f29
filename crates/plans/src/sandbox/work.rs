//! Work that blocks, away from the tasks.

use std::io;

use super::contract::SandboxError;

/// Does something that blocks. *Cancel safety*: dropped half-way, it goes on to its end, and nobody hears of it.
pub(super) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, SandboxError> + Send + 'static,
) -> Result<R, SandboxError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(SandboxError::Io {
            what: "a step of the sandbox".to_owned(),
            source: io::Error::other(error),
        })
    })
}
