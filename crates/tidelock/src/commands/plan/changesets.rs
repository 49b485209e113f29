//! Who changed what in a plan.

use protocol::{Changeset, ChangesetState, RecordedChange};
use serde_json::{Value, json};

use super::get;
use super::labels::short;
use crate::client::{Client, path_segment};
use crate::commands::ids::PLAN;
use crate::commands::job::with_age;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, table};
use crate::printable::{cut, printable};
use crate::units::format_count;

/// How many of the newest changesets are shown with their changes. Each takes another request.
const WITH_CHANGES: usize = 20;
const CHANGES: usize = 20;
const TEXT_CHARACTERS: usize = 100;

pub(super) fn run(wanted: &str, client: &Client) -> Result<Report, Failure> {
    let id = PLAN.find(wanted, client)?;
    let changesets = read(&id, client)?;
    let shown: Vec<Changeset> = printable(&json!(changesets))?;
    let text = match shown.as_slice() {
        [] => "No changes yet.\n".to_owned(),
        shown => describe(client.palette(), shown),
    };
    Ok(Report::success(json!({ "changesets": changesets }), text))
}

/// The changesets of a plan, oldest first, the newest of them with their changes.
pub(super) fn read(id: &str, client: &Client) -> Result<Vec<Value>, Failure> {
    let mut answer = get(id, "/changesets", client)?;
    let Value::Array(mut changesets) = answer["changesets"].take() else {
        return Ok(Vec::new());
    };
    let first = changesets.len().saturating_sub(WITH_CHANGES);
    for changeset in changesets.iter_mut().skip(first) {
        let name = changeset["id"].as_str().unwrap_or_default();
        let rest = format!("/changesets/{}", path_segment(name));
        *changeset = get(id, &rest, client)?;
    }
    Ok(changesets)
}

pub(super) fn describe(palette: Palette, changesets: &[Changeset]) -> String {
    let mut text = String::new();
    for changeset in changesets {
        let open = match changeset.state {
            ChangesetState::Open => ", open",
            ChangesetState::Closed => "",
        };
        let job = changeset
            .job
            .as_deref()
            .map_or_else(String::new, |job| format!(", {job}"));
        text.push_str(&format!(
            "  {}  {} with {}, {}{open}{job}\n",
            short(&changeset.id),
            cut(&changeset.actor, TEXT_CHARACTERS),
            cut(&changeset.tool, TEXT_CHARACTERS),
            format_count(changeset.entries, "change"),
        ));
        let when = palette.paint(&with_age(&changeset.started_at), Tone::Quiet);
        text.push_str(&format!("    {when}\n"));
        if !changeset.reason.is_empty() {
            text.push_str(&format!("    {}\n", cut(&changeset.reason, TEXT_CHARACTERS)));
        }
        let rows: Vec<Vec<Cell>> = changeset.changes.iter().take(CHANGES).map(row).collect();
        text.push_str(&table(palette, &rows));
        let shown = rows.len() as u64;
        if changeset.entries > shown {
            text.push_str(&format!("    … and {} more\n", changeset.entries - shown));
        }
    }
    text
}

fn row(change: &RecordedChange) -> Vec<Cell> {
    let (word, tone) = match change.kind.as_str() {
        "create" => ("create", Tone::Good),
        "delete" => ("delete", Tone::Bad),
        other => (other, Tone::Warning),
    };
    let path = match &change.from {
        Some(from) => format!("{from} -> {}", change.path),
        None => change.path.clone(),
    };
    let mode = match (change.kind.as_str(), &change.mode) {
        ("chmod", Some(mode)) => format!("to {mode}"),
        _ => String::new(),
    };
    let doubt = if change.also_running.is_empty() {
        mode
    } else {
        let others = cut(&change.also_running.join(", "), TEXT_CHARACTERS);
        format!("{mode} may be by {others}").trim_start().to_owned()
    };
    vec![
        Cell::new("   "),
        Cell::toned(word, tone),
        Cell::new(path),
        Cell::toned(doubt, Tone::Quiet),
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn changeset() -> Changeset {
        let change = |entry, kind: &str, path: &str| RecordedChange {
            entry,
            at: String::new(),
            kind: kind.to_owned(),
            path: path.to_owned(),
            from: None,
            before: None,
            after: None,
            mode: None,
            also_running: Vec::new(),
        };
        Changeset {
            id: "changeset_01ARZ3NDEKTSV4RRFFQ69G5CS1".to_owned(),
            state: ChangesetState::Closed,
            plan: "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(),
            actor: "an agent".to_owned(),
            tool: "shell".to_owned(),
            reason: "cargo fmt".to_owned(),
            job: Some("job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX".to_owned()),
            started_at: "then".to_owned(),
            entries: 6,
            changes: vec![
                change(1, "create", "src/new.rs"),
                change(2, "modify", "src/lib.rs"),
                RecordedChange {
                    also_running: vec!["another agent".to_owned()],
                    ..change(3, "delete", "old.rs")
                },
                RecordedChange {
                    from: Some("a.rs".to_owned()),
                    ..change(4, "rename", "b.rs")
                },
                RecordedChange {
                    mode: Some("755".to_owned()),
                    ..change(5, "chmod", "run.sh")
                },
            ],
        }
    }

    #[test]
    fn changesets_tell_who_and_what() {
        let unfinished = Changeset {
            state: ChangesetState::Open,
            reason: String::new(),
            job: None,
            entries: 0,
            changes: Vec::new(),
            ..changeset()
        };
        insta::assert_snapshot!(describe(Palette::Plain, &[changeset(), unfinished]));
    }
}
