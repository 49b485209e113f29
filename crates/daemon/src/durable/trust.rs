//! The language server configurations in repositories that the user has trusted.
//!
//! Each has its own stream, named by the hash of its content, and never changes. It is on disk before it takes effect.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eventlog::{Commit, CommitError, Head, Log, LogError, NewEvent, StreamId, Version, Write};
use protocol::HomeId;
use serde_json::json;

const KIND: &str = "lsp-trust";
const TRUSTED: &str = "trusted";

/// The trusted configurations. Clones refer to the same set.
#[derive(Clone, Debug)]
pub(crate) struct TrustedConfigs {
    log: Log,
    home_id: HomeId,
    /// Guards the hashes.
    hashes: Arc<Mutex<BTreeSet<String>>>,
}

impl TrustedConfigs {
    /// Loads the configurations that were trusted before.
    pub(crate) async fn load(log: Log, home_id: HomeId) -> Result<Self, LogError> {
        let prefix = prefix(home_id);
        let mut hashes = BTreeSet::new();
        log.each_head(KIND, Some(TRUSTED), |head| {
            hashes.extend(head.stream.as_str().strip_prefix(&prefix).map(str::to_owned));
        })
        .await?;
        Ok(Self {
            log,
            home_id,
            hashes: Arc::new(Mutex::new(hashes)),
        })
    }

    /// Whether a configuration with exactly this content is trusted.
    pub(crate) fn contains(&self, hash: &str) -> bool {
        self.hashes().contains(hash)
    }

    /// Trusts the configuration with this hash, durably. *Cancel safety*: if the future is dropped, it isn't trusted until
    /// the daemon restarts, and then it may be.
    pub(crate) async fn add(&self, hash: &str, path: &str) -> Result<(), CommitError> {
        let body = json!({ "path": path });
        let write = Write {
            stream: StreamId::new(&format!("{}{hash}", prefix(self.home_id)))?,
            expected: Version::NONE,
            head: Some(Head::json(KIND, TRUSTED, &body)?),
            events: vec![NewEvent::json(TRUSTED, &body)?],
        };
        match self.log.commit(Commit::one(write)).await {
            // It is already trusted.
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        self.hashes().insert(hash.to_owned());
        Ok(())
    }

    fn hashes(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn prefix(home_id: HomeId) -> String {
    format!("{KIND}/{home_id}/")
}
