//! Heads of one kind, page by page.

use std::sync::Arc;

use eventlog::{HeadsOrder, HeadsQuery, Log, LogError, StoredHead, StreamId};

/// How many heads are held in memory at a time.
const PAGE_HEADS: u32 = 256;

/// Gives every head of a kind (and status) to somebody, in the order of their streams.
pub(super) async fn each_head(
    log: &Log,
    kind: &str,
    status: Option<&str>,
    mut look: impl FnMut(StoredHead),
) -> Result<(), LogError> {
    let mut after: Option<StreamId> = None;
    loop {
        let query = HeadsQuery {
            kind: Arc::from(kind),
            status: status.map(Arc::from),
            order: HeadsOrder::OldestFirst,
            after: after.take(),
            limit: PAGE_HEADS,
        };
        let page = log.heads(query).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(last.stream.clone());
        page.into_iter().for_each(&mut look);
    }
}
