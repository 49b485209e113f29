//! Files of a plan are read and written.

use protocol::{ChangeFiles, FileOperation, FilesChanged, PlanFile};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::entry::{
    Answer, Entry, Interruption, Nature, number, object, plan_member, reads, text, yes_or_no,
};
use super::plan::overlap_line;
use crate::http::read_plan_file;
use crate::mcp::bounds::{TEXT_LIMIT_BYTES, beginning};
use crate::mcp::call::{Call, Reply, arguments};
use crate::mcp::current::{Ground, forget_if_over, plan_of};
use crate::mcp::error::ToolError;
use crate::mcp::inside::Refused;
use crate::mcp::place::path_in_plan;

/// How much of a file stands in an answer. The rest of the room is for what is said about it.
const FILE_LIMIT_BYTES: usize = TEXT_LIMIT_BYTES - 1024;

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "plan_read",
        title: "Read a file",
        description: "Reads a file of the plan, with your changes in it, or lists a directory. Read a file before you edit it. \
            Example: {\"path\": \"src/main.rs\"}",
        schema: read_schema,
        nature: Nature::Reads,
        interruption: Interruption::Dropped,
        run: |call, given| Box::pin(read(call, given)),
        read: reads::<ReadArguments>,
    },
    Entry {
        name: "plan_write",
        title: "Write a file",
        description: "Writes a whole file of the plan; directories on the way are made. For a small change use plan_edit. \
            Example: {\"path\": \"notes.md\", \"text\": \"# Notes\\n\"}",
        schema: write_schema,
        nature: Nature::Replaces,
        interruption: Interruption::Itself,
        run: |call, given| Box::pin(write(call, given)),
        read: reads::<WriteArguments>,
    },
    Entry {
        name: "plan_edit",
        title: "Edit a file",
        description: "Replaces a piece of a file of the plan. `find` must be the exact text, spaces included, and occur exactly \
            once: take a line or two around it. \
            Example: {\"path\": \"src/main.rs\", \"find\": \"hello\", \"replace\": \"goodbye\"}",
        schema: edit_schema,
        nature: Nature::Changes,
        interruption: Interruption::Itself,
        run: |call, given| Box::pin(edit(call, given)),
        read: reads::<EditArguments>,
    },
    Entry {
        name: "plan_delete",
        title: "Delete a file",
        description: "Deletes a file or a directory of the plan, with all that is in it. Example: {\"path\": \"old.rs\"}",
        schema: delete_schema,
        nature: Nature::Replaces,
        interruption: Interruption::Itself,
        run: |call, given| Box::pin(delete(call, given)),
        read: reads::<DeleteArguments>,
    },
];

fn path_member() -> (&'static str, Value) {
    ("path", text("Path from the root of the workspace."))
}

fn reason_member() -> (&'static str, Value) {
    (
        "reason",
        text("Why, in one line; people see it when they review."),
    )
}

fn read_schema() -> Value {
    object(
        &[path_member()],
        &[
            (
                "first_line",
                number(1, u64::from(u32::MAX), "Begin at this line, from 1."),
            ),
            ("last_line", number(1, u64::from(u32::MAX), "End with this line.")),
            plan_member(),
        ],
    )
}

fn write_schema() -> Value {
    object(
        &[path_member(), ("text", text("The whole content."))],
        &[
            (
                "executable",
                yes_or_no("Whether it can be executed; as it was if left out."),
            ),
            (
                "if_hash",
                text(
                    "Refuse unless the file has this hash, which plan_read shows; empty: unless there is none.",
                ),
            ),
            reason_member(),
            plan_member(),
        ],
    )
}

fn edit_schema() -> Value {
    object(
        &[
            path_member(),
            ("find", text("The exact text that is there now.")),
            ("replace", text("What takes its place.")),
        ],
        &[reason_member(), plan_member()],
    )
}

fn delete_schema() -> Value {
    object(&[path_member()], &[reason_member(), plan_member()])
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    path: String,
    first_line: Option<usize>,
    last_line: Option<usize>,
    plan: Option<String>,
}

async fn read(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let ReadArguments {
        path,
        first_line,
        last_line,
        plan,
    } = arguments(given)?;
    let ground = plan_of(call, plan.as_deref()).await?;
    let path = path_in_plan(&ground, &path)?;
    let path = match path.as_str() {
        "." => "",
        path => path.trim_end_matches('/'),
    };
    // Agents do this all day, so it is not asked as a request but done as one would do it.
    let found = read_plan_file(call.app, ground.plan()?, path).await;
    let found: Result<PlanFile, ToolError> = found.map_err(|problem| Refused::from(problem).into());
    if let Err(error) = &found {
        forget_if_over(call, &ground, error);
    }
    let file = found?;
    Ok(Reply::text(told(&file, first_line, last_line)?).into())
}

fn told(file: &PlanFile, first: Option<usize>, last: Option<usize>) -> Result<String, ToolError> {
    match (file.kind.as_str(), &file.text) {
        ("directory", _) => Ok(match file.names.is_empty() {
            true => "The directory is empty.\n".to_owned(),
            false => beginning(
                format!("{}\n", file.names.join("\n")),
                FILE_LIMIT_BYTES,
                "list a part of it with plan_shell",
            ),
        }),
        ("symlink", _) => Ok(format!(
            "It is a symlink to {}.\n",
            file.target.as_deref().unwrap_or_default()
        )),
        (_, Some(text)) => lines_of(text, file.hash.as_deref(), (first, last)),
        (_, None) => {
            let size = file.base64.as_ref().map_or(0, |base64| base64.len() / 4 * 3);
            Ok(format!(
                "It isn't text: about {size} bytes. Inspect it with plan_shell.\n"
            ))
        }
    }
}

/// The lines that were asked for, as they are, and what is to be said about them in the first line.
fn lines_of(
    text: &str,
    hash: Option<&str>,
    (first, last): (Option<usize>, Option<usize>),
) -> Result<String, ToolError> {
    let first = first.unwrap_or(1);
    let last = last.unwrap_or(usize::MAX);
    if first == 0 || last < first {
        return Err(ToolError::argument(
            "first_line",
            "lines count from 1, and the last line can't come before the first",
        ));
    }
    let total = text.lines().count();
    let mut shown = String::new();
    let mut end = first.saturating_sub(1);
    for line in text.split_inclusive('\n').skip(first - 1).take(last - first + 1) {
        if shown.len() + line.len() > FILE_LIMIT_BYTES {
            break;
        }
        shown.push_str(line);
        end += 1;
    }
    if end < last.min(total) && shown.is_empty() {
        // One line is longer than an answer may be.
        let line = text.split_inclusive('\n').nth(first - 1).unwrap_or_default();
        return Ok(beginning(
            line.to_owned(),
            FILE_LIMIT_BYTES,
            "read the rest of this line with plan_shell",
        ));
    }
    let hash = hash.map(|hash| format!(", hash {hash}")).unwrap_or_default();
    let head = match (first, end >= total) {
        (1, true) if total == 1 => format!("[1 line{hash}]\n"),
        (1, true) => format!("[{total} lines{hash}]\n"),
        (_, true) => format!("[lines {first} to {end} of {total}{hash}]\n"),
        (_, false) => {
            let next = end + 1;
            format!("[lines {first} to {end} of {total}{hash}; continue with first_line {next}]\n")
        }
    };
    Ok(format!("{head}{shown}"))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: String,
    text: String,
    executable: Option<bool>,
    if_hash: Option<String>,
    reason: Option<String>,
    plan: Option<String>,
}

async fn write(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let WriteArguments {
        path,
        text,
        executable,
        if_hash,
        reason,
        plan,
    } = arguments(given)?;
    let ground = plan_of(call, plan.as_deref()).await?;
    let operation = FileOperation::Write {
        path: path_in_plan(&ground, &path)?,
        text: Some(text),
        base64: None,
        executable,
        if_hash,
    };
    changed(call, &ground, "plan_write", reason, operation).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    path: String,
    find: String,
    replace: String,
    reason: Option<String>,
    plan: Option<String>,
}

async fn edit(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let EditArguments {
        path,
        find,
        replace,
        reason,
        plan,
    } = arguments(given)?;
    let ground = plan_of(call, plan.as_deref()).await?;
    let operation = FileOperation::Edit {
        path: path_in_plan(&ground, &path)?,
        find,
        replace,
    };
    changed(call, &ground, "plan_edit", reason, operation).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    path: String,
    reason: Option<String>,
    plan: Option<String>,
}

async fn delete(call: &Call<'_>, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let DeleteArguments { path, reason, plan } = arguments(given)?;
    let ground = plan_of(call, plan.as_deref()).await?;
    let operation = FileOperation::Delete {
        path: path_in_plan(&ground, &path)?,
    };
    changed(call, &ground, "plan_delete", reason, operation).await
}

async fn changed(
    call: &Call<'_>,
    ground: &Ground,
    tool: &str,
    reason: Option<String>,
    operation: FileOperation,
) -> Result<Answer, ToolError> {
    let order = ChangeFiles {
        changeset: None,
        tool: Some(tool.to_owned()),
        reason: reason.unwrap_or_default(),
        operations: vec![operation],
    };
    let path = format!("/v1/plans/{}/changes", ground.id);
    let done: Result<FilesChanged, ToolError> = call.post(&path, &order).await;
    if let Err(error) = &done {
        forget_if_over(call, ground, error);
    }
    let done = done?;
    let mut text: String = done
        .changes
        .iter()
        .take(20)
        .map(|change| format!("{} {}\n", change.kind, change.path))
        .collect();
    match done.changes.len() {
        0 => text.push_str("Nothing changed: it is already like that.\n"),
        count if count > 20 => text.push_str(&format!("and {} more\n", count - 20)),
        _ => {}
    }
    if let Ok(id) = ground.id.parse() {
        for overlap in &call.app.plans.overlaps(id) {
            text.push_str(&overlap_line(overlap));
        }
    }
    Ok(Reply::text(text).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_they_are_and_say_where_to_go_on() {
        let text = "one\ntwo\r\nthree";
        for (lines, expected) in [
            ((None, None), "[3 lines, hash h]\none\ntwo\r\nthree"),
            ((Some(2), None), "[lines 2 to 3 of 3, hash h]\ntwo\r\nthree"),
            (
                (Some(2), Some(2)),
                "[lines 2 to 2 of 3, hash h; continue with first_line 3]\ntwo\r\n",
            ),
            ((None, Some(9)), "[3 lines, hash h]\none\ntwo\r\nthree"),
            ((Some(9), None), "[lines 9 to 8 of 3, hash h]\n"),
        ] {
            assert_eq!(lines_of(text, Some("h"), lines).unwrap(), expected, "{lines:?}");
        }
        assert!(lines_of(text, None, (Some(0), None)).is_err());
        assert!(lines_of(text, None, (Some(2), Some(1))).is_err());
        assert_eq!(lines_of("", None, (None, None)).unwrap(), "[0 lines]\n");
        let long = "x".repeat(FILE_LIMIT_BYTES - 1) + "\nlast\n";
        let told = lines_of(&long, None, (None, None)).unwrap();
        assert!(
            told.starts_with("[lines 1 to 1 of 2; continue with first_line 2]\nxxx"),
            "{}",
            &told[..80]
        );
        let huge = "x".repeat(FILE_LIMIT_BYTES * 2);
        let told = lines_of(&huge, None, (None, None)).unwrap();
        assert!(
            told.len() < TEXT_LIMIT_BYTES && told.contains("bytes omitted"),
            "{}",
            told.len()
        );
    }
}
