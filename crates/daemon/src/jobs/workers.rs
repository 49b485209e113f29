//! How many jobs run at once, as somebody has chosen it for this home. It is kept over restarts.

use std::sync::Arc;

use eventlog::{Change, CommitError, Entity, EntityRecord, Log, LogError, NewEvent, ReadError};
use jobs::Jobs;
use protocol::HomeId;
use serde::{Deserialize, Serialize};

const CHOSEN: &str = "chosen";
/// How many jobs may run at once at most. More than this is a mistake of whoever asks for it.
pub(crate) const MOST_WORKERS: usize = 256;

/// How often a choice is written again because somebody else chose at the same moment. The last one counts, and there
/// are never many.
const TRIES: usize = 16;

/// The choice, in the log.
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

    /// What was chosen, if anything was and it can be read.
    pub(crate) async fn chosen(&self) -> Result<Option<usize>, LogError> {
        match Entity::<Choice>::read(&self.log, self.home_id).await {
            Ok(choice) => Ok(choice.map(|choice| choice.record.max_workers)),
            Err(ReadError::Unreadable(_)) => Ok(None),
            Err(ReadError::Log(error)) => Err(error),
        }
    }

    /// Chooses, durably, and tells the service.
    ///
    /// *Cancel safety*: dropped half-way, the choice may count only from the next life on.
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
