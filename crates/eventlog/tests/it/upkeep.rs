//! Sizes, integrity, and space given back.

use eventlog::{CHUNK_BYTES, Commit, Health, RetentionPolicy, Sizes, Version};

use crate::{
    engines::{Engine, on_every_engine},
    support::{contents, noise, put, read_blob, with_blobs, write},
};

on_every_engine!(
    sizes_are_counted,
    a_whole_log_has_no_problems,
    a_log_is_as_it_was_after_compaction
);

async fn sizes_are_counted(engine: Engine) {
    let empty = engine.log.sizes().await.unwrap();
    assert_eq!(
        (empty.streams, empty.events, empty.blobs, empty.blob_bytes),
        (0, 0, 0, 0)
    );
    let (_, info) = engine.log.put_blob(&noise(1000, 1)[..]).await.unwrap();
    let commit = Commit::all(vec![
        write("a", Version::NONE, "x", &["1", "2", "3"]),
        write("b", Version::NONE, "x", &[]),
    ]);
    engine.log.commit(commit).await.unwrap();
    let found = engine.other.sizes().await.unwrap();
    let expected = Sizes {
        streams: 2,
        events: 3,
        blobs: 1,
        blob_bytes: info.stored_bytes,
        ..found.clone()
    };
    assert_eq!(found, expected);
    assert!(found.total_bytes > 1000);
}

async fn a_whole_log_has_no_problems(engine: Engine) {
    assert_eq!(engine.log.check_integrity().await.unwrap(), Vec::<String>::new());
    let blob = put(&engine.log, &noise(2 * CHUNK_BYTES, 1)).await;
    let commit = Commit::one(with_blobs(write("a", Version::NONE, "x", &["1", "2"]), &[blob]));
    engine.log.commit(commit).await.unwrap();
    assert_eq!(engine.log.check_integrity().await.unwrap(), Vec::<String>::new());
    assert!(matches!(engine.log.health(), Health::Writable));
}

async fn a_log_is_as_it_was_after_compaction(engine: Engine) {
    let (dropped, kept) = (noise(8 * CHUNK_BYTES, 1), noise(2 * CHUNK_BYTES, 2));
    put(&engine.log, &dropped).await;
    let kept_id = put(&engine.log, &kept).await;
    let commit = Commit::one(with_blobs(
        write("a", Version::NONE, "x", &["first", "2"]),
        &[kept_id],
    ));
    engine.log.commit(commit).await.unwrap();
    engine.let_pins_expire();
    assert_eq!(engine.log.collect_blobs().await.unwrap().blobs, 1);
    let policy = RetentionPolicy {
        max_bytes_per_stream: Some(3),
        max_age: None,
    };
    engine.log.trim("job", policy).await.unwrap();
    let before = engine.log.sizes().await.unwrap();
    engine.log.compact().await.unwrap();
    let after = engine.log.sizes().await.unwrap();
    assert!(after.total_bytes <= before.total_bytes, "{before:?} {after:?}");
    assert_eq!(contents(&engine.log, "a").await, [(2, "2".to_owned())]);
    assert!(read_blob(&engine.log, kept_id).await.unwrap() == kept);
    assert_eq!(engine.log.check_integrity().await.unwrap(), Vec::<String>::new());
}
