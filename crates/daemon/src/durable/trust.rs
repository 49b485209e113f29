//! Which configurations of language servers in repositories the user has trusted.
//!
//! Each is a stream of its own, named by the hash of what was looked at, and never changes again: to trust the same
//! thing twice is to trust it. What is trusted is on disk before it counts.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eventlog::{Commit, CommitError, Head, Log, LogError, NewEvent, StreamId, Version, Write};
use protocol::HomeId;
use serde_json::json;

const KIND: &str = "lsp-trust";
const TRUSTED: &str = "trusted";

/// What is trusted. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct TrustedConfigs {
    log: Log,
    home_id: HomeId,
    /// Guards the hashes.
    hashes: Arc<Mutex<BTreeSet<String>>>,
}

impl TrustedConfigs {
    /// Reads what was trusted in earlier lives.
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

    /// Whether exactly this was trusted.
    pub(crate) fn contains(&self, hash: &str) -> bool {
        self.hashes().contains(hash)
    }

    /// Trusts what has this hash, durably. *Cancel safety*: dropped half-way, it may or may not be trusted from the next
    /// life on, and is not in this one.
    pub(crate) async fn add(&self, hash: &str, path: &str) -> Result<(), CommitError> {
        let body = json!({ "path": path });
        let write = Write {
            stream: StreamId::new(&format!("{}{hash}", prefix(self.home_id)))?,
            expected: Version::NONE,
            head: Some(Head::json(KIND, TRUSTED, &body)?),
            events: vec![NewEvent::json(TRUSTED, &body)?],
        };
        match self.log.commit(Commit::one(write)).await {
            // It is trusted already.
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
