//! How many jobs run at once, as somebody has chosen it for this home. It is kept over restarts.

use eventlog::{
    BadName, Commit, CommitError, Head, Log, LogError, NewEvent, StoredHead, StreamId, Version, Write,
};
use jobs::Jobs;
use protocol::HomeId;
use serde::{Deserialize, Serialize};

const KIND: &str = "job-workers";
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

#[derive(Serialize, Deserialize)]
struct Choice {
    max_workers: usize,
}

impl Workers {
    pub(crate) fn new(log: Log, home_id: HomeId) -> Self {
        Self { log, home_id }
    }

    /// What was chosen, if anything was.
    pub(crate) async fn chosen(&self) -> Result<Option<usize>, LogError> {
        let Ok(stream) = self.stream() else {
            return Ok(None);
        };
        let stored = self.log.head(&stream).await?;
        let choice: Option<Choice> = stored.and_then(|stored| {
            self.log
                .readable(&stored, serde_json::from_slice(&stored.head.body))
        });
        Ok(choice.map(|choice| choice.max_workers))
    }

    /// Chooses, durably, and tells the service.
    ///
    /// *Cancel safety*: dropped half-way, the choice may count only from the next life on.
    pub(crate) async fn choose(&self, jobs: &Jobs, max_workers: usize) -> Result<(), CommitError> {
        let stream = self.stream()?;
        let mut expected = version(self.log.head(&stream).await?.as_ref());
        for _ in 0..TRIES {
            match self
                .log
                .commit(Commit::one(write(&stream, expected, max_workers)?))
                .await
            {
                Ok(_) => break,
                Err(CommitError::Conflict { actual, .. }) => expected = version(actual.as_deref()),
                Err(error) => return Err(error),
            }
        }
        jobs.set_max_workers(max_workers).await;
        Ok(())
    }

    fn stream(&self) -> Result<StreamId, BadName> {
        StreamId::new(&format!("{KIND}/{}", self.home_id))
    }
}

fn version(stored: Option<&StoredHead>) -> Version {
    stored.map_or(Version::NONE, |stored| stored.version)
}

fn write(stream: &StreamId, expected: Version, max_workers: usize) -> Result<Write, CommitError> {
    let choice = Choice { max_workers };
    Ok(Write {
        stream: stream.clone(),
        expected,
        head: Some(Head::json(KIND, CHOSEN, &choice)?),
        events: vec![NewEvent::json(CHOSEN, &choice)?],
    })
}
