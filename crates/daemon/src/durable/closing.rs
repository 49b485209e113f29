//! Closes a queue: it takes no new entries, and the remaining ones are processed.

use kernel::Scope;
use tokio::sync::mpsc;

/// The next entry in the queue. Once the scope is cancelled, the queue takes no more entries, and this returns `None`
/// after the last.
pub(super) async fn next<T>(queue: &mut mpsc::Receiver<T>, closing: &Scope) -> Option<T> {
    if !queue.is_closed() {
        tokio::select! {
            biased;
            next = queue.recv() => return next,
            _ = closing.wait() => queue.close(),
        }
    }
    queue.recv().await
}
