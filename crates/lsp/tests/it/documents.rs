//! The book of documents, step by step: what a server is told, and in which order.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kernel::{CancellationToken, Cause, Clock, Deadline, Generation, ManualClock, SystemClock};
use lsp::{
    ChangeSync, DocumentCounts, DocumentError, DocumentSettings, DocumentSync, Documents, Lease, OpenClose,
    Outbox, PositionEncoding, SaveSync, SentError,
};
use serde_json::{Value, json};

pub(crate) const FULL: DocumentSync = DocumentSync {
    open_close: OpenClose::Told,
    change: ChangeSync::Full,
    save: SaveSync::WithoutText,
};
const INCREMENTAL: DocumentSync = DocumentSync {
    change: ChangeSync::Incremental,
    ..FULL
};

/// A book, and what its server has heard.
struct Book {
    documents: Documents,
    clock: Arc<ManualClock>,
    outbox: Option<Outbox>,
    run: CancellationToken,
}

impl Book {
    fn new(settings: DocumentSettings) -> Self {
        let clock = ManualClock::new();
        Self {
            documents: Documents::new(settings, Arc::clone(&clock) as Arc<dyn Clock>),
            clock,
            outbox: None,
            run: CancellationToken::new(),
        }
    }

    fn attached(sync: DocumentSync, warm: usize) -> Self {
        let mut book = Self::new(DocumentSettings {
            warm,
            ..DocumentSettings::default()
        });
        book.attach(1, sync);
        book
    }

    fn attach(&mut self, generation: u64, sync: DocumentSync) {
        let generation = Generation::from_u64(generation);
        self.outbox = self.documents.attach(generation, sync, PositionEncoding::Utf16);
        assert!(self.outbox.is_some(), "{generation} was refused");
    }

    fn lease(&self, name: &str, text: &str) -> Lease {
        let path: Arc<Path> = path(name);
        self.documents.lease(&path, &"rust".into(), &text.into()).unwrap()
    }

    /// All messages that there are, as the server sees them.
    async fn heard(&mut self) -> Vec<Value> {
        // The scope of this run is cancelled, so that the outbox answers `None` where it would wait.
        self.run.cancel(Cause::new("test", "only what is there"));
        let scope = self.run.scope();
        let outbox = self.outbox.as_mut().unwrap();
        let mut heard = Vec::new();
        while let Some(message) = outbox.next(&scope).await {
            let name = message.method().strip_prefix("textDocument/").unwrap();
            let mut params = serde_json::to_value(&message).unwrap();
            // The file's name is enough, and the language is always the same.
            let document = params["textDocument"].as_object_mut().unwrap();
            let uri = document["uri"].as_str().unwrap().rsplit('/').next().unwrap();
            document["uri"] = json!(uri);
            document.remove("languageId");
            heard.push(json!({ name: params }));
        }
        heard
    }
}

pub(crate) fn path(name: &str) -> Arc<Path> {
    PathBuf::from("/project").join(name).into()
}

fn open(name: &str, version: i32, text: &str) -> Value {
    json!({ "didOpen": { "textDocument": { "uri": name, "version": version, "text": text } } })
}

fn changed(name: &str, version: i32, change: Value) -> Value {
    json!({ "didChange": { "textDocument": { "uri": name, "version": version }, "contentChanges": [change] } })
}

fn saved(name: &str) -> Value {
    json!({ "didSave": { "textDocument": { "uri": name } } })
}

fn closed(name: &str) -> Value {
    json!({ "didClose": { "textDocument": { "uri": name } } })
}

fn nothing() -> Vec<Value> {
    Vec::new()
}

#[tokio::test]
async fn the_first_lease_opens_and_the_last_one_closes() {
    let mut book = Book::attached(FULL, 0);
    let first = book.lease("a", "1");
    let second = book.lease("a", "1");
    assert_eq!(book.heard().await, [open("a", 1, "1")]);
    let counts = DocumentCounts {
        open: 1,
        held: 1,
        leases: 2,
        warm: 0,
    };
    assert_eq!(book.documents.counts(), counts);
    drop(first);
    assert_eq!(book.heard().await, nothing());
    drop(second);
    assert_eq!(book.heard().await, [closed("a")]);
    assert_eq!(book.documents.counts(), DocumentCounts::default());
}

#[tokio::test]
async fn what_was_never_sent_is_never_closed() {
    let mut book = Book::attached(FULL, 0);
    drop(book.lease("a", "1"));
    assert_eq!(book.heard().await, nothing());
    assert_eq!(book.documents.open(), 0);
}

#[tokio::test]
async fn changes_are_sent_as_the_server_wants_them() {
    let none = DocumentSync {
        change: ChangeSync::None,
        ..FULL
    };
    let untold = DocumentSync {
        open_close: OpenClose::Untold,
        ..none
    };
    let range = json!({ "start": { "line": 0, "character": 1 }, "end": { "line": 0, "character": 2 } });
    let incremental = json!({ "range": range, "text": "X" });
    let cases = [
        (
            FULL,
            vec![open("a", 1, "abc")],
            vec![changed("a", 2, json!({ "text": "aXc" }))],
        ),
        (
            INCREMENTAL,
            vec![open("a", 1, "abc")],
            vec![changed("a", 2, incremental)],
        ),
        (none, vec![open("a", 1, "abc")], vec![]),
        (untold, vec![], vec![]),
    ];
    for (sync, opened, changes) in cases {
        let mut book = Book::attached(sync, 0);
        let lease = book.lease("a", "abc");
        assert_eq!(book.heard().await, opened, "{sync:?}");
        lease.sync(&"abc".into()).unwrap();
        assert_eq!(book.heard().await, nothing(), "the same text again is no change");
        lease.sync(&"aXc".into()).unwrap();
        assert_eq!(book.heard().await, changes, "{sync:?}");
        let closing = if opened.is_empty() {
            nothing()
        } else {
            vec![closed("a")]
        };
        drop(lease);
        assert_eq!(book.heard().await, closing, "{sync:?}");
        assert_eq!(book.documents.open(), 0);
    }
}

#[tokio::test]
async fn changes_in_a_row_become_one_and_their_versions_count() {
    let mut book = Book::attached(FULL, 0);
    let lease = book.lease("a", "1");
    assert_eq!(book.heard().await, [open("a", 1, "1")]);
    for text in ["2", "3", "4"] {
        lease.sync(&text.into()).unwrap();
    }
    assert_eq!(book.heard().await, [changed("a", 4, json!({ "text": "4" }))]);
    // Back to what the server has is a new version all the same.
    lease.sync(&"5".into()).unwrap();
    lease.sync(&"4".into()).unwrap();
    assert_eq!(book.heard().await, [changed("a", 6, json!({ "text": "4" }))]);
}

#[tokio::test]
async fn documents_are_told_of_in_the_order_of_their_first_change() {
    let mut book = Book::attached(FULL, 0);
    let (b, a) = (book.lease("b", "1"), book.lease("a", "1"));
    assert_eq!(book.heard().await, [open("b", 1, "1"), open("a", 1, "1")]);
    a.sync(&"2".into()).unwrap();
    b.sync(&"2".into()).unwrap();
    a.sync(&"3".into()).unwrap();
    let change = |name, version, text| changed(name, version, json!({ "text": text }));
    assert_eq!(book.heard().await, [change("a", 3, "3"), change("b", 2, "2")]);
}

#[tokio::test]
async fn a_save_follows_its_change() {
    let with_text = DocumentSync {
        save: SaveSync::WithText,
        ..FULL
    };
    let without = DocumentSync {
        save: SaveSync::None,
        ..FULL
    };
    let text_saved = json!({ "didSave": { "textDocument": { "uri": "a" }, "text": "2" } });
    for (sync, save) in [
        (FULL, vec![saved("a")]),
        (with_text, vec![text_saved]),
        (without, vec![]),
    ] {
        let mut book = Book::attached(sync, 0);
        let lease = book.lease("a", "1");
        book.heard().await;
        lease.sync(&"2".into()).unwrap();
        lease.saved();
        let mut expected = vec![changed("a", 2, json!({ "text": "2" }))];
        expected.extend(save);
        assert_eq!(book.heard().await, expected, "{sync:?}");
        assert_eq!(book.heard().await, nothing());
    }
}

#[tokio::test]
async fn a_new_generation_is_told_everything_at_its_latest_version() {
    let mut book = Book::attached(FULL, 8);
    let (b, a) = (book.lease("b", "1"), book.lease("a", "1"));
    drop(book.lease("warm", "1"));
    book.heard().await;
    b.sync(&"2".into()).unwrap();
    book.heard().await;
    // Neither told before the crash nor while there is no server.
    a.sync(&"2".into()).unwrap();
    book.documents.detach(Generation::from_u64(1));
    assert_eq!(book.documents.open(), 0);
    a.sync(&"3".into()).unwrap();
    let c = book.lease("c", "new");
    drop(book.lease("gone", "1"));
    book.attach(2, FULL);
    // The warm one had version 1, and no path ever sees a version twice.
    assert_eq!(
        book.heard().await,
        [open("a", 3, "3"), open("b", 2, "2"), open("c", 2, "new")]
    );
    drop((a, b, c));
    assert_eq!(book.documents.counts().warm, 3);
}

#[tokio::test]
async fn an_older_generation_changes_nothing() {
    let mut book = Book::attached(FULL, 0);
    book.attach(3, FULL);
    let _lease = book.lease("a", "1");
    for old in [1, 2, 3] {
        let attached = book
            .documents
            .attach(Generation::from_u64(old), FULL, PositionEncoding::Utf8);
        assert!(attached.is_none(), "{old}");
    }
    book.documents.detach(Generation::from_u64(1));
    assert_eq!(book.heard().await, [open("a", 1, "1")]);
}

#[tokio::test]
async fn a_closed_document_never_gets_a_version_again() {
    let mut book = Book::attached(FULL, 0);
    let lease = book.lease("a", "1");
    lease.sync(&"2".into()).unwrap();
    book.heard().await;
    drop(lease);
    assert_eq!(book.heard().await, [closed("a")]);
    let lease = book.lease("a", "other");
    assert_eq!(book.heard().await, [open("a", 3, "other")]);
    // Taken up again before the server heard of the end: it goes on where it was.
    drop(lease);
    let _lease = book.lease("a", "another");
    assert_eq!(
        book.heard().await,
        [changed("a", 4, json!({ "text": "another" }))]
    );
}

#[tokio::test]
async fn the_coldest_documents_are_closed_first() {
    let mut book = Book::attached(FULL, 2);
    for name in ["a", "b", "a", "c"] {
        drop(book.lease(name, "1"));
        book.heard().await;
    }
    assert_eq!(book.documents.counts().warm, 2);
    let _a = book.lease("a", "1");
    assert_eq!(book.heard().await, nothing(), "it is still open");
    let _b = book.lease("b", "1");
    assert_eq!(
        book.heard().await,
        [open("b", 2, "1")],
        "it was the one used longest ago"
    );
}

#[tokio::test]
async fn warm_documents_are_closed_when_nobody_comes_back() {
    let mut book = Book::attached(FULL, 8);
    assert_eq!(book.documents.next_idle(), None);
    let kept = book.lease("kept", "1");
    drop(book.lease("a", "1"));
    book.heard().await;
    let five_minutes = Duration::from_secs(300);
    assert_eq!(book.documents.next_idle(), Some(book.clock.now() + five_minutes));
    book.clock.advance(five_minutes - Duration::from_millis(1));
    book.documents.close_idle();
    assert_eq!(book.heard().await, nothing());
    book.clock.advance(Duration::from_millis(1));
    book.documents.close_idle();
    assert_eq!(book.heard().await, [closed("a")]);
    assert_eq!(book.documents.next_idle(), None);
    drop(kept);
}

#[tokio::test]
async fn a_file_that_changed_on_disk_does_not_stay_warm() {
    let mut book = Book::attached(FULL, 8);
    let _held = book.lease("held", "1");
    drop(book.lease("warm", "1"));
    book.heard().await;
    for name in ["held", "warm", "unknown"] {
        book.documents.changed_on_disk(&path(name));
    }
    assert_eq!(book.heard().await, [closed("warm")]);
}

#[tokio::test]
async fn documents_have_limits() {
    let mut book = Book::new(DocumentSettings {
        max_bytes: 4,
        max_held: 1,
        ..DocumentSettings::default()
    });
    book.attach(1, FULL);
    let too_large = || DocumentError::TooLarge {
        path: path("a"),
        bytes: 5,
        limit: 4,
    };
    let lease = |name, text: &str| book.documents.lease(&path(name), &"rust".into(), &text.into());
    assert_eq!(lease("a", "12345").unwrap_err(), too_large());
    let first = lease("a", "1234").unwrap();
    assert_eq!(first.sync(&"12345".into()).unwrap_err(), too_large());
    let again = lease("a", "1234").unwrap();
    assert_eq!(lease("b", "1").unwrap_err(), DocumentError::TooMany { limit: 1 });
    drop((first, again));
    assert!(lease("b", "1").is_ok());
}

#[tokio::test]
async fn a_lease_knows_what_was_sent() {
    let mut book = Book::attached(FULL, 0);
    let generation = Generation::from_u64(1);
    let clock = SystemClock::shared();
    let scope = CancellationToken::new().scope();
    let patience = || Deadline::after(&clock, Duration::from_secs(30));
    let lease = book.lease("a", "1");
    // Nobody sends: the wait ends by its deadline or by its scope.
    let now = Deadline::after(&clock, Duration::ZERO);
    let waited = lease.sent(generation, &now, &scope).await;
    assert!(matches!(waited, Err(SentError::DeadlineExceeded)), "{waited:?}");
    let token = CancellationToken::new();
    let run = token.scope();
    token.cancel(Cause::new("test", "no longer"));
    let waited = lease.sent(generation, &patience(), &run).await;
    assert!(matches!(waited, Err(SentError::Cancelled { .. })), "{waited:?}");
    // A message that is on its way has not been sent.
    let mut outbox = book.outbox.take().unwrap();
    assert_eq!(outbox.next(&scope).await.unwrap().version(), Some(1));
    let now = Deadline::after(&clock, Duration::ZERO);
    let waited = lease.sent(generation, &now, &scope).await;
    assert!(matches!(waited, Err(SentError::DeadlineExceeded)), "{waited:?}");
    // Asking for the next one says that it has.
    let (deadline, scope) = (patience(), &scope);
    let sending = async {
        tokio::select! {
            message = outbox.next(scope) => panic!("{message:?}"),
            sent = lease.sent(generation, &deadline, scope) => sent,
        }
    };
    let (version, text) = sending.await.unwrap();
    assert_eq!((version, &**text.text()), (1, "1"));
    // The end of the generation ends the wait.
    lease.sync(&"2".into()).unwrap();
    let waiting = async {
        let wait = lease.sent(generation, &deadline, scope);
        let end = async { drop(outbox) };
        tokio::join!(wait, end).0
    };
    let waited = waiting.await;
    assert!(
        matches!(waited, Err(SentError::GenerationOver { current: None, .. })),
        "{waited:?}"
    );
}
