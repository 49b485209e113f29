//! The user's choice of how many jobs run at once in this home. It survives restarts.

use std::sync::Arc;

use eventlog::{Change, CommitError, Entity, EntityRecord, Log, LogError, NewEvent, ReadError};
use jobs::Jobs;
use protocol::HomeId;
use serde::{Deserialize, Serialize};

const CHOSEN: &str = "chosen";
/// The largest number of concurrent jobs. Asking for more is a mistake.
pub(crate) const MOST_WORKERS: usize = 256;

/// How often to retry a write if another one happens at the same time. The last one wins, and there are never many.
const TRIES: usize = 16;

/// The choice, as stored in the log.
#[derive(Clone, Debug)]
pub(crate) struct Workers {
    log: Log,
    home_id: HomeId,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Choice {
    max_workers: usize,
}

impl EntityRecord for Choice {
    const KIND: &'static str = "job-workers";
    type Id = HomeId;
    type Event = NewEvent;

    fn status(&self) -> Arc<str> {
        CHOSEN.into()
    }
}

impl Workers {
    pub(crate) fn new(log: Log, home_id: HomeId) -> Self {
        Self { log, home_id }
    }

    /// The stored choice, if there is one and it can be read.
    pub(crate) async fn chosen(&self) -> Result<Option<usize>, LogError> {
        match Entity::<Choice>::read(&self.log, self.home_id).await {
            Ok(choice) => Ok(choice.map(|choice| choice.record.max_workers)),
            Err(ReadError::Unreadable(_)) => Ok(None),
            Err(ReadError::Log(error)) => Err(error),
        }
    }

    /// Stores a new choice durably, and tells the service.
    ///
    /// *Cancel safety*: if dropped, the choice may only take effect after the next restart.
    pub(crate) async fn choose(&self, jobs: &Jobs, max_workers: usize) -> Result<(), CommitError> {
        let choice = Choice { max_workers };
        let event = NewEvent::json(CHOSEN, &choice)?;
        let decide =
            |_: Option<&Entity<Choice>>| Ok::<_, CommitError>(Some(Change::new(choice).event(event.clone())));
        Entity::update(&self.log, self.home_id, TRIES, decide).await?;
        jobs.set_max_workers(max_workers).await;
        Ok(())
    }
}
