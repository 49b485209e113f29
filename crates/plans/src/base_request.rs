//! Bases for plans that are opened at the same time.
//!
//! Taking a base scans every file of the workspace, and scans run one after the other. A waiting caller may use the
//! result of any scan that began after its request. So waiting callers share the next scan, and opening many plans at
//! once takes two scans instead of one for each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use protocol::WorkspaceId;
use tokio::sync::oneshot;

use crate::inner::PlansInner;
use crate::{PlanError, Taken};

/// The callers that wait for the next scan of a workspace. As long as there are any, a job for them is queued at its
/// worker.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Guards the waiting callers; they are only added and removed under it.
    by_workspace: Mutex<HashMap<WorkspaceId, Vec<oneshot::Sender<Taken>>>>,
}

/// Whether the caller has to start a scan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Turn {
    First,
    Joined,
}

impl Waiting {
    fn join(&self, workspace: WorkspaceId) -> (Turn, oneshot::Receiver<Taken>) {
        let (answer, answered) = oneshot::channel();
        let mut all = self.by_workspace.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = all.entry(workspace).or_default();
        waiting.push(answer);
        let turn = if waiting.len() == 1 {
            Turn::First
        } else {
            Turn::Joined
        };
        (turn, answered)
    }

    /// Takes all callers that are waiting so far. Later callers wait for the next scan.
    fn take(&self, workspace: WorkspaceId) -> Vec<oneshot::Sender<Taken>> {
        let mut all = self.by_workspace.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&workspace).unwrap_or_default()
    }
}

/// Takes a base of the workspace at some moment between the call and its answer.
///
/// *Cancel safety*: may be dropped; the scan is still made for the other callers.
pub(crate) async fn take_base(inner: &Arc<PlansInner>, workspace: WorkspaceId) -> Result<Taken, PlanError> {
    let (turn, answered) = inner.waiting.join(workspace);
    if turn == Turn::First {
        let own = Arc::clone(inner);
        inner.tasks.spawn("taking a base", async move {
            let waiting = Arc::clone(&own);
            let looked = own.at_workspace(workspace, move |queue| {
                Box::pin(async move {
                    let those = waiting.waiting.take(workspace);
                    let taken = queue.take_base().await?;
                    for answer in those {
                        // A caller that has left doesn't need it.
                        drop(answer.send(taken.clone()));
                    }
                    Ok(())
                })
            });
            if let Err(error) = looked.await {
                tracing::debug!(%error, "a base was not taken");
                // If the worker hasn't even started, they would wait forever.
                drop(own.waiting.take(workspace));
            }
        });
    }
    match answered.await {
        Ok(taken) => Ok(taken),
        // The scan failed. Each caller scans on its own and gets its own error.
        Err(_) => {
            inner
                .at_workspace(workspace, |queue| Box::pin(queue.take_base()))
                .await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_share_the_next_look_and_who_comes_later_does_not() {
        let (waiting, workspace) = (Waiting::default(), WorkspaceId::generate());
        let turns = [(); 3].map(|()| waiting.join(workspace).0);
        assert_eq!(turns, [Turn::First, Turn::Joined, Turn::Joined]);
        assert_eq!(waiting.join(WorkspaceId::generate()).0, Turn::First);
        assert_eq!(waiting.take(workspace).len(), 3);
        assert_eq!(waiting.join(workspace).0, Turn::First);
    }
}
