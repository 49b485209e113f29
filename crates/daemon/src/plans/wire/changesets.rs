//! Changesets and their changes.

use plans::{Changeset, Entry, Recorded};

use super::kind_name;
use crate::times::written;

pub(crate) fn changeset_to_wire(changeset: &Changeset) -> protocol::Changeset {
    let record = &changeset.record;
    protocol::Changeset {
        id: changeset.id.to_string(),
        state: record.state,
        plan: record.plan.to_string(),
        actor: record.actor.to_string(),
        tool: record.tool.clone(),
        reason: record.reason.clone(),
        job: record.job.clone(),
        started_at: written(record.started_at),
        entries: record.entries,
        changes: changeset.changes.iter().map(recorded_to_wire).collect(),
    }
}

/// A change. The log stores both entries in full, because an undo needs them; the wire has what a person compares.
pub(crate) fn recorded_to_wire(recorded: &Recorded) -> protocol::RecordedChange {
    let change = &recorded.change;
    let hash = |entry: &Option<Entry>| {
        let content = entry.as_ref().and_then(Entry::content);
        content.map(|content| content.to_string())
    };
    protocol::RecordedChange {
        entry: recorded.entry,
        at: written(recorded.at),
        kind: kind_name(change.kind()).to_owned(),
        path: change.path.to_string(),
        from: change.from.as_ref().map(ToString::to_string),
        before: hash(&change.before),
        after: hash(&change.after),
        mode: change.after.as_ref().and_then(mode),
        also_running: recorded.also_running.iter().map(ToString::to_string).collect(),
    }
}

/// The permissions of a file, in octal.
pub(super) fn mode(entry: &Entry) -> Option<String> {
    match entry {
        Entry::File { mode, .. } => Some(format!("{mode:03o}")),
        Entry::Symlink { .. } | Entry::Directory => None,
    }
}
