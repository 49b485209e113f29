//! A plan's changes, as an editor shows them: one tool call, with a diff per file.

use std::path::Path;

use protocol::{DiffLine, DiffLineKind, FileDiff, Plan, PlanDiff, PlanFile, PlanState};
use serde_json::{Value, json};

use super::open::Shown;
use super::tools::text_content;
use crate::client::{Client, ClientError, path_segment};
use crate::commands::plan::{read_diff, summary};
use crate::error::Failure;
use crate::units::format_count;

/// How many files are shown. The rest are only counted.
const FILES_SHOWN: usize = 50;
/// The largest file that is shown whole. For a larger one, only the hunks are shown.
const FILE_LIMIT_BYTES: usize = 256 << 10;
/// The total shown. An editor keeps all of it, and a message is one line.
const SHOWN_LIMIT_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Changes {
    pub(super) update: Value,
    pub(super) numbers: String,
    pub(super) shown: Shown,
}

/// Whether there is something to review. A plan that was already applied or discarded has nothing.
pub(super) fn has_work(plan: &Plan) -> bool {
    plan.summary.files > 0 && matches!(plan.state, PlanState::Open | PlanState::Sealed)
}

pub(super) fn read(plan: &Plan, call: &str, client: &Client) -> Result<Changes, Failure> {
    let (answer, _) = read_diff(&plan.id, "", client)?;
    let diff: PlanDiff =
        serde_json::from_value(answer).map_err(|source| ClientError::NotUnderstood { source })?;
    let root = Path::new(&plan.root);
    let mut content = Vec::new();
    let mut left_bytes = SHOWN_LIMIT_BYTES;
    for file in diff.files.iter().take(FILES_SHOWN) {
        let now = || {
            let path = format!("/file?path={}", path_segment(&file.path));
            let answer = client.fetch(&crate::commands::plan::path(&plan.id, &path)).ok()?;
            let found: PlanFile = serde_json::from_value(answer).ok()?;
            found.text.filter(|text| text.len() <= FILE_LIMIT_BYTES)
        };
        let shown = shown(file, root, now);
        let bytes = shown.to_string().len();
        content.push(if bytes <= left_bytes {
            left_bytes -= bytes;
            shown
        } else {
            text_content(&format!("{}\n", in_words(file)))
        });
    }
    let hidden = diff.files.len().saturating_sub(FILES_SHOWN);
    if hidden > 0 {
        content.push(text_content(&format!(
            "and {}\n",
            format_count(hidden as u64, "more file")
        )));
    }
    let locations = diff.files.iter().take(FILES_SHOWN);
    let locations: Vec<Value> = locations
        .map(|file| json!({ "path": root.join(&file.path) }))
        .collect();
    let numbers = summary(&diff.summary);
    let update = json!({
        "sessionUpdate": "tool_call",
        "toolCallId": call,
        "title": format!("Changes in the sandbox: {numbers}"),
        "kind": "edit",
        "status": "completed",
        "content": content,
        "locations": locations,
    });
    Ok(Changes {
        update,
        numbers,
        shown: Shown {
            plan: plan.id.clone(),
            fingerprint: diff.fingerprint,
        },
    })
}

/// A file before and after; described in words if it cannot be shown.
fn shown(file: &FileDiff, root: &Path, now: impl FnOnce() -> Option<String>) -> Value {
    if file.binary || file.cut || file.hunks.is_empty() {
        return text_content(&format!("{}\n", in_words(file)));
    }
    let (old, new) = match file.kind.as_str() {
        "create" => (None, side(file, DiffLineKind::Added)),
        "delete" => (Some(side(file, DiffLineKind::Removed)), String::new()),
        _ => match now().and_then(|now| Some((before(&now, file)?, now))) {
            Some((before, now)) => (Some(before), now),
            None => (
                Some(side(file, DiffLineKind::Removed)),
                side(file, DiffLineKind::Added),
            ),
        },
    };
    json!({ "type": "diff", "path": root.join(&file.path), "oldText": old, "newText": new })
}

fn side(file: &FileDiff, kind: DiffLineKind) -> String {
    let lines = file.hunks.iter().flat_map(|hunk| &hunk.lines);
    let lines = lines.filter(|line| line.kind == DiffLineKind::Context || line.kind == kind);
    lines.map(ended).collect()
}

fn ended(line: &DiffLine) -> String {
    let end = if line.no_newline { "" } else { "\n" };
    format!("{}{end}", line.text)
}

/// Reconstructs the old file from the current one and the diff; `None` if the two do not match.
fn before(now: &str, file: &FileDiff) -> Option<String> {
    let lines: Vec<&str> = now.split_inclusive('\n').collect();
    let mut before = String::with_capacity(now.len());
    let mut next = 0_usize;
    for hunk in &file.hunks {
        // An empty range is given by the line before it.
        let start = usize::try_from(hunk.new_start).ok()?;
        let start = if hunk.new_lines == 0 {
            start
        } else {
            start.checked_sub(1)?
        };
        for line in lines.get(next..start)? {
            before.push_str(line);
        }
        next = start;
        for line in &hunk.lines {
            if line.kind != DiffLineKind::Removed {
                if *lines.get(next)? != ended(line) {
                    return None;
                }
                next += 1;
            }
            if line.kind != DiffLineKind::Added {
                before.push_str(&ended(line));
            }
        }
    }
    for line in lines.get(next..)? {
        before.push_str(line);
    }
    Some(before)
}

fn in_words(file: &FileDiff) -> String {
    let from = file
        .from
        .as_ref()
        .map_or_else(String::new, |from| format!(" from {from}"));
    let what = if file.binary {
        "not text, or too large".to_owned()
    } else {
        format!("+{} -{}", file.added_lines, file.removed_lines)
    };
    format!("{} {}{from}: {what}", file.kind, file.path)
}

#[cfg(test)]
mod tests {
    use protocol::DiffHunk;

    use super::*;

    fn file(kind: &str, hunks: Vec<DiffHunk>) -> FileDiff {
        FileDiff {
            path: "a".to_owned(),
            from: None,
            kind: kind.to_owned(),
            old_mode: None,
            new_mode: None,
            binary: false,
            added_lines: 1,
            removed_lines: 2,
            hunks,
            cut: false,
        }
    }

    /// A hunk from lines such as ` x`, `+y`, `-z`; a trailing `\` means that no newline follows.
    fn hunk(new_start: u64, lines: &[&str]) -> DiffHunk {
        let lines: Vec<DiffLine> = lines
            .iter()
            .map(|line| DiffLine {
                kind: match &line[..1] {
                    "+" => DiffLineKind::Added,
                    "-" => DiffLineKind::Removed,
                    _ => DiffLineKind::Context,
                },
                text: line[1..].trim_end_matches('\\').to_owned(),
                no_newline: line.ends_with('\\'),
            })
            .collect();
        let count = |kind| lines.iter().filter(|line| line.kind != kind).count() as u64;
        DiffHunk {
            old_start: 0,
            old_lines: count(DiffLineKind::Added),
            new_start,
            new_lines: count(DiffLineKind::Removed),
            lines,
        }
    }

    #[test]
    fn a_file_as_it_was_is_made_from_what_was_changed() {
        for (now, hunks, expected) in [
            (
                "a\nB\nc\n",
                vec![hunk(1, &[" a", "-b", "+B", " c"])],
                Some("a\nb\nc\n"),
            ),
            ("a\nc\n", vec![hunk(1, &["-b"])], Some("a\nb\nc\n")),
            ("", vec![hunk(0, &["-a", "-b\\"])], Some("a\nb")),
            (
                "x\n1\n2\n3\ny\n",
                vec![hunk(1, &["+x", " 1"]), hunk(4, &[" 3", "+y"])],
                Some("1\n2\n3\n"),
            ),
            ("a\nb", vec![hunk(1, &[" a", "-b", "+b\\"])], Some("a\nb\n")),
            // Not the file that was compared.
            ("z\n", vec![hunk(1, &[" a", "+b"])], None),
            ("a\n", vec![hunk(7, &["+b"])], None),
        ] {
            assert_eq!(
                before(now, &file("modify", hunks)).as_deref(),
                expected,
                "{now:?}"
            );
        }
    }

    #[test]
    fn files_are_shown_whole_or_in_part_or_in_words() {
        let root = Path::new("/w");
        let changed = || vec![hunk(2, &[" b", "-c", "+d"])];
        let diff =
            |old: Value, new: &str| json!({ "type": "diff", "path": "/w/a", "oldText": old, "newText": new });
        let now = || Some("a\nb\nd\n".to_owned());
        let nothing = || None;
        assert_eq!(
            shown(&file("modify", changed()), root, now),
            diff(json!("a\nb\nc\n"), "a\nb\nd\n")
        );
        assert_eq!(
            shown(&file("modify", changed()), root, nothing),
            diff(json!("b\nc\n"), "b\nd\n")
        );
        assert_eq!(
            shown(&file("create", vec![hunk(1, &["+x"])]), root, nothing),
            diff(Value::Null, "x\n")
        );
        assert_eq!(
            shown(&file("delete", vec![hunk(0, &["-x"])]), root, nothing),
            diff(json!("x\n"), "")
        );
        let binary = FileDiff {
            binary: true,
            from: Some("b".to_owned()),
            ..file("rename", Vec::new())
        };
        assert_eq!(
            shown(&binary, root, nothing),
            text_content("rename a from b: not text, or too large\n")
        );
        assert_eq!(
            shown(&file("chmod", Vec::new()), root, nothing),
            text_content("chmod a: +1 -2\n")
        );
    }
}
