//! A server as people see it: its state, and its resource use.

use std::{path::Path, sync::Arc};

use super::{error::AskError, service::Languages};
use lifecycle::{ServerKey, ServerState, ServerStatus};

use crate::{
    client::Counters,
    documents::DocumentCounts,
    queries::ReadyState,
    server::{RecordLine, Site},
};

#[derive(Clone, Debug)]
pub struct ServerView {
    /// The name of the server and a short hash of its root.
    pub id: String,
    pub status: ServerStatus,
    /// Whether it has read the workspace; `None` while it isn't running.
    pub readiness: Option<ReadyState>,
    /// Its process; `None` if it isn't running, or wasn't started by us.
    pub pid: Option<u32>,
    pub rss_bytes: Option<u64>,
    /// How the last process ended that wasn't stopped by us.
    pub last_exit: Option<process::Exit>,
    pub documents: DocumentCounts,
    /// Requests that it hasn't answered.
    pub pending: usize,
    /// Messages that it hasn't accepted.
    pub queued: usize,
    /// Totals over all of its processes.
    pub counters: Counters,
}

pub(super) fn server_id(name: &str, root: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let hash = blake3::hash(root.as_os_str().as_bytes()).to_hex();
    format!("{name}@{}", &hash.as_str()[..8])
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Detail {
    Known,
    /// Also the memory of the process tree, which requires reading each process.
    Memory,
}

impl Languages {
    /// All servers that were used, by root and name.
    pub fn list(&self, detail: Detail) -> Vec<ServerView> {
        let mut all = self.shared.manager.list();
        all.sort_by(|left, right| {
            (&left.key.root, &left.key.server).cmp(&(&right.key.root, &right.key.server))
        });
        all.into_iter().map(|status| self.view(status, detail)).collect()
    }

    pub fn find(&self, id: &str, detail: Detail) -> Result<ServerView, AskError> {
        let key = self.key_of(id)?;
        let all = self.shared.manager.list();
        let status = all.into_iter().find(|status| status.key == key);
        status
            .map(|status| self.view(status, detail))
            .ok_or_else(|| unknown(id))
    }

    /// The recent output of a server, oldest first.
    pub fn record(&self, id: &str) -> Result<Vec<RecordLine>, AskError> {
        let site = self.site_of(id)?;
        let mut lines = site.record.lines();
        if let Some(child) = site.current().as_ref().and_then(|server| server.child().cloned()) {
            lines.extend(crate::server::stderr_lines(&child.stderr_tail()));
        }
        Ok(lines)
    }

    pub(super) fn view(&self, status: ServerStatus, detail: Detail) -> ServerView {
        let site = self.shared.sites.find(&status.key);
        let server = site.as_deref().and_then(Site::current);
        // A process that is shutting down isn't shown as running.
        let server = server.filter(|_| matches!(status.state, ServerState::Ready | ServerState::Stopping));
        let child = server.as_ref().and_then(|server| server.child().cloned());
        let pid = child.as_ref().map(process::Child::pid);
        let current = server.as_ref().map(|server| server.client().counters());
        let past = site.as_deref().map(Site::past).unwrap_or_default();
        ServerView {
            id: server_id(&status.key.server, &status.key.root),
            readiness: match status.state {
                ServerState::Ready => server.as_ref().map(|server| server.told().readiness()),
                _ => None,
            },
            pid,
            rss_bytes: match detail {
                Detail::Memory => child.as_ref().map(process::Child::tree_rss_bytes),
                Detail::Known => None,
            },
            last_exit: site.as_deref().and_then(Site::last_exit),
            documents: site
                .as_deref()
                .map(|site| site.documents.counts())
                .unwrap_or_default(),
            pending: server.as_ref().map_or(0, |server| server.client().pending()),
            queued: server.as_ref().map_or(0, |server| server.client().queued()),
            counters: current.map_or(past, |current| past.plus(&current)),
            status,
        }
    }

    pub(super) fn key_of(&self, id: &str) -> Result<ServerKey, AskError> {
        let all = self.shared.manager.list();
        let found = all
            .into_iter()
            .find(|status| server_id(&status.key.server, &status.key.root) == id);
        found.map(|status| status.key).ok_or_else(|| unknown(id))
    }

    pub(super) fn site_of(&self, id: &str) -> Result<Arc<Site>, AskError> {
        let key = self.key_of(id)?;
        self.shared.sites.find(&key).ok_or_else(|| unknown(id))
    }
}

fn unknown(id: &str) -> AskError {
    AskError::UnknownId { id: id.to_owned() }
}
