//! The lease of this worker: renewed while it has jobs; when it is lost, so are they.

use std::time::Instant;

use eventlog::{Lease, LeaseError};
use kernel::Deadline;
use protocol::JobId;

use super::{Dispatcher, LEASE_LOST, PAUSE_AFTER_FAILURE, Phase, Renewal, Running};
use crate::{attempt::StopReason, pools::ByPool, state::Change};

impl Dispatcher {
    /// Stops attempts under a lease that couldn't be renewed for so long that others may soon take over.
    pub(super) fn stop_if_lease_expired(&mut self) {
        let now = self.now();
        if self.lease_over_at().is_some_and(|expires_at| now >= expires_at) {
            // Its answer would come too late.
            self.renewal = None;
            self.lease_lost();
        }
    }

    /// Renews the lease when it is time, and takes one when there is something to claim.
    pub(super) fn renew_lease(&mut self) {
        if self.renewal.is_some() || self.pause.is_some() || (self.running.is_empty() && !self.wants_claims())
        {
            return;
        }
        let asked_at = self.parts.wall.clock().now();
        if let Some(request) = self.parts.identity.lease_request(self.parts.lease, asked_at) {
            let answer = Box::pin(request.ask(self.parts.log.clone(), self.parts.lease));
            self.renewal = Some(Renewal { asked_at, answer });
        }
    }

    /// When the lease expires, if anything runs under it.
    pub(super) fn lease_over_at(&self) -> Option<Instant> {
        let expires_at = self.parts.identity.expires_at(self.parts.lease);
        expires_at.filter(|_| !self.running.is_empty())
    }

    pub(super) fn lease_answered(&mut self, answer: Result<Lease, LeaseError>) {
        let Some(renewal) = self.renewal.take() else {
            return;
        };
        match answer {
            Ok(lease) => self.parts.identity.granted(lease, renewal.asked_at),
            Err(LeaseError::Lost { .. } | LeaseError::Held { .. }) => self.lease_lost(),
            Err(error) => {
                tracing::warn!(%error, "could not renew the lease of this worker");
                self.pause = Some(Deadline::after(self.parts.wall.clock(), PAUSE_AFTER_FAILURE));
            }
        }
    }

    /// The jobs no longer belong to this worker: it stops them and stores nothing more about them.
    pub(super) fn lease_lost(&mut self) {
        tracing::warn!(
            attempts = self.running.len(),
            "this worker has lost its lease; stopping its attempts"
        );
        self.parts.identity.lost();
        self.ahead = ByPool::default();
        let before = self.todo.len();
        self.todo
            .retain(|todo| !matches!(todo.change, Change::Finish { .. } | Change::Release { .. }));
        self.counts.fenced += (before - self.todo.len()) as u64;
        let is_over = |_: &JobId, running: &mut Running| {
            running.stop.now(StopReason::LeaseLost);
            !matches!(running.phase, Phase::Executing { .. })
        };
        let over: Vec<Running> = self
            .running
            .extract_if(is_over)
            .map(|(_, running)| running)
            .collect();
        // Other daemons find out in time. Without others, this one has to interrupt them.
        for Running { job, .. } in over {
            self.interrupt_stale(job, LEASE_LOST.to_owned());
        }
    }
}
