//! The connected clients.
//!
//! A client that stays connected has a [`Connection`](super::connection::Connection), and is forgotten when that is
//! dropped. A client that sends single requests over HTTP has none: a limited number of them are remembered by actor,
//! so that their plan need not be looked up each time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use kernel::CancellationToken;
use protocol::{ClientTransport, PlanId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::headers::Grant;
use super::working_plan::WorkingPlan;
use crate::times::rfc3339;

/// How many clients can stay connected at once: several for every agent that one machine can handle. Further ones are
/// refused.
pub(super) const CLIENTS: usize = 256;
/// How many clients without a session are remembered. The least recently seen one makes room; it only has to be looked
/// up again.
const PASSING: usize = 64;
/// How many calls of one client run at once. An agent has a handful; further calls are refused with the advice to wait.
pub(super) const CALLS_AT_ONCE: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Clients {
    /// Guards the list; held only to read or change an entry.
    list: Mutex<ClientEntries>,
}

#[derive(Debug, Default)]
struct ClientEntries {
    /// The number of the last entry or visit.
    last: u64,
    connected: BTreeMap<u64, Arc<Client>>,
    /// Clients without a session, with the number of their last visit.
    passing: BTreeMap<String, (u64, Arc<Client>)>,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) actor: String,
    pub(super) about: About,
    pub(super) since: SystemTime,
    /// Cancelled when it can no longer receive answers.
    pub(super) gone: CancellationToken,
    gate: Arc<Semaphore>,
    /// Guards its current work; held only to read or update it.
    work: Mutex<Work>,
}

/// What a client says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct About {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) protocol: String,
    pub(super) transport: ClientTransport,
    pub(super) directory: Option<PathBuf>,
    /// Variables that say where the client's programs are.
    pub(super) environment: BTreeMap<String, String>,
    pub(super) grant: Grant,
}

#[derive(Debug, Default)]
struct Work {
    calls: u64,
    plan: KnownPlan,
    /// The directory of its first root: `None` until it was asked.
    root: Option<Option<PathBuf>>,
}

/// What is known about the plan that a client works in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum KnownPlan {
    /// It hasn't been looked up.
    #[default]
    Nothing,
    /// It was looked up, and the client has none.
    NoPlan,
    /// The client works in this plan.
    Open(WorkingPlan),
}

/// There is no room for another client.
#[derive(Debug, thiserror::Error)]
#[error("too many clients: {CLIENTS} are already connected")]
pub(super) struct TooManyClients;

impl Clients {
    /// Adds a client. Pass the returned number to `leave` to remove it.
    pub(super) fn join(&self, client: Arc<Client>) -> Result<u64, TooManyClients> {
        let mut entries = self.entries();
        if entries.connected.len() >= CLIENTS {
            return Err(TooManyClients);
        }
        entries.last += 1;
        let number = entries.last;
        entries.connected.insert(number, client);
        Ok(number)
    }

    pub(super) fn leave(&self, number: u64) {
        drop(self.entries().connected.remove(&number));
    }

    /// The client without a session that has this actor.
    pub(super) fn passing(&self, actor: &str, about: &About) -> Arc<Client> {
        let mut entries = self.entries();
        entries.last += 1;
        let visit = entries.last;
        if let Some((seen, client)) = entries.passing.get_mut(actor)
            && client.about == *about
        {
            *seen = visit;
            return Arc::clone(client);
        }
        let client = Arc::new(Client::new(actor.to_owned(), about.clone()));
        entries
            .passing
            .insert(actor.to_owned(), (visit, Arc::clone(&client)));
        if entries.passing.len() > PASSING {
            let oldest = entries.passing.iter().min_by_key(|(_, (seen, _))| *seen);
            if let Some(oldest) = oldest.map(|(actor, _)| actor.clone()) {
                entries.passing.remove(&oldest);
            }
        }
        client
    }

    /// How many clients stay connected.
    pub(crate) fn connected(&self) -> usize {
        self.entries().connected.len()
    }

    /// All clients for the wire, newest first.
    pub(crate) fn list(&self) -> Vec<protocol::Client> {
        let entries = self.entries();
        let mut all: Vec<(u64, &Arc<Client>)> = entries
            .connected
            .iter()
            .map(|(number, client)| (*number, client))
            .collect();
        all.extend(entries.passing.values().map(|(seen, client)| (*seen, client)));
        all.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        all.into_iter().map(|(_, client)| client.to_wire()).collect()
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, ClientEntries> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    pub(super) fn new(actor: String, about: About) -> Self {
        Self {
            actor,
            about,
            since: SystemTime::now(),
            gone: CancellationToken::new(),
            gate: Arc::new(Semaphore::new(CALLS_AT_ONCE)),
            work: Mutex::default(),
        }
    }

    /// Sets the token that is cancelled when the client disconnects.
    pub(super) fn until(mut self, gone: CancellationToken) -> Self {
        self.gone = gone;
        self
    }

    /// Takes a permit for one call, if there is one.
    pub(super) fn begin_call(&self) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.gate).try_acquire_owned().ok()?;
        self.work().calls += 1;
        Some(permit)
    }

    pub(super) fn known_plan(&self) -> KnownPlan {
        self.work().plan.clone()
    }

    pub(super) fn note_plan(&self, plan: KnownPlan) {
        self.work().plan = plan;
    }

    /// Forgets the plan if it is this one. The client may have opened another one in the meantime.
    pub(super) fn forget_plan(&self, id: PlanId) {
        let mut work = self.work();
        if matches!(&work.plan, KnownPlan::Open(plan) if plan.id == id) {
            work.plan = KnownPlan::Nothing;
        }
    }

    /// The directory of its first root: `None` if it wasn't asked, `Some(None)` if it has none.
    pub(super) fn root(&self) -> Option<Option<PathBuf>> {
        self.work().root.clone()
    }

    pub(super) fn note_root(&self, root: Option<PathBuf>) {
        self.work().root = Some(root);
    }

    /// Forgets the root, which has changed, so that it is asked for again.
    pub(super) fn forget_root(&self) {
        self.work().root = None;
    }

    fn to_wire(&self) -> protocol::Client {
        let work = self.work();
        let About {
            name,
            version,
            protocol,
            transport,
            directory,
            environment: _,
            grant: _,
        } = self.about.clone();
        protocol::Client {
            actor: self.actor.clone(),
            name,
            version,
            protocol,
            transport,
            directory: directory
                .or_else(|| work.root.clone().flatten())
                .map(|path| path.display().to_string()),
            since: rfc3339(self.since),
            plan: match &work.plan {
                KnownPlan::Open(plan) => Some(plan.id.to_string()),
                KnownPlan::Nothing | KnownPlan::NoPlan => None,
            },
            calls: work.calls,
            in_flight: (CALLS_AT_ONCE - self.gate.available_permits()) as u64,
        }
    }

    fn work(&self) -> std::sync::MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str) -> About {
        About {
            name: name.to_owned(),
            version: "1".to_owned(),
            protocol: "2026-07-28".to_owned(),
            transport: ClientTransport::Http,
            directory: None,
            environment: BTreeMap::new(),
            grant: Grant::AsConfigured,
        }
    }

    #[test]
    fn there_is_room_for_some_and_a_place_is_given_back() {
        let clients = Clients::default();
        let one = || Arc::new(Client::new("a".to_owned(), about("a")));
        let numbers: Vec<u64> = (0..CLIENTS).map(|_| clients.join(one()).unwrap()).collect();
        assert!(clients.join(one()).is_err());
        clients.leave(numbers[7]);
        assert!(clients.join(one()).is_ok());
        assert_eq!(clients.connected(), CLIENTS);
    }

    #[test]
    fn whoever_passes_is_remembered_until_others_need_the_room() {
        let clients = Clients::default();
        let first = clients.passing("a", &about("a"));
        first.note_plan(KnownPlan::NoPlan);
        for number in 0..PASSING - 1 {
            clients.passing(&format!("b{number}"), &about("b"));
        }
        assert_eq!(clients.passing("a", &about("a")).known_plan(), KnownPlan::NoPlan);
        // Now `b0` is the least recently seen client.
        clients.passing("c", &about("c"));
        let actors: Vec<String> = clients.list().into_iter().map(|client| client.actor).collect();
        assert_eq!(actors.len(), PASSING);
        assert!(actors.contains(&"a".to_owned()) && !actors.contains(&"b0".to_owned()));
        // Another program with the same name is another client.
        assert_eq!(clients.passing("a", &about("z")).known_plan(), KnownPlan::Nothing);
    }

    #[test]
    fn a_client_has_only_so_many_calls_at_once() {
        let client = Client::new("a".to_owned(), about("a"));
        let permits: Vec<_> = (0..CALLS_AT_ONCE).map(|_| client.begin_call().unwrap()).collect();
        assert!(client.begin_call().is_none());
        drop(permits);
        assert!(client.begin_call().is_some());
        assert_eq!(client.to_wire().calls, CALLS_AT_ONCE as u64 + 1);
    }
}
