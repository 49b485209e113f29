//! The lease of this worker: renewed while it has anything, and gone with everything that it had.

use std::time::Instant;

use eventlog::{Lease, LeaseError};
use kernel::Deadline;
use protocol::JobId;

use super::{Dispatcher, LEASE_LOST, PAUSE_AFTER_FAILURE, Phase, Renewal, Running};
use crate::{attempt::StopWhy, pools::ByPool, state::Change};

impl Dispatcher {
    /// Stops what runs under a lease that could not be renewed for so long that others may soon take over.
    pub(super) fn give_up_what_is_over(&mut self) {
        let now = self.now();
        if self.lease_over_at().is_some_and(|over_at| now >= over_at) {
            // Its answer would come too late.
            self.renewal = None;
            self.lease_lost();
        }
    }

    /// Renews the lease when it is time, and takes one when there is something to be claimed.
    pub(super) fn look_after_lease(&mut self) {
        if self.renewal.is_some() || self.pause.is_some() || (self.running.is_empty() && !self.wants_claims())
        {
            return;
        }
        let asked_at = self.parts.wall.clock().now();
        if let Some(wanted) = self.parts.identity.wanted(self.parts.lease, asked_at) {
            let answer = Box::pin(wanted.ask(self.parts.log.clone(), self.parts.lease));
            self.renewal = Some(Renewal { asked_at, answer });
        }
    }

    /// When the lease is over, if anything runs under it.
    pub(super) fn lease_over_at(&self) -> Option<Instant> {
        let over_at = self.parts.identity.over_at(self.parts.lease);
        over_at.filter(|_| !self.running.is_empty())
    }

    pub(super) fn leased(&mut self, answer: Result<Lease, LeaseError>) {
        let Some(renewal) = self.renewal.take() else {
            return;
        };
        match answer {
            Ok(lease) => self.parts.identity.granted(lease, renewal.asked_at),
            Err(LeaseError::Lost { .. } | LeaseError::Held { .. }) => self.lease_lost(),
            Err(error) => {
                tracing::warn!(%error, "the lease of this worker could not be renewed");
                self.pause = Some(Deadline::after(self.parts.wall.clock(), PAUSE_AFTER_FAILURE));
            }
        }
    }

    /// What this worker had is no longer its own: it stops it and writes nothing more about it.
    pub(super) fn lease_lost(&mut self) {
        tracing::warn!(
            attempts = self.running.len(),
            "this worker has lost its lease; its attempts are stopped"
        );
        self.parts.identity.lost();
        self.ahead = ByPool::default();
        let before = self.todo.len();
        self.todo
            .retain(|todo| !matches!(todo.change, Change::Finish { .. } | Change::Release { .. }));
        self.counts.fenced += (before - self.todo.len()) as u64;
        let is_over = |_: &JobId, running: &mut Running| {
            running.stop.now(StopWhy::LeaseLost);
            !matches!(running.phase, Phase::Executing { .. })
        };
        let over: Vec<Running> = self
            .running
            .extract_if(is_over)
            .map(|(_, running)| running)
            .collect();
        // Others find out in time. If there is nobody else, somebody has to say it.
        for Running { job, .. } in over {
            self.dead(job, LEASE_LOST.to_owned());
        }
    }
}
