//! `tidelock join`: adds Tidelock to the configuration of the user's agents and editors.
//!
//! The decisions are pure (`format`, `json`, `yaml`, `toml` turn one text into another); only `files` touches the
//! disk. No daemon is needed, and none is started.

pub(crate) mod clients;
mod entry;
mod error;
mod files;
mod format;
mod json;
mod list;
mod messages;
pub(crate) mod surroundings;
mod toml;
mod yaml;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde_json::Value;

use self::clients::Client as Joining;
use self::entry::Entry;
use self::error::JoinError;
use self::files::{Readers, Written};
use self::surroundings::Surroundings;
use crate::cli::{JoinAction, JoinArguments, JoinScope, JoinWay};
use crate::client::Client;
use crate::error::Failure;
use crate::output::Report;

/// The default name of an entry.
pub(super) const USUAL_NAME: &str = "tidelock";
/// How many times a file is read again after its owner changed it. Clients write their files only now and then.
const ATTEMPTS: usize = 3;

pub(super) fn run(arguments: &JoinArguments, client: &Client) -> Result<Report, Failure> {
    let variable = |name: &str| std::env::var_os(name);
    let surroundings = Surroundings::look(&variable)?;
    let Some(joining) = arguments.client.and_then(clients::of) else {
        return Ok(list::report(client.palette(), &surroundings));
    };
    let wish = Wish::of(arguments, joining, &surroundings, || address(client))?;
    let outcome = wish.carry_out(arguments.action())?;
    Ok(messages::report(&wish, &outcome, &client.context))
}

#[derive(Debug)]
struct Wish {
    client: &'static Joining,
    scope: JoinScope,
    way: JoinWay,
    name: String,
    path: PathBuf,
    table: &'static [&'static str],
    entry: Entry,
}

#[derive(Debug, PartialEq)]
enum JoinOutcome {
    /// The user only asked to look.
    Looked(ExistingEntry),
    AlreadyThere,
    Wrote {
        backup: Option<PathBuf>,
    },
    Removed {
        backup: Option<PathBuf>,
    },
    /// There was nothing to remove.
    NotThere,
}

#[derive(Clone, Debug, PartialEq)]
enum ExistingEntry {
    Nothing,
    Same,
    Different(Value),
}

impl Wish {
    fn of(
        arguments: &JoinArguments,
        client: &'static Joining,
        surroundings: &Surroundings<'_>,
        address: impl FnOnce() -> String,
    ) -> Result<Wish, JoinError> {
        let (scope, way, name) = (arguments.scope, arguments.way(), arguments.name.clone());
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        if !name.chars().all(is_plain) {
            return Err(JoinError::Name);
        }
        let title = client.title;
        let path = surroundings
            .file(client, scope)?
            .ok_or(JoinError::NoProject { client: title })?;
        let program = || surroundings.program(client, scope, way);
        let (table, entry) = match way {
            JoinWay::Mcp | JoinWay::McpAllowed => (client.table, (client.entry)(&program())),
            JoinWay::Http => {
                let http = client.http.ok_or(JoinError::NoHttp { client: title })?;
                (client.table, http(&format!("http://{}/mcp", address())))
            }
            JoinWay::Acp => {
                let table = client.agents.ok_or(JoinError::NoAgents { client: title })?;
                (table, clients::agent(&program()))
            }
        };
        Ok(Wish {
            client,
            scope,
            way,
            name,
            path,
            table,
            entry,
        })
    }

    fn piece(&self) -> String {
        self.client.format.piece(self.table, &self.name, &self.entry)
    }

    fn carry_out(&self, action: JoinAction) -> Result<JoinOutcome, JoinError> {
        for _ in 0..ATTEMPTS {
            let seen = files::read(&self.path).map_err(|source| JoinError::Unreadable {
                path: self.path.clone(),
                source,
            })?;
            let text = seen.text.as_deref().unwrap_or_default();
            let found = self.find(text)?;
            let changed = match (action, &found) {
                (JoinAction::Show, _) => return Ok(JoinOutcome::Looked(found)),
                (JoinAction::Write | JoinAction::Replace, ExistingEntry::Same) => {
                    return Ok(JoinOutcome::AlreadyThere);
                }
                (JoinAction::Remove, ExistingEntry::Nothing) => return Ok(JoinOutcome::NotThere),
                (JoinAction::Write, ExistingEntry::Different(_)) => {
                    let (path, name) = (self.path.clone(), self.name.clone());
                    return Err(JoinError::Different { path, name });
                }
                (JoinAction::Write | JoinAction::Replace, _) => {
                    self.client.format.with(text, self.table, &self.name, &self.entry)
                }
                (JoinAction::Remove, _) => self.client.format.without(text, self.table, &self.name),
            };
            let changed = changed.map_err(|reason| self.not_understood(reason, action))?;
            let readers = match self.scope {
                JoinScope::User => Readers::Me,
                JoinScope::Project => Readers::Everybody,
            };
            let written = files::write(&seen, &changed, readers).map_err(|source| JoinError::Unwritable {
                path: seen.path.clone(),
                source,
            })?;
            let backup = match written {
                Written::Stale => continue,
                Written::Created => None,
                Written::Replaced { backup } => Some(backup),
            };
            return Ok(match action {
                JoinAction::Remove => JoinOutcome::Removed { backup },
                JoinAction::Show | JoinAction::Write | JoinAction::Replace => JoinOutcome::Wrote { backup },
            });
        }
        Err(JoinError::Stale {
            path: self.path.clone(),
        })
    }

    fn find(&self, text: &str) -> Result<ExistingEntry, JoinError> {
        let value = self
            .client
            .format
            .parse(text)
            .map_err(|reason| self.not_understood(reason, JoinAction::Show))?;
        Ok(match format::find(&value, self.table, &self.name) {
            None => ExistingEntry::Nothing,
            Some(found) if *found == self.entry.value() => ExistingEntry::Same,
            Some(found) => ExistingEntry::Different(found.clone()),
        })
    }

    fn not_understood(&self, reason: String, action: JoinAction) -> JoinError {
        JoinError::NotUnderstood {
            path: self.path.clone(),
            reason,
            piece: (action != JoinAction::Remove).then(|| self.piece()),
        }
    }
}

/// Reads our entry in a client's configuration without changing it; `None` if the file does not exist.
pub(super) fn look(
    client: &Joining,
    scope: JoinScope,
    surroundings: &Surroundings<'_>,
) -> Result<Option<(PathBuf, Value)>, JoinError> {
    let Some(path) = surroundings.file(client, scope)? else {
        return Ok(None);
    };
    let unreadable = |source| JoinError::Unreadable {
        path: path.clone(),
        source,
    };
    let Some(text) = files::read(&path).map_err(unreadable)?.text else {
        return Ok(None);
    };
    let value = client
        .format
        .parse(&text)
        .map_err(|reason| JoinError::NotUnderstood {
            path: path.clone(),
            reason,
            piece: None,
        })?;
    let found = format::find(&value, client.table, USUAL_NAME).cloned();
    Ok(found.map(|found| (path, found)))
}

fn address(client: &Client) -> String {
    let wanted = std::env::var("TIDELOCK_LISTEN")
        .ok()
        .and_then(|address| address.parse::<SocketAddr>().ok());
    let usual = || {
        let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, daemon::DEFAULT_PORT));
        wanted
            .filter(|wanted| wanted.port() != 0)
            .unwrap_or(usual)
            .to_string()
    };
    client
        .get::<protocol::Status>("/v1/status")
        .map_or_else(|_| usual(), |status| status.address)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
