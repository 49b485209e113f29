//! Looking at the file system. A disk or a network that does not answer holds up whoever asks about it, and nobody else.

use super::problem::Problem;

/// Does something that blocks, on a thread for such things.
///
/// *Cancel safety*: dropped half-way, it goes on, and what it says is lost.
pub(crate) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, Problem> {
    // It fails only if the work panicked, or the runtime ends.
    tokio::task::spawn_blocking(work).await.map_err(Problem::internal)
}
