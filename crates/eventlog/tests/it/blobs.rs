//! Blobs: in and out, kept and collected.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use eventlog::{BlobError, BlobId, CHUNK_BYTES, Collected, Commit, CommitError, Version, Write};
use tokio::io::{AsyncRead, ReadBuf};

use crate::{
    engines::{Engine, on_every_engine},
    support::{event, noise, put, read_blob, stream, with_blobs, write},
};

on_every_engine!(
    content_comes_back_as_it_was,
    several_contents_come_back_in_order,
    the_same_content_is_kept_once,
    a_new_blob_is_kept_until_its_pin_expires,
    a_head_keeps_its_blobs_until_the_next_head,
    an_event_keeps_its_blobs,
    the_blobs_of_a_head_come_back_in_order,
    a_commit_that_refers_to_no_blob_that_is_there_is_refused,
    a_broken_source_leaves_nothing_behind,
    a_collection_and_a_commit_agree,
    what_is_unpinned_goes_at_once_unless_somebody_refers_to_it,
);

async fn content_comes_back_as_it_was(engine: Engine) {
    for size in [
        0,
        1,
        1000,
        CHUNK_BYTES - 1,
        CHUNK_BYTES,
        CHUNK_BYTES + 1,
        5 * CHUNK_BYTES + 17,
    ] {
        for content in [noise(size, 7), vec![b'x'; size]] {
            let (id, info) = engine.log.put_blob(&content[..]).await.unwrap();
            assert_eq!(id.as_bytes(), blake3::hash(&content).as_bytes());
            assert_eq!(
                (info.size_bytes, size == 0),
                (size as u64, info.stored_bytes == 0)
            );
            let least = u32::try_from(size.div_ceil(CHUNK_BYTES)).unwrap();
            let most = if size < CHUNK_BYTES { least } else { 8 * least };
            assert!((least..=most).contains(&info.chunks), "{info:?}");
            if size > 100 && content[0] == content[1] {
                assert!(info.stored_bytes < info.size_bytes / 10, "{info:?}");
            }
            assert_eq!(engine.other.blob_info(id).await.unwrap(), Some(info));
            assert!(
                read_blob(&engine.other, id).await.unwrap() == content,
                "{size} bytes"
            );
        }
    }
}

async fn several_contents_come_back_in_order(engine: Engine) {
    let contents = [0, 1000, 3 * CHUNK_BYTES + 5, 20_000].map(|size| noise(size, 3));
    let mut ids = Vec::new();
    for content in &contents {
        ids.push(put(&engine.log, content).await);
    }
    let wanted = [2, 0, 1, 3, 1];
    let asked = wanted.map(|number: usize| ids[number]);
    let expected = wanted.map(|number| contents[number].clone());
    assert!(engine.other.read_blobs(&asked).await.unwrap() == expected);
    assert!(engine.other.read_blobs(&[]).await.unwrap().is_empty());
    let missing = BlobId::from_bytes([7; 32]);
    let refused = engine.other.read_blobs(&[ids[1], missing]).await;
    assert!(matches!(refused, Err(BlobError::Missing(id)) if id == missing));
}

async fn the_same_content_is_kept_once(engine: Engine) {
    let content = noise(2 * CHUNK_BYTES, 1);
    let first = engine.log.put_blob(&content[..]).await.unwrap();
    let second = engine.other.put_blob(&content[..]).await.unwrap();
    assert_eq!(first, second);
    let sizes = engine.log.sizes().await.unwrap();
    assert_eq!((sizes.blobs, sizes.blob_bytes), (1, first.1.stored_bytes));
    engine.log.collect_blobs().await.unwrap();
    assert!(read_blob(&engine.log, first.0).await.unwrap() == content);
}

async fn a_new_blob_is_kept_until_its_pin_expires(engine: Engine) {
    let (id, info) = engine.log.put_blob(&b"content"[..]).await.unwrap();
    assert_eq!(engine.log.collect_blobs().await.unwrap(), Collected::default());
    assert_eq!(read_blob(&engine.log, id).await.unwrap(), b"content");
    engine.let_pins_expire();
    // Putting it again keeps it again, though it was there already.
    put(&engine.other, b"content").await;
    engine.log.collect_blobs().await.unwrap();
    assert_eq!(read_blob(&engine.log, id).await.unwrap(), b"content");
    engine.let_pins_expire();
    let collected = engine.log.collect_blobs().await.unwrap();
    assert_eq!((collected.blobs, collected.stored_bytes), (1, info.stored_bytes));
    let gone = read_blob(&engine.log, id).await.unwrap_err();
    assert!(
        matches!(gone, BlobError::Missing(missing) if missing == id),
        "{gone}"
    );
}

async fn a_head_keeps_its_blobs_until_the_next_head(engine: Engine) {
    let large = noise(40 * CHUNK_BYTES, 3);
    let (one, two) = (put(&engine.log, &large).await, put(&engine.log, b"two").await);
    let first = with_blobs(write("s", Version::NONE, "x", &[]), &[one, two]);
    let first = engine.log.commit(Commit::one(first)).await.unwrap()[0];
    engine.let_pins_expire();
    assert_eq!(engine.log.collect_blobs().await.unwrap().blobs, 0);
    assert!(read_blob(&engine.log, one).await.unwrap() == large);

    // A commit that leaves the head as it is leaves its blobs as they are.
    let append = Write {
        head: None,
        ..write("s", first.version, "x", &["event"])
    };
    let second = engine.log.commit(Commit::one(append)).await.unwrap()[0];
    assert_eq!(engine.log.collect_blobs().await.unwrap().blobs, 0);

    let next = with_blobs(write("s", second.version, "y", &[]), &[two]);
    engine.log.commit(Commit::one(next)).await.unwrap();
    assert_eq!(engine.other.collect_blobs().await.unwrap().blobs, 1);
    assert!(matches!(
        read_blob(&engine.log, one).await,
        Err(BlobError::Missing(_))
    ));
    assert_eq!(read_blob(&engine.log, two).await.unwrap(), b"two");
}

async fn an_event_keeps_its_blobs(engine: Engine) {
    let id = put(&engine.log, b"output").await;
    let mut first = write("s", Version::NONE, "x", &["a", "b"]);
    first.events[1].blobs = vec![id];
    let first = engine.log.commit(Commit::one(first)).await.unwrap()[0];
    engine
        .log
        .commit(Commit::one(write("s", first.version, "y", &["c"])))
        .await
        .unwrap();
    engine.let_pins_expire();
    assert_eq!(engine.log.collect_blobs().await.unwrap().blobs, 0);
    assert_eq!(read_blob(&engine.log, id).await.unwrap(), b"output");
}

async fn the_blobs_of_a_head_come_back_in_order(engine: Engine) {
    let (one, two) = (put(&engine.log, b"one").await, put(&engine.log, b"two").await);
    let given = [two, one, two];
    let commit = Commit::one(with_blobs(write("s", Version::NONE, "x", &[]), &given));
    engine.log.commit(commit).await.unwrap();
    let found = engine.other.head(&stream("s")).await.unwrap().unwrap();
    assert_eq!(found.head.blobs, given);
    let stale = engine
        .log
        .commit(Commit::one(write("s", Version::NONE, "y", &[])))
        .await
        .unwrap_err();
    assert!(
        matches!(&stale, CommitError::Conflict { actual: Some(actual), .. } if **actual == found),
        "{stale}"
    );
}

async fn a_commit_that_refers_to_no_blob_that_is_there_is_refused(engine: Engine) {
    let there = put(&engine.log, b"there").await;
    let missing = BlobId::from_bytes(*blake3::hash(b"missing").as_bytes());
    let in_head = with_blobs(write("s", Version::NONE, "x", &["a"]), &[there, missing]);
    let mut in_event = write("s", Version::NONE, "x", &["a"]);
    let mut referring = event("b");
    referring.blobs = vec![missing];
    in_event.events.push(referring);
    for refused in [in_head, in_event] {
        let both = Commit::all(vec![write("other", Version::NONE, "x", &[]), refused]);
        let error = engine.log.commit(both).await.unwrap_err();
        assert!(
            matches!(error, CommitError::BlobMissing(id) if id == missing),
            "{error}"
        );
        assert_eq!(engine.log.head(&stream("s")).await.unwrap(), None);
        assert_eq!(engine.log.head(&stream("other")).await.unwrap(), None);
    }
}

/// Gives some bytes and then fails.
struct Broken(usize);

impl AsyncRead for Broken {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0 == 0 {
            return Poll::Ready(Err(io::Error::other("unplugged")));
        }
        let bytes = self.0.min(buffer.remaining());
        buffer.put_slice(&vec![b'x'; bytes]);
        self.0 -= bytes;
        Poll::Ready(Ok(()))
    }
}

async fn a_broken_source_leaves_nothing_behind(engine: Engine) {
    let error = engine
        .log
        .put_blob(Broken(2 * CHUNK_BYTES + 5))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, BlobError::Source(source) if source.to_string() == "unplugged"),
        "{error}"
    );
    assert_eq!(engine.log.sizes().await.unwrap().blobs, 0);
    assert_eq!(engine.log.collect_blobs().await.unwrap(), Collected::default());
    engine.let_pins_expire();
    let collected = engine.log.collect_blobs().await.unwrap();
    assert_eq!((collected.blobs, collected.uploads), (0, 1));
    assert!(collected.stored_bytes > 0);
}

/// A blob that is no longer pinned is collected while a commit refers to it: either the commit is refused, or the
/// blob is there afterwards.
async fn a_collection_and_a_commit_agree(engine: Engine) {
    let mut outcomes = [0, 0];
    for round in 0..40 {
        let content = format!("round {round}").into_bytes();
        let id = put(&engine.log, &content).await;
        engine.let_pins_expire();
        let name = format!("s{round}");
        let commit = Commit::one(with_blobs(write(&name, Version::NONE, "x", &[]), &[id]));
        let committing = engine.log.commit(commit);
        let collecting = engine.other.collect_blobs();
        let committed = if round % 2 == 0 {
            tokio::join!(committing, collecting).0
        } else {
            tokio::join!(collecting, committing).1
        };
        engine.log.collect_blobs().await.unwrap();
        match committed {
            Ok(_) => {
                outcomes[0] += 1;
                assert_eq!(read_blob(&engine.log, id).await.unwrap(), content);
            }
            Err(CommitError::BlobMissing(_)) => {
                outcomes[1] += 1;
                assert_eq!(engine.log.blob_info(id).await.unwrap(), None);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(outcomes.iter().sum::<i32>(), 40);
}

async fn what_is_unpinned_goes_at_once_unless_somebody_refers_to_it(engine: Engine) {
    let (kept, dropped) = (
        put(&engine.log, b"kept").await,
        put(&engine.log, b"dropped").await,
    );
    let commit = Commit::one(with_blobs(write("s", Version::NONE, "x", &[]), &[kept]));
    engine.log.commit(commit).await.unwrap();
    engine.log.unpin_blobs(&[kept, dropped]).await.unwrap();
    assert_eq!(engine.log.collect_blobs().await.unwrap().blobs, 1);
    assert_eq!(read_blob(&engine.log, kept).await.unwrap(), b"kept");
    assert_eq!(engine.log.blob_info(dropped).await.unwrap(), None);
    let late = Commit::one(with_blobs(write("late", Version::NONE, "x", &[]), &[dropped]));
    let refused = engine.log.commit(late).await;
    assert!(
        matches!(refused, Err(CommitError::BlobMissing(id)) if id == dropped),
        "{refused:?}"
    );
}
