//! How a queue ends: nothing more goes in, and what is in it is done.

use kernel::Scope;
use tokio::sync::mpsc;

/// The next one in the queue. Once the scope is cancelled the queue takes no more, and `None` comes after the last.
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
