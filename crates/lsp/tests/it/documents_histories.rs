//! Many callers at once, and any history: the server always ends up with what was wanted, and nothing stays open.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use kernel::{CancellationToken, Deadline, Generation, SystemClock};
use lsp::{
    ChangeSync, DocumentMessage, DocumentSettings, DocumentSync, Documents, Lease, LineIndex, Outbox,
    Outgoing, PositionEncoding, TextEdit, apply_edits,
};
use proptest::prelude::*;

use crate::documents::{FULL, path};

/// A server that believes what it is told, and complains of what the protocol forbids.
#[derive(Debug, Default)]
struct Believer {
    /// Guarded by nothing: one task feeds it.
    open: BTreeMap<String, (i32, String)>,
    highest: BTreeMap<String, i32>,
}

impl Believer {
    fn hear(&mut self, outgoing: &Outgoing) {
        let uri = outgoing.uri.to_string();
        if let Some(version) = outgoing.version() {
            let highest = self.highest.entry(uri.clone()).or_default();
            assert!(version > *highest, "{uri}: version {version} after {highest}");
            *highest = version;
        }
        match &outgoing.message {
            DocumentMessage::DidOpen { version, text, .. } => {
                let before = self.open.insert(uri, (*version, text.to_string()));
                assert_eq!(before, None, "opened twice");
            }
            DocumentMessage::DidChange { version, change, .. } => {
                let (known, text) = self.open.get_mut(&uri).expect("changed while closed");
                *known = *version;
                *text = match change.range {
                    None => change.text.clone(),
                    Some(range) => {
                        let edit = TextEdit {
                            range,
                            new_text: change.text.clone(),
                        };
                        apply_edits(&LineIndex::new(text.as_str()), &[edit], PositionEncoding::Utf16).unwrap()
                    }
                };
            }
            DocumentMessage::DidSave { .. } => assert!(self.open.contains_key(&uri), "saved while closed"),
            DocumentMessage::DidClose => assert!(self.open.remove(&uri).is_some(), "closed while closed"),
        }
    }
}

const INCREMENTAL: DocumentSync = DocumentSync {
    change: ChangeSync::Incremental,
    ..FULL
};

fn cold() -> DocumentSettings {
    DocumentSettings {
        warm: 0,
        ..DocumentSettings::default()
    }
}

#[derive(Clone, Debug)]
enum Act {
    Lease(usize, String),
    Sync(usize, String),
    Save(usize),
    Release(usize),
    Send,
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    let text = || "[ab\n\r😀]{0,6}";
    prop_oneof![
        (0..3usize, text()).prop_map(|(file, text)| Act::Lease(file, text)),
        (0..8usize, text()).prop_map(|(lease, text)| Act::Sync(lease, text)),
        (0..8usize).prop_map(Act::Save),
        (0..8usize).prop_map(Act::Release),
        Just(Act::Send),
        Just(Act::Restart),
    ]
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn send_all(outbox: &mut Outbox, server: &mut Believer) {
    let token = CancellationToken::new();
    token.cancel(kernel::Cause::new("test", "only what is there"));
    let scope = token.scope();
    while let Some(outgoing) = kernel::block_on(outbox.next(&scope)) {
        server.hear(&outgoing);
    }
}

proptest! {
    #[test]
    fn the_server_has_what_is_held_and_nothing_else(acts in prop::collection::vec(act(), 0..60), warm in 0..3usize) {
        let settings = DocumentSettings { warm, ..cold() };
        let documents = Documents::new(settings, SystemClock::shared());
        let mut generation = 1;
        let attach = |generation| {
            documents.attach(Generation::from_u64(generation), INCREMENTAL, PositionEncoding::Utf16).unwrap()
        };
        let mut outbox = attach(generation);
        let mut server = Believer::default();
        let mut leases: Vec<Lease> = Vec::new();
        let mut wanted: BTreeMap<String, String> = BTreeMap::new();
        for act in acts {
            match act {
                Act::Lease(file, text) => {
                    let path = path(NAMES[file]);
                    leases.push(documents.lease(&path, &"rust".into(), &text.as_str().into()).unwrap());
                    wanted.insert(format!("file://{}", path.display()), text);
                }
                Act::Sync(lease, text) => if let Some(lease) = leases.get(lease) {
                    lease.sync(&text.as_str().into()).unwrap();
                    wanted.insert(format!("file://{}", lease.path().display()), text);
                },
                Act::Save(lease) => if let Some(lease) = leases.get(lease) {
                    lease.saved();
                },
                Act::Release(lease) => if lease < leases.len() {
                    drop(leases.swap_remove(lease));
                },
                Act::Send => send_all(&mut outbox, &mut server),
                Act::Restart => {
                    generation += 1;
                    outbox = attach(generation);
                    server = Believer::default();
                }
            }
        }
        send_all(&mut outbox, &mut server);
        for lease in &leases {
            let uri = format!("file://{}", lease.path().display());
            prop_assert_eq!(server.open.get(&uri).map(|(_, text)| text), wanted.get(&uri));
        }
        prop_assert_eq!(documents.open(), server.open.len());
        prop_assert_eq!(documents.counts().leases, leases.len());
        prop_assert!(documents.counts().warm <= warm);
        drop(leases);
        for name in NAMES {
            documents.changed_on_disk(&path(name));
        }
        send_all(&mut outbox, &mut server);
        prop_assert_eq!(documents.open(), 0);
        prop_assert_eq!(server.open.len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_callers_at_once_leave_nothing_open() {
    const CALLERS: usize = 10;
    const ROUNDS: usize = 200;
    let documents = Documents::new(cold(), SystemClock::shared());
    let generation = Generation::from_u64(1);
    let mut outbox = documents
        .attach(generation, INCREMENTAL, PositionEncoding::Utf16)
        .unwrap();
    let token = CancellationToken::new();
    let server = Arc::new(Mutex::new(Believer::default()));
    let sender = {
        let (server, scope) = (Arc::clone(&server), token.scope());
        tokio::task::spawn(async move {
            while let Some(outgoing) = outbox.next(&scope).await {
                server.lock().unwrap().hear(&outgoing);
            }
            outbox
        })
    };
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (documents, server, scope) = (documents.clone(), Arc::clone(&server), token.scope());
            tokio::task::spawn(async move {
                let deadline = Deadline::after(&SystemClock::shared(), Duration::from_secs(60));
                for round in 0..ROUNDS {
                    let path = path(NAMES[(caller + round) % NAMES.len()]);
                    let text: Arc<str> = format!("{caller} {round}").into();
                    let lease = documents.lease(&path, &"rust".into(), &text).unwrap();
                    let (version, sent) = lease.sent(generation, &deadline, &scope).await.unwrap();
                    let uri = format!("file://{}", path.display());
                    let (known, text) = server.lock().unwrap().open[&uri].clone();
                    // Others change the same document meanwhile, so the server may know more; never less.
                    assert!(known >= version, "{known} {version}");
                    if known == version {
                        assert_eq!(text, **sent.text());
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    token.cancel(kernel::Cause::new("test", "all callers are done"));
    let mut outbox = sender.await.unwrap();
    send_all(&mut outbox, &mut server.lock().unwrap());
    assert_eq!(documents.open(), 0);
    assert_eq!(server.lock().unwrap().open.len(), 0);
}
