//! The book's decisions: the target state of each document, what the server knows, and what to send next.
//!
//! Pure: time comes in as a parameter, and nothing is sent.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use kernel::Generation;

use super::{
    document::{Attached, Document, Version},
    message::Outgoing,
    sync::{DocumentSync, SaveSync},
};
use crate::text::{LineIndex, PositionEncoding};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DocumentSettings {
    /// How many documents without a lease stay open, the most recently used. 64 is about what people have open in an
    /// editor, and little memory for a server.
    pub warm: usize,
    pub warm_for: Duration,
    /// How many may be held at once. Further ones are refused.
    pub max_held: usize,
    /// How large a document may be. Larger ones are refused.
    pub max_bytes: usize,
}

impl Default for DocumentSettings {
    fn default() -> Self {
        Self {
            warm: 64,
            warm_for: Duration::from_secs(300),
            max_held: 1024,
            max_bytes: 8 * 1024 * 1024,
        }
    }
}

/// How many documents there are, for a server's health.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DocumentCounts {
    /// Open in the server, according to the messages sent.
    pub open: usize,
    pub held: usize,
    pub leases: usize,
    pub warm: usize,
}

/// How far the messages have come. Callers wait for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Progress {
    pub(super) generation: Option<Generation>,
    pub(super) newest: u64,
    pub(super) sent: u64,
}

/// What the server has after everything that was sent.
#[derive(Clone, Debug)]
pub(super) enum Delivery {
    Sent {
        version: i32,
        text: LineIndex,
    },
    /// It will be, once this change has been sent.
    Waiting {
        change: u64,
    },
    NotAttached {
        current: Option<Generation>,
    },
}

#[derive(Debug)]
pub(super) struct Book {
    settings: DocumentSettings,
    attached: Option<Attached>,
    newest_generation: Option<Generation>,
    documents: BTreeMap<Arc<Path>, Document>,
    /// Documents that need a message, oldest change first. A document is here at most once, and the map is empty while
    /// no generation is attached.
    unsent: BTreeMap<u64, Arc<Path>>,
    sending: Option<(u64, Arc<Path>)>,
    newest_change: u64,
    uses: u64,
    /// The highest version of any closed document.
    closed_version: i32,
}

impl Book {
    pub(super) fn new(settings: DocumentSettings) -> Self {
        Self {
            settings,
            attached: None,
            newest_generation: None,
            documents: BTreeMap::new(),
            unsent: BTreeMap::new(),
            sending: None,
            newest_change: 0,
            uses: 0,
            closed_version: 0,
        }
    }

    pub(super) fn settings(&self) -> &DocumentSettings {
        &self.settings
    }

    pub(super) fn generation(&self) -> Option<Generation> {
        self.attached.map(|attached| attached.generation)
    }

    pub(super) fn progress(&self) -> Progress {
        let unsent = self.unsent.keys().next().copied();
        let sending = self.sending.as_ref().map(|(change, _)| *change);
        let first = [unsent, sending].into_iter().flatten().min();
        Progress {
            generation: self.generation(),
            newest: self.newest_change,
            sent: first.map_or(self.newest_change, |change| change - 1),
        }
    }

    pub(super) fn paths(&self) -> BTreeSet<Arc<Path>> {
        let open = self
            .documents
            .iter()
            .filter(|(_, document)| document.wanted.is_some());
        open.map(|(path, _)| Arc::clone(path)).collect()
    }

    #[cfg(test)]
    pub(super) fn text(&self, path: &Path) -> Option<Arc<str>> {
        let wanted = self.documents.get(path)?.wanted.as_ref()?;
        Some(Arc::clone(wanted.text.text()))
    }

    pub(super) fn counts(&self) -> DocumentCounts {
        let mut counts = DocumentCounts::default();
        for document in self.documents.values() {
            counts.open += usize::from(document.told.is_some());
            counts.leases += document.leases;
            counts.held += usize::from(document.leases > 0);
            counts.warm += usize::from(document.leases == 0 && document.wanted.is_some());
        }
        counts
    }

    /// Attaches a new generation, from the first document on. An older one is refused.
    pub(super) fn attach(
        &mut self,
        generation: Generation,
        sync: DocumentSync,
        encoding: PositionEncoding,
    ) -> bool {
        if self.newest_generation.is_some_and(|newest| generation <= newest) {
            return false;
        }
        self.forget_server();
        self.newest_generation = Some(generation);
        self.attached = Some(Attached {
            generation,
            sync,
            encoding,
        });
        let paths: Vec<Arc<Path>> = self.documents.keys().cloned().collect();
        paths.iter().for_each(|path| self.mark(path));
        true
    }

    /// Ends a generation. Does nothing if a later one has begun.
    pub(super) fn detach(&mut self, generation: Generation) {
        if self.generation() == Some(generation) {
            self.forget_server();
        }
    }

    fn forget_server(&mut self) {
        self.attached = None;
        self.unsent.clear();
        self.sending = None;
        let mut highest = self.closed_version;
        self.documents.retain(|_, document| {
            if document.leases == 0 {
                highest = highest.max(document.newest_version());
            }
            document.told = None;
            document.unsent = None;
            document.saved = None;
            document.leases > 0
        });
        self.closed_version = highest;
    }

    /// How many documents have a lease, not counting this one.
    pub(super) fn held_beside(&self, path: &Path) -> usize {
        let held = |(other, document): &(&Arc<Path>, &Document)| document.leases > 0 && &***other != path;
        self.documents.iter().filter(held).count()
    }

    pub(super) fn lease(
        &mut self,
        path: &Arc<Path>,
        uri: Arc<str>,
        language: &Arc<str>,
        text: &Arc<str>,
        now: Instant,
    ) {
        let document = self.documents.entry(Arc::clone(path)).or_insert(Document {
            uri,
            language: Arc::clone(language),
            leases: 0,
            used: 0,
            used_at: now,
            wanted: None,
            told: None,
            saved: None,
            unsent: None,
        });
        document.leases += 1;
        self.sync(path, text, now);
    }

    pub(super) fn sync(&mut self, path: &Arc<Path>, text: &Arc<str>, now: Instant) {
        self.uses += 1;
        let Some(document) = self.documents.get_mut(path) else {
            return;
        };
        document.used = self.uses;
        document.used_at = now;
        // A document that is being closed may continue from its last version.
        let latest = document.wanted.as_ref().or(document.told.as_ref());
        let same = latest.filter(|latest| is_same(latest.text.text(), text)).cloned();
        let wanted = same.unwrap_or_else(|| Version {
            number: following(latest.map_or(self.closed_version, |latest| latest.number)),
            text: LineIndex::new(Arc::clone(text)),
        });
        document.wanted = Some(wanted);
        self.mark(path);
    }

    pub(super) fn touch(&mut self, path: &Arc<Path>) {
        if let Some(document) = self.documents.get_mut(path) {
            let number = following(document.newest_version());
            if let Some(wanted) = &mut document.wanted {
                wanted.number = number;
            }
            self.mark(path);
        }
    }

    pub(super) fn saved(&mut self, path: &Arc<Path>) {
        let Some(attached) = self.attached else { return };
        if attached.sync.save == SaveSync::None {
            return;
        }
        if let Some(document) = self.documents.get_mut(path) {
            document.saved = document
                .wanted
                .as_ref()
                .map(|wanted| Arc::clone(wanted.text.text()));
            self.mark(path);
        }
    }

    /// Returns a lease. After the last one the document stays warm, or is closed.
    pub(super) fn release(&mut self, path: &Path, now: Instant) {
        let Some(document) = self.documents.get_mut(path) else {
            return;
        };
        assert!(document.leases > 0, "a lease is given back once");
        document.leases -= 1;
        document.used_at = now;
        if document.leases > 0 {
            return;
        }
        if self.attached.is_none() {
            return self.close(path);
        }
        while let Some(coldest) = self.coldest_above_limit() {
            self.close(&coldest);
        }
    }

    fn coldest_above_limit(&self) -> Option<Arc<Path>> {
        let warm = || {
            self.documents
                .iter()
                .filter(|(_, document)| document.leases == 0 && document.wanted.is_some())
        };
        if warm().count() <= self.settings.warm {
            return None;
        }
        let coldest = warm().min_by_key(|(_, document)| document.used)?;
        Some(Arc::clone(coldest.0))
    }

    /// Closes a document, unless there is a lease on it.
    pub(super) fn close_unheld(&mut self, path: &Path) {
        if self
            .documents
            .get(path)
            .is_some_and(|document| document.leases == 0)
        {
            self.close(path);
        }
    }

    pub(super) fn close_idle(&mut self, now: Instant) {
        let idle: Vec<Arc<Path>> = self
            .documents
            .iter()
            .filter(|(_, document)| document.leases == 0 && document.wanted.is_some())
            .filter(|(_, document)| document.idle_at(&self.settings).is_some_and(|at| at <= now))
            .map(|(path, _)| Arc::clone(path))
            .collect();
        idle.iter().for_each(|path| self.close(path));
    }

    pub(super) fn next_idle(&self) -> Option<Instant> {
        let warm = self
            .documents
            .values()
            .filter(|document| document.leases == 0 && document.wanted.is_some());
        warm.filter_map(|document| document.idle_at(&self.settings)).min()
    }

    fn close(&mut self, path: &Path) {
        let Some((path, document)) = self.documents.get_key_value(path) else {
            return;
        };
        let path = Arc::clone(path);
        if document.told.is_none() {
            return self.remove(&path);
        }
        let newest = document.newest_version();
        self.closed_version = self.closed_version.max(newest);
        if let Some(document) = self.documents.get_mut(&path) {
            document.wanted = None;
            document.saved = None;
        }
        self.mark(&path);
    }

    fn remove(&mut self, path: &Path) {
        if let Some(document) = self.documents.remove(path) {
            self.closed_version = self.closed_version.max(document.newest_version());
            if let Some(change) = document.unsent {
                self.unsent.remove(&change);
            }
        }
    }

    /// Queues a document if it needs a message, and removes it otherwise.
    fn mark(&mut self, path: &Arc<Path>) {
        let Some(document) = self.documents.get_mut(path) else {
            return;
        };
        let due = self.attached.is_some() && document.differs();
        match (due, document.unsent) {
            (true, None) => {
                self.newest_change += 1;
                document.unsent = Some(self.newest_change);
                self.unsent.insert(self.newest_change, Arc::clone(path));
            }
            (false, Some(change)) => {
                document.unsent = None;
                self.unsent.remove(&change);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// The next message for a generation, which then counts as told. The previous one was sent.
    pub(super) fn next_message(&mut self, generation: Generation) -> Option<Outgoing> {
        let attached = self
            .attached
            .filter(|attached| attached.generation == generation)?;
        self.sending = None;
        loop {
            let (change, path) = self.unsent.pop_first()?;
            let document = self.documents.get_mut(&path)?;
            document.unsent = None;
            let uri = Arc::clone(&document.uri);
            let message = document.tell(&attached);
            if document.wanted.is_none() && document.told.is_none() {
                self.remove(&path);
            } else if document.differs() {
                // A save immediately follows its change.
                document.unsent = Some(change);
                self.unsent.insert(change, Arc::clone(&path));
            }
            if let Some(message) = message {
                self.sending = Some((change, Arc::clone(&path)));
                return Some(Outgoing { path, uri, message });
            }
        }
    }

    pub(super) fn sent(&mut self, generation: Generation) {
        if self.generation() == Some(generation) {
            self.sending = None;
        }
    }

    pub(super) fn delivery(&self, path: &Path, generation: Generation) -> Delivery {
        let current = self.generation();
        let document = self.documents.get(path);
        let Some(document) = document.filter(|_| current == Some(generation)) else {
            return Delivery::NotAttached { current };
        };
        let sending = self.sending.as_ref().filter(|(_, sending)| &**sending == path);
        match (
            document.unsent.or(sending.map(|(change, _)| *change)),
            &document.told,
        ) {
            (None, Some(told)) => Delivery::Sent {
                version: told.number,
                text: told.text.clone(),
            },
            (Some(change), _) => Delivery::Waiting { change },
            (None, None) => Delivery::NotAttached { current },
        }
    }
}

fn is_same(left: &Arc<str>, right: &Arc<str>) -> bool {
    Arc::ptr_eq(left, right) || left == right
}

/// The version after this one. It wraps around to 1, because the protocol's versions are 32-bit.
fn following(version: i32) -> i32 {
    version.checked_add(1).unwrap_or(1)
}
