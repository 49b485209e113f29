//! Workspaces that need attention: a stuck apply, and rescued content beside them. Without a daemon there is nothing
//! to report.

use protocol::{RescuedList, WorkspaceList};
use serde_json::Value;

use super::Check;
use crate::client::{Client, ClientError};
use crate::commands::shell::quoted;
use crate::error::chain;
use crate::printable::printable;
use crate::units::format_count;

const ID: &str = "workspaces";
const RESCUED: &str = "rescued";

pub(super) fn check(client: &Client) -> Vec<Check> {
    let mut checks = match ask::<WorkspaceList>(client, "/v1/workspaces") {
        Ok(list) => workspaces(&list),
        Err(error) => failed(ID, &error),
    };
    checks.extend(match ask::<RescuedList>(client, "/v1/rescued") {
        Ok(list) => rescued(&list),
        Err(error) => failed(RESCUED, &error),
    });
    checks
}

fn ask<A: serde::de::DeserializeOwned>(client: &Client, path: &str) -> Result<A, ClientError> {
    client.get::<Value>(path).and_then(|answer| printable(&answer))
}

fn failed(id: &'static str, error: &ClientError) -> Vec<Check> {
    match error {
        // Other checks report an unreachable daemon, and one of another version.
        ClientError::Unreachable { .. } => Vec::new(),
        ClientError::Refused(refusal) if refusal.status == 404 => Vec::new(),
        error => vec![Check::warning(id, chain(error), "see the daemon's log")],
    }
}

fn workspaces(list: &WorkspaceList) -> Vec<Check> {
    let mut checks = Vec::new();
    for workspace in &list.workspaces {
        if let Some(stuck) = &workspace.stuck {
            let what = stuck.what.as_deref().unwrap_or("apply or undo");
            let root = quoted(&workspace.root);
            checks.push(Check::failed(
                ID,
                format!("an {what} of {} is stuck half-way: {}", workspace.root, stuck.why),
                format!("run `tidelock workspace repair {root}`; --abort sets it aside and keeps everything"),
            ));
        }
        if let Some(notice) = &workspace.notice {
            checks.push(Check::ok(ID, format!("{}: {notice}", workspace.root)));
        }
    }
    if checks.is_empty() {
        let count = format_count(list.workspaces.len() as u64, "workspace");
        checks.push(Check::ok(ID, format!("{count}, none stuck")));
    }
    checks
}

fn rescued(list: &RescuedList) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(newest) = list.rescued.first() {
        let count = format_count(list.rescued.len() as u64, "piece");
        checks.push(Check::warning(
            RESCUED,
            format!("{count} of rescued content, the newest from {}", newest.path),
            "list it with `tidelock workspace rescued`, then restore or drop each piece",
        ));
    }
    if !list.unreadable.is_empty() {
        checks.push(Check::warning(
            RESCUED,
            format!(
                "the description of rescued content cannot be read: {}",
                list.unreadable.join(", ")
            ),
            "the content is in these directories; copy it yourself, then remove them",
        ));
    }
    checks
}
