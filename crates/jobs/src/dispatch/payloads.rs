//! A cache of payloads, which saves a read when their jobs start.

use std::collections::HashMap;

use protocol::JobId;

use crate::attempt::Payload;

/// The size of the cache. What doesn't fit is read from the log when its job starts.
const ROOM_BYTES: usize = 32 * 1024 * 1024;
/// The approximate cost of an entry besides its bytes.
const ENTRY_BYTES: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Payloads {
    kept: HashMap<JobId, Payload>,
    bytes: usize,
}

impl Payloads {
    pub(super) fn keep(&mut self, id: JobId, payload: Payload) {
        let cost = cost(&payload);
        if self.bytes + cost > ROOM_BYTES {
            return;
        }
        self.bytes += cost;
        if let Some(old) = self.kept.insert(id, payload) {
            self.bytes -= self::cost(&old);
        }
    }

    /// A copy for an attempt. There may be further attempts.
    pub(super) fn get(&self, id: JobId) -> Option<Payload> {
        self.kept.get(&id).cloned()
    }

    pub(super) fn forget(&mut self, id: JobId) {
        if let Some(old) = self.kept.remove(&id) {
            self.bytes -= cost(&old);
        }
    }
}

fn cost(payload: &Payload) -> usize {
    ENTRY_BYTES + payload.bytes.len() + payload.blobs.len() * size_of::<eventlog::BlobId>()
}
