//! What a server has across all its processes: how it is started, what is open in it, what it logged.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kernel::Clock;
use lifecycle::ServerKey;

use super::{
    instance::{LanguageServer, WeakServer},
    record::Record,
};
use crate::{
    client::Counters,
    documents::{DocumentSettings, Documents},
    languages::OpenTexts,
    servers::Chosen,
};

#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) key: ServerKey,
    pub(crate) documents: Documents,
    pub(crate) record: Record,
    /// The texts of those documents, as they are on disk.
    pub(crate) texts: OpenTexts,
    /// Guards how the next process is started.
    chosen: Mutex<Arc<Chosen>>,
    /// Guards the totals of the processes that have ended.
    past: Mutex<Counters>,
    /// Guards the link to the running process.
    current: Mutex<WeakServer>,
    /// Guards how the last process ended, not counting those that we stopped.
    last_exit: Mutex<Option<process::Exit>>,
}

impl Site {
    pub(crate) fn chosen(&self) -> Arc<Chosen> {
        Arc::clone(&lock(&self.chosen))
    }

    pub(crate) fn past(&self) -> Counters {
        *lock(&self.past)
    }

    /// The running process, if there is one.
    pub(crate) fn current(&self) -> Option<LanguageServer> {
        lock(&self.current).upgrade()
    }

    pub(super) fn set_current(&self, server: WeakServer) {
        *lock(&self.current) = server;
    }

    pub(crate) fn last_exit(&self) -> Option<process::Exit> {
        *lock(&self.last_exit)
    }

    pub(super) fn note_crash(&self, exit: process::Exit) {
        *lock(&self.last_exit) = Some(exit);
    }

    pub(super) fn add_past(&self, counters: &Counters) {
        let mut past = lock(&self.past);
        *past = past.plus(counters);
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Sites {
    shared: Arc<SiteShared>,
}

#[derive(Debug)]
struct SiteShared {
    clock: Arc<dyn Clock>,
    documents: DocumentSettings,
    /// Guards the table; held to look one up.
    sites: Mutex<BTreeMap<ServerKey, Arc<Site>>>,
}

impl Sites {
    pub(crate) fn new(documents: DocumentSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            shared: Arc::new(SiteShared {
                clock,
                documents,
                sites: Mutex::default(),
            }),
        }
    }

    /// The site of a server, created if needed. The choice takes effect with the next process.
    pub(crate) fn take_note(&self, chosen: &Arc<Chosen>) -> Arc<Site> {
        let key = ServerKey::new(Arc::clone(&chosen.name), Arc::clone(&chosen.root));
        let mut sites = lock(&self.shared.sites);
        let site = sites.entry(key).or_insert_with_key(|key| {
            Arc::new(Site {
                key: key.clone(),
                documents: Documents::new(self.shared.documents, Arc::clone(&self.shared.clock)),
                record: Record::default(),
                texts: OpenTexts::default(),
                chosen: Mutex::new(Arc::clone(chosen)),
                past: Mutex::default(),
                current: Mutex::default(),
                last_exit: Mutex::default(),
            })
        });
        let site = Arc::clone(site);
        drop(sites);
        let mut current = lock(&site.chosen);
        if **current != **chosen {
            *current = Arc::clone(chosen);
        }
        drop(current);
        site
    }

    pub(crate) fn find(&self, key: &ServerKey) -> Option<Arc<Site>> {
        lock(&self.shared.sites).get(key).cloned()
    }

    pub(crate) fn retain(&self, is_kept: impl Fn(&ServerKey) -> bool) {
        let forgotten: Vec<Arc<Site>> = {
            let mut sites = lock(&self.shared.sites);
            let keys: Vec<ServerKey> = sites.keys().filter(|key| !is_kept(key)).cloned().collect();
            keys.iter().filter_map(|key| sites.remove(key)).collect()
        };
        drop(forgotten);
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.shared.sites).len()
    }
}

// Whatever it guards, a panic never leaves it half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
