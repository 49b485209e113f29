//! Writes files of a sandbox and records each write as it happens.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::{ChangeFiles, FileOperation, FilesChanged, RecordedChange};

use super::labels::short;
use super::{path, post};
use crate::cli::{Operation, PlanRecordArguments};
use crate::client::Client;
use crate::commands::ids::PLAN;
use crate::error::{Exit, Failure};
use crate::output::Report;
use crate::printable::Answer;
use crate::start::Repeat;

/// The most content we read. The daemon has its own limit for one request.
const CONTENT_LIMIT_BYTES: usize = 64 << 20;

pub(super) fn run(arguments: &PlanRecordArguments, client: &Client) -> Result<Report, Failure> {
    // Report invalid arguments before starting a daemon.
    let wanted = arguments.operation().map_err(|message| {
        Failure::new(Exit::Usage, "usage", message).advise("see `tidelock plan record --help`")
    })?;
    let request = ChangeFiles {
        changeset: None,
        tool: arguments.tool.clone(),
        reason: arguments.reason.clone(),
        operations: vec![operation(wanted)?],
    };
    let id = PLAN.find(&arguments.plan.plan, client)?;
    let changed: Answer<FilesChanged> = post(&path(&id, "/changes"), &request, Repeat::Harmful, client)?;
    Ok(Report::shown(told(&changed), changed))
}

fn told(changed: &FilesChanged) -> String {
    if changed.changes.is_empty() {
        return "Nothing to record: it is already like that.\n".to_owned();
    }
    let line = |change: &RecordedChange| {
        let from = change
            .from
            .as_deref()
            .map_or_else(String::new, |from| format!("{from} -> "));
        let (kind, path, changeset) = (&change.kind, &change.path, short(&changed.changeset));
        format!("{kind} {from}{path}, as number {} in {changeset}\n", change.entry)
    };
    changed.changes.iter().map(line).collect()
}

fn operation(wanted: Operation) -> Result<FileOperation, Failure> {
    Ok(match wanted {
        Operation::Write { path, from } => {
            let content = match from {
                Some(from) => read(&from)?,
                None => Vec::new(),
            };
            let (text, base64) = match String::from_utf8(content) {
                Ok(text) => (Some(text), None),
                Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
            };
            FileOperation::Write {
                path: as_text(&path),
                text,
                base64,
                executable: None,
                if_hash: None,
            }
        }
        Operation::Delete { path } => FileOperation::Delete { path: as_text(&path) },
        Operation::Rename { from, path } => FileOperation::Rename {
            from: as_text(&from),
            path: as_text(&path),
        },
        Operation::Symlink { path, target } => FileOperation::Symlink {
            path: as_text(&path),
            target: as_text(&target),
        },
        Operation::Chmod { path, executable } => FileOperation::Chmod {
            path: as_text(&path),
            executable,
        },
        Operation::Edit { path, find, replace } => FileOperation::Edit {
            path: as_text(&path),
            find,
            replace,
        },
    })
}

/// A path in the form that the daemon reads and shows: text unchanged, and other bytes as `\xNN`.
pub(super) fn as_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    let limit = CONTENT_LIMIT_BYTES as u64 + 1;
    let is_read = if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut content)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut content))
    };
    is_read.map_err(|error| {
        let message = format!("`{}` cannot be read: {error}", path.display());
        Failure::new(Exit::Refused, "path_unusable", message).advise("choose a file that you can read")
    })?;
    if content.len() > CONTENT_LIMIT_BYTES {
        let message = format!("`{}` has more than {CONTENT_LIMIT_BYTES} bytes", path.display());
        return Err(Failure::new(Exit::Refused, "path_unusable", message)
            .advise("copy it with `tidelock plan exec PLAN -- cp FROM TO`"));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_path_is_sent_as_it_is_shown() {
        for (bytes, expected) in [
            (&b"src/main.rs"[..], "src/main.rs"),
            (b"a\\\\b", "a\\\\b"),
            (b"a\xffb\xc3\xa4", "a\\xffbä"),
        ] {
            assert_eq!(as_text(Path::new(OsStr::from_bytes(bytes))), expected);
        }
    }

    #[test]
    fn what_is_not_text_is_written_in_base64() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        for (content, expected_text, expected_base64) in [
            (&b"hello\n"[..], Some("hello\n"), None),
            (b"", Some(""), None),
            (b"\xff\x00", None, Some("/wA=")),
        ] {
            std::fs::write(&file, content).unwrap();
            let wanted = Operation::Write {
                path: "a".into(),
                from: Some(file.clone()),
            };
            assert_eq!(
                operation(wanted).unwrap(),
                FileOperation::Write {
                    path: "a".to_owned(),
                    text: expected_text.map(str::to_owned),
                    base64: expected_base64.map(str::to_owned),
                    executable: None,
                    if_hash: None,
                }
            );
        }
    }

    #[test]
    fn what_was_recorded_is_told_line_by_line() {
        let change = |kind: &str, from: Option<&str>| RecordedChange {
            entry: 4,
            at: String::new(),
            kind: kind.to_owned(),
            path: "b".to_owned(),
            from: from.map(str::to_owned),
            before: None,
            after: None,
            mode: None,
            also_running: Vec::new(),
        };
        let changed = |changes| FilesChanged {
            changeset: "changeset_01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(),
            changes,
        };
        for (changes, expected) in [
            (Vec::new(), "Nothing to record: it is already like that.\n"),
            (
                vec![change("create", None), change("rename", Some("a"))],
                "create b, as number 4 in 9G5FAV\nrename a -> b, as number 4 in 9G5FAV\n",
            ),
        ] {
            assert_eq!(told(&changed(changes)), expected);
        }
    }
}
