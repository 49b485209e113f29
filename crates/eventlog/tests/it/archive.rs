//! Archives: everything there is, out of one log and into another, whatever their engines.

use std::{
    io::{self, Cursor, Read, Write as _},
    sync::Arc,
    time::Duration,
};

use eventlog::{
    CHUNK_BYTES, Commit, Contents, ExportError, ImportError, Log, RetentionPolicy, Sequence, TailItem,
    Version, export, import,
};
use kernel::CancellationToken;
use proptest::{prelude::*, test_runner::TestRunner};

use crate::{
    engines::{Engine, on_every_engine, sqlite},
    support::{contents, noise, put, read_blob, stream, with_blobs, write},
};

on_every_engine!(
    a_log_comes_back_from_its_archive_as_it_was,
    an_archive_goes_only_into_an_empty_log,
    an_archive_that_is_cut_short_or_damaged_leaves_the_log_empty,
    an_archive_that_contradicts_itself_is_refused,
    what_is_no_archive_is_refused_by_name,
    a_tail_that_waits_sees_what_is_imported,
    an_imported_log_goes_on,
);

/// Content of several chunks with a hole in it.
fn large() -> Vec<u8> {
    let mut large = noise(3 * CHUNK_BYTES + 5, 1);
    large[CHUNK_BYTES..2 * CHUNK_BYTES].fill(0);
    large
}

/// A log with something of everything in it.
async fn fill(log: &Log) {
    let large = put(log, &large()).await;
    let text = put(log, "text, größer als ASCII".as_bytes()).await;
    let empty = put(log, b"").await;
    put(log, b"nobody refers to this").await;
    let mut late = with_blobs(
        write("b/late", Version::NONE, "open", &["1", "2", "3"]),
        &[text, empty],
    );
    late.events[1].blobs = vec![large, text, large];
    late.events[2].body = Arc::from([0, 159, 146, 150]);
    let late = log.commit(Commit::one(late)).await.unwrap()[0];
    let more = vec![
        write("c", Version::NONE, "open", &[]),
        write("a", Version::NONE, "open", &["first", "second", "third"]),
    ];
    log.commit(Commit::all(more)).await.unwrap();
    let mut done = with_blobs(write("b/late", late.version, "done", &["4"]), &[empty]);
    done.head.as_mut().unwrap().kind = Arc::from("plan");
    log.commit(Commit::one(done)).await.unwrap();
    let keep_the_last = RetentionPolicy {
        max_bytes_per_stream: Some(5),
        max_age: None,
    };
    log.trim("job", keep_the_last).await.unwrap();
}

async fn archive_of(log: &Log) -> Vec<u8> {
    let (archive, contents) = export(log, Vec::new()).await.unwrap();
    let sizes = log.sizes().await.unwrap();
    let expected = Contents {
        streams: sizes.streams,
        events: sizes.events,
        blobs: sizes.blobs,
        left_out: Vec::new(),
    };
    assert_eq!(contents, expected);
    archive
}

/// An archive of a log that is filled as above.
async fn sample() -> Vec<u8> {
    let engine = sqlite();
    fill(&engine.log).await;
    archive_of(&engine.log).await
}

fn lines(archive: &[u8]) -> String {
    String::from_utf8(zstd::decode_all(archive).unwrap()).unwrap()
}

fn compressed(lines: &str) -> Vec<u8> {
    zstd::encode_all(lines.as_bytes(), 1).unwrap()
}

async fn refused(log: &Log, archive: Vec<u8>) -> ImportError {
    let error = import(log, Cursor::new(archive)).await.unwrap_err();
    let sizes = log.sizes().await.unwrap();
    assert_eq!(
        (sizes.streams, sizes.events, sizes.blobs),
        (0, 0, 0),
        "after {error}"
    );
    error
}

async fn a_log_comes_back_from_its_archive_as_it_was(engine: Engine) {
    let archive = sample().await;
    let imported = import(&engine.log, Cursor::new(archive.clone())).await.unwrap();
    let expected = Contents {
        streams: 3,
        events: 5,
        blobs: 4,
        left_out: Vec::new(),
    };
    assert_eq!(imported, expected);
    // Everything that an archive holds, in the same order: streams, bounds, times, heads, references, contents.
    assert_eq!(lines(&archive_of(&engine.other).await), lines(&archive));

    let id = eventlog::BlobId::of(&large());
    assert!(read_blob(&engine.log, id).await.unwrap() == large());
    assert_eq!(contents(&engine.log, "a").await, [(3, "third".to_owned())]);
    assert_eq!(engine.log.check_integrity().await.unwrap(), Vec::<String>::new());
    // What heads and events refer to is kept, the rest is not.
    engine.let_pins_expire();
    assert_eq!(engine.log.collect_blobs().await.unwrap().blobs, 1);
}

async fn an_archive_goes_only_into_an_empty_log(engine: Engine) {
    let archive = sample().await;
    let commit = Commit::one(write("mine", Version::NONE, "x", &["1"]));
    engine.log.commit(commit).await.unwrap();
    let error = import(&engine.log, Cursor::new(archive.clone()))
        .await
        .unwrap_err();
    assert!(matches!(error, ImportError::NotEmpty), "{error}");
    assert_eq!(engine.log.sizes().await.unwrap().streams, 1);
    let blob_only = sqlite();
    put(&blob_only.log, b"content").await;
    let error = import(&blob_only.log, Cursor::new(archive)).await.unwrap_err();
    assert!(matches!(error, ImportError::NotEmpty), "{error}");
}

async fn an_archive_that_is_cut_short_or_damaged_leaves_the_log_empty(engine: Engine) {
    let archive = sample().await;
    for part in 1..20 {
        let cut = archive[..archive.len() * part / 20].to_vec();
        let error = refused(&engine.log, cut).await;
        assert!(matches!(error, ImportError::CutShort), "part {part}: {error:?}");
    }
    for part in 1..20 {
        let mut flipped = archive.clone();
        flipped[archive.len() * part / 20] ^= 1;
        let error = refused(&engine.log, flipped).await;
        assert!(
            matches!(error, ImportError::Damaged { .. } | ImportError::NotAnArchive),
            "part {part}: {error:?}"
        );
    }
    // Whole lines are missing or changed, and the compression does not know.
    let all = lines(&archive);
    let count = all.lines().count();
    for left_out in 1..count {
        let rest: String = all
            .lines()
            .enumerate()
            .filter(|(index, _)| *index != left_out)
            .map(|(_, line)| format!("{line}\n"))
            .collect();
        let error = refused(&engine.log, compressed(&rest)).await;
        let is_last = left_out == count - 1;
        assert_eq!(
            matches!(error, ImportError::CutShort),
            is_last,
            "line {left_out}: {error:?}"
        );
    }
    for (from, to) in [
        ("größer", "kleiner"),
        ("\"open\"", "\"shut\""),
        ("\"at_ms\":", "\"at_ms\":1"),
        ("\"third\"", "\"first\""),
        ("\"last\":4", "\"last\":5"),
        ("\"blobs\":[]", "\"blobs\":[],\"extra\":1"),
    ] {
        let changed = all.replacen(from, to, 1);
        assert_ne!(changed, all, "{from} is in the archive");
        let error = refused(&engine.log, compressed(&changed)).await;
        assert!(matches!(error, ImportError::Damaged { .. }), "{from}: {error:?}");
    }
    // After all that, the log still takes the archive as it was.
    import(&engine.log, Cursor::new(archive)).await.unwrap();
}

/// The same lines, with an end that belongs to them: somebody has made an archive of their own.
fn sealed(lines: &[String]) -> Vec<u8> {
    let mut all: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (records, hash) = (lines.len() - 1, blake3::hash(all.as_bytes()));
    all += &format!("{{\"end\":{{\"records\":{records},\"blake3\":\"{hash}\"}}}}\n");
    compressed(&all)
}

async fn an_archive_that_contradicts_itself_is_refused(engine: Engine) {
    let header = "{\"header\":{\"format\":\"tidelock-archive\",\"version\":1}}".to_owned();
    let chunk = |text: &str| format!("{{\"chunk\":{{\"content\":{{\"text\":\"{text}\"}}}}}}");
    let blob = |id: &str, size: usize, chunks: u32| {
        format!("{{\"blob\":{{\"id\":\"{id}\",\"size_bytes\":{size},\"chunks\":{chunks}}}}}")
    };
    let stream = |id: &str, kind: &str, blobs: &str, first: u64, last: u64| {
        format!(
            "{{\"stream\":{{\"id\":\"{id}\",\"kind\":\"{kind}\",\"status\":\"open\",\"body\":{{\"text\":\"\"}},\
             \"blobs\":[{blobs}],\"first\":{first},\"last\":{last}}}}}"
        )
    };
    let event = |sequence: u64, body: &str| {
        format!(
            "{{\"event\":{{\"sequence\":{sequence},\"at_ms\":5,\"kind\":\"note\",\"body\":{{{body}}},\"blobs\":[]}}}}"
        )
    };
    let content = blake3::hash(b"content").to_string();
    let (whole, missing) = (blob(&content, 7, 1), format!("\"{}\"", blake3::hash(b"missing")));
    let good = "\"text\":\"body\"";
    let large = format!("\"text\":\"{}\"", "x".repeat(eventlog::BODY_LIMIT_BYTES + 1));
    for (what, lines) in [
        ("other content", vec![chunk("CONTENT"), whole.clone()]),
        ("no chunk", vec![whole.clone()]),
        (
            "a chunk too many",
            vec![chunk("content"), chunk("content"), whole.clone()],
        ),
        (
            "an empty chunk",
            vec![chunk("content"), chunk(""), blob(&content, 7, 2)],
        ),
        (
            "a large chunk",
            vec![chunk(&"x".repeat(CHUNK_BYTES + 1)), whole.clone()],
        ),
        ("another size", vec![chunk("content"), blob(&content, 8, 1)]),
        (
            "a blob twice",
            vec![chunk("content"), whole.clone(), chunk("content"), whole.clone()],
        ),
        ("chunks of nothing", vec![chunk("content")]),
        (
            "a blob after a stream",
            vec![stream("s", "job", "", 1, 0), chunk("content"), whole.clone()],
        ),
        (
            "a stream twice",
            vec![stream("s", "job", "", 1, 0), stream("s", "job", "", 1, 0)],
        ),
        ("a stream without a name", vec![stream("", "job", "", 1, 0)]),
        ("a stream without a kind", vec![stream("s", "", "", 1, 0)]),
        ("a stream from 0", vec![stream("s", "job", "", 0, 0)]),
        (
            "a stream that ends before it starts",
            vec![stream("s", "job", "", 5, 3)],
        ),
        ("a stream without end", vec![stream("s", "job", "", 1, u64::MAX)]),
        (
            "a reference to nothing",
            vec![stream("s", "job", "\"1234\"", 1, 0)],
        ),
        ("an event of no stream", vec![event(1, good)]),
        (
            "an event too few",
            vec![stream("s", "job", "", 1, 2), event(1, good)],
        ),
        (
            "an event too many",
            vec![stream("s", "job", "", 1, 1), event(1, good), event(2, good)],
        ),
        (
            "a gap",
            vec![stream("s", "job", "", 1, 2), event(1, good), event(3, good)],
        ),
        (
            "a large event",
            vec![stream("s", "job", "", 1, 1), event(1, &large)],
        ),
        (
            "bytes that are none",
            vec![stream("s", "job", "", 1, 1), event(1, "\"base64\":\"?\"")],
        ),
        ("a second header", vec![header.clone()]),
    ] {
        let lines: Vec<String> = std::iter::once(header.clone()).chain(lines).collect();
        let error = refused(&engine.log, sealed(&lines)).await;
        assert!(matches!(error, ImportError::Damaged { .. }), "{what}: {error:?}");
    }
    let referring = [header.clone(), stream("s", "job", &missing, 1, 0)];
    let error = refused(&engine.log, sealed(&referring)).await;
    assert!(matches!(error, ImportError::BlobMissing(_)), "{error:?}");
    assert!(matches!(engine.log.health(), eventlog::Health::Writable));

    let whole = [
        header,
        chunk("content"),
        whole,
        stream("s", "job", "", 3, 3),
        event(3, good),
    ];
    import(&engine.log, Cursor::new(sealed(&whole))).await.unwrap();
    assert_eq!(contents(&engine.log, "s").await, [(3, "body".to_owned())]);
}

async fn what_is_no_archive_is_refused_by_name(engine: Engine) {
    let header = |format: &str, version: u32| {
        compressed(&format!(
            "{{\"header\":{{\"format\":\"{format}\",\"version\":{version}}}}}\n"
        ))
    };
    let newer = refused(&engine.log, header("tidelock-archive", 3)).await;
    assert_eq!(
        newer.to_string(),
        "the archive has format 3, and this version knows formats up to 2"
    );
    for other in [
        b"plain text".to_vec(),
        compressed("plain text\n"),
        header("something-else", 1),
        compressed("{\"end\":{\"records\":0,\"blake3\":\"\"}}\n"),
        compressed(&"x".repeat(20 * 1024 * 1024)),
    ] {
        let error = refused(&engine.log, other).await;
        assert!(matches!(error, ImportError::NotAnArchive), "{error:?}");
    }
    for cut in [Vec::new(), compressed(""), header("tidelock-archive", 1)] {
        let error = refused(&engine.log, cut).await;
        assert!(matches!(error, ImportError::CutShort), "{error:?}");
    }
    let unreadable = import(&engine.log, Unreadable).await.unwrap_err();
    assert!(matches!(unreadable, ImportError::Source(_)), "{unreadable:?}");
}

struct Unreadable;

impl Read for Unreadable {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

async fn a_tail_that_waits_sees_what_is_imported(engine: Engine) {
    let token = CancellationToken::new();
    let mut tail = engine
        .other
        .tail(&stream("b/late"), Sequence::START, &token.scope());
    let reader = tokio::spawn(async move { tail.next().await.unwrap() });
    tokio::task::yield_now().await;
    import(&engine.log, Cursor::new(sample().await)).await.unwrap();
    let item = tokio::time::timeout(Duration::from_secs(20), reader)
        .await
        .unwrap()
        .unwrap();
    assert!(
        matches!(&item, TailItem::Event(event) if event.sequence.get() == 1),
        "{item:?}"
    );
}

async fn an_imported_log_goes_on(engine: Engine) {
    import(&engine.log, Cursor::new(sample().await)).await.unwrap();
    let found = engine.log.head(&stream("a")).await.unwrap().unwrap();
    let next = Commit::one(write("a", found.version, "next", &["fourth"]));
    let committed = engine.other.commit(next).await.unwrap()[0];
    assert!(committed.version > found.version);
    assert_eq!(
        contents(&engine.log, "a").await,
        [(3, "third".to_owned()), (4, "fourth".to_owned())]
    );
    assert_ne!(put(&engine.log, b"more").await, put(&engine.log, b"text").await);
}

/// A target that takes some bytes and then fails.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_target_that_fails_is_told_and_the_log_goes_on() {
    let engine = sqlite();
    fill(&engine.log).await;
    for bytes in [0, 1, 100_000] {
        let Err(error) = export(&engine.log, Full(bytes)).await else {
            panic!("{bytes} bytes were enough");
        };
        assert!(
            matches!(&error, ExportError::Target(source) if source.kind() == io::ErrorKind::StorageFull),
            "{error:?}"
        );
    }
    fill_more(&engine.log).await;
    archive_of(&engine.log).await;
}

async fn fill_more(log: &Log) {
    let commit = Commit::one(write("more", Version::NONE, "x", &["1"]));
    log.commit(commit).await.unwrap();
}

/// An archive is of one moment: what is committed together is in it together, and so is what that refers to.
#[tokio::test]
async fn an_archive_is_of_one_moment() {
    let engine = sqlite();
    let log = engine.log.clone();
    let token = CancellationToken::new();
    let scope = token.scope();
    let writer = tokio::spawn(async move {
        let (mut versions, mut round) = ([Version::NONE; 2], 0);
        while !scope.is_cancelled() {
            round += 1;
            let blob = put(&log, format!("round {round}").as_bytes()).await;
            let both = vec![
                with_blobs(write("one", versions[0], "x", &["event"]), &[blob]),
                write("two", versions[1], "x", &["event"]),
            ];
            let committed = log.commit(Commit::all(both)).await.unwrap();
            versions = [committed[0].version, committed[1].version];
        }
    });
    for _ in 0..20 {
        let copy = sqlite();
        import(&copy.log, Cursor::new(archive_of_moving(&engine.log).await))
            .await
            .unwrap();
        let (one, two) = (contents(&copy.log, "one").await, contents(&copy.log, "two").await);
        assert_eq!(one, two);
    }
    token.cancel(kernel::Cause::new("test", "enough"));
    writer.await.unwrap();
}

async fn archive_of_moving(log: &Log) -> Vec<u8> {
    export(log, Vec::new()).await.unwrap().0
}

/// Whatever is made of an archive, it is refused or taken whole, and never brings the log down.
#[test]
fn no_change_of_an_archive_harms_the_log() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let all = runtime.block_on(async { lines(&sample().await) });
    let engine = sqlite();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let change = (0..all.len(), any::<Vec<u8>>(), 0..40_usize);
    let ran = runner.run(&change, |(at, insert, remove)| {
        let mut bytes = all.clone().into_bytes();
        let end = (at + remove).min(bytes.len());
        bytes.splice(at..end, insert.iter().copied());
        prop_assume!(bytes != all.as_bytes());
        let mut archive = Vec::new();
        let mut encoder = zstd::Encoder::new(&mut archive, 1).unwrap();
        encoder.write_all(&bytes).unwrap();
        encoder.finish().unwrap();
        runtime.block_on(refused(&engine.log, archive));
        Ok(())
    });
    ran.unwrap();
    assert!(matches!(engine.log.health(), eventlog::Health::Writable));
}
