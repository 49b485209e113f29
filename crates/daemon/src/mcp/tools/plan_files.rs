//! Reads and writes files of a plan.

use plans::RelPath;
use protocol::{ChangeFiles, ErrorCode, FileOperation, PlanFile};
use serde::Deserialize;
use sessions::tools::{
    Parameter, SHOWN_LIMIT_BYTES, SandboxPath, Takes, cut, find_once, lines_of, optional, required,
    similar_path,
};

use super::entry::{Answer, Effect, Entry, plan, tool};
use super::plan::overlap_line;
use crate::http::Problem;
use crate::mcp::call::{Call, Reply};
use crate::mcp::error::ToolError;
use crate::mcp::working_plan::{WorkingPlan, done_in, plan_of};
use crate::plans::acts;

/// How many changed paths an answer names.
const NAMED_CHANGES: usize = 20;

pub(super) fn tools() -> Vec<Entry> {
    let path = || required("path", Takes::Text, "Path relative to the root of the workspace.");
    let reason = || {
        optional(
            "reason",
            Takes::Text,
            "Why, in one line; people see it when they review.",
        )
    };
    vec![
        tool(
            "plan_read",
            "Read a file",
            "Reads a file of the plan, with your changes in it, or lists a directory. Read a file before you edit it. \
             Example: {\"path\": \"src/main.rs\"}",
            vec![
                path(),
                line("first_line", "Start at this line, counted from 1."),
                line("last_line", "End with this line."),
                plan(),
            ],
            Effect::Reads,
            |call, arguments| Box::pin(read(call, arguments)),
        ),
        tool(
            "plan_write",
            "Write a file",
            "Writes a whole file of the plan, and creates missing directories. For a small change use plan_edit. \
             Example: {\"path\": \"notes.md\", \"text\": \"# Notes\\n\"}",
            vec![
                path(),
                required("text", Takes::Text, "The whole content."),
                optional(
                    "executable",
                    Takes::YesOrNo,
                    "Whether it is executable. Default: as it was.",
                ),
                optional(
                    "if_hash",
                    Takes::Text,
                    "Refuse unless the file has this hash, which plan_read shows. Empty: refuse if the file exists.",
                ),
                reason(),
                plan(),
            ],
            Effect::Replaces,
            |call, arguments| Box::pin(write(call, arguments)),
        ),
        tool(
            "plan_edit",
            "Edit a file",
            "Replaces a piece of a file of the plan. `find` must be the exact text, including whitespace, and occur exactly \
             once: include a line or two around it. \
             Example: {\"path\": \"src/main.rs\", \"find\": \"hello\", \"replace\": \"goodbye\"}",
            vec![
                path(),
                required("find", Takes::Text, "The exact text that is there now."),
                required("replace", Takes::Text, "The text that replaces it."),
                reason(),
                plan(),
            ],
            Effect::Changes,
            |call, arguments| Box::pin(edit(call, arguments)),
        ),
        tool(
            "plan_delete",
            "Delete a file",
            "Deletes a file of the plan, or a directory with everything in it. Example: {\"path\": \"old.rs\"}",
            vec![path(), reason(), plan()],
            Effect::Replaces,
            |call, arguments| Box::pin(delete(call, arguments)),
        ),
    ]
}

fn line(name: &'static str, description: &'static str) -> Parameter {
    let takes = Takes::Capped {
        least: 1,
        most: u64::from(u32::MAX),
    };
    optional(name, takes, description)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    path: String,
    first_line: Option<u64>,
    last_line: Option<u64>,
    plan: Option<String>,
}

async fn read(call: &Call<'_>, arguments: ReadArguments) -> Result<Answer, ToolError> {
    let plan = plan_of(call, arguments.plan.as_deref()).await?;
    let path = plan.path(&arguments.path)?;
    let text = match &path {
        SandboxPath::Root => String::new(),
        SandboxPath::Path(path) => path.to_string(),
    };
    let found = acts::read_file(call.app, plan.id, &text).await;
    let found = match (found, path) {
        (Err(problem), SandboxPath::Path(path)) if problem.code() == ErrorCode::FileNotFound => {
            Err(with_similar(call, &plan, path, problem).await)
        }
        (found, _) => found,
    };
    let file = done_in(call, &plan, found)?;
    Ok(Reply::text(shown(&file, arguments.first_line, arguments.last_line)?).into())
}

/// Adds the path that was probably meant, if there is one with a similar name.
async fn with_similar(call: &Call<'_>, plan: &WorkingPlan, path: RelPath, problem: Problem) -> Problem {
    let similar = move |explorer: &mut plans::Explorer<'_, '_>| similar_path(explorer, &path);
    match call.app.plans.explore(plan.id, similar).await {
        Ok(Some(meant)) => problem.and(&format!("Did you mean `{meant}`?")),
        _ => problem,
    }
}

fn shown(file: &PlanFile, first: Option<u64>, last: Option<u64>) -> Result<String, ToolError> {
    match (file.kind.as_str(), &file.text) {
        ("directory", _) => Ok(match file.names.is_empty() {
            true => "The directory is empty.\n".to_owned(),
            false => cut(
                format!("{}\n", file.names.join("\n")),
                SHOWN_LIMIT_BYTES,
                "list a part of it with plan_shell",
            ),
        }),
        ("symlink", _) => Ok(format!(
            "It is a symlink to {}.\n",
            file.target.as_deref().unwrap_or_default()
        )),
        (_, Some(text)) => part_of(file, text, first, last),
        (_, None) => {
            let size = file.base64.as_ref().map_or(0, |base64| base64.len() / 4 * 3);
            Ok(format!(
                "It isn't text: about {size} bytes. Inspect it with plan_shell.\n"
            ))
        }
    }
}

/// The requested lines unchanged, after a header that says which lines they are.
fn part_of(file: &PlanFile, text: &str, first: Option<u64>, last: Option<u64>) -> Result<String, ToolError> {
    let (first, last) = (first.unwrap_or(1), last.unwrap_or(u64::MAX));
    if last < first {
        return Err(ToolError::argument(
            "last_line",
            "can't come before the first line",
        ));
    }
    let count = (last - first).saturating_add(1);
    let lines = lines_of(&file.path, text.as_bytes(), first, count).map_err(ToolError::of_arguments)?;
    let (end, total) = (lines.last, lines.total);
    let hash = file.hash.as_ref().map(|hash| format!(", hash {hash}"));
    let hash = hash.unwrap_or_default();
    let head = match (first, lines.is_to_the_end()) {
        (1, true) if total == 1 => format!("[1 line{hash}]"),
        (1, true) => format!("[{total} lines{hash}]"),
        (_, true) => format!("[lines {first} to {end} of {total}{hash}]"),
        (_, false) => {
            let next = end + 1;
            format!("[lines {first} to {end} of {total}{hash}; continue with first_line {next}]")
        }
    };
    Ok(format!("{head}\n{}", lines.text))
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

async fn write(call: &Call<'_>, arguments: WriteArguments) -> Result<Answer, ToolError> {
    let plan = plan_of(call, arguments.plan.as_deref()).await?;
    let operation = FileOperation::Write {
        path: plan.path(&arguments.path)?.to_string(),
        text: Some(arguments.text),
        base64: None,
        executable: arguments.executable,
        if_hash: arguments.if_hash,
    };
    changed(call, &plan, "plan_write", arguments.reason, operation).await
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

async fn edit(call: &Call<'_>, arguments: EditArguments) -> Result<Answer, ToolError> {
    let plan = plan_of(call, arguments.plan.as_deref()).await?;
    let operation = FileOperation::Edit {
        path: plan.path(&arguments.path)?.to_string(),
        find: arguments.find,
        replace: arguments.replace,
    };
    changed(call, &plan, "plan_edit", arguments.reason, operation).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    path: String,
    reason: Option<String>,
    plan: Option<String>,
}

async fn delete(call: &Call<'_>, arguments: DeleteArguments) -> Result<Answer, ToolError> {
    let plan = plan_of(call, arguments.plan.as_deref()).await?;
    let operation = FileOperation::Delete {
        path: plan.path(&arguments.path)?.to_string(),
    };
    changed(call, &plan, "plan_delete", arguments.reason, operation).await
}

async fn changed(
    call: &Call<'_>,
    plan: &WorkingPlan,
    tool: &str,
    reason: Option<String>,
    operation: FileOperation,
) -> Result<Answer, ToolError> {
    let request = ChangeFiles {
        changeset: None,
        tool: Some(tool.to_owned()),
        reason: reason.unwrap_or_default(),
        operations: vec![operation.clone()],
    };
    let done = match acts::change_files(call.app, &call.caller(), plan.id, request).await {
        Err(problem) if problem.code() == ErrorCode::FileRefused => {
            Err(with_hint(call, plan, operation, problem).await)
        }
        done => done,
    };
    let done = done_in(call, plan, done)?;
    let mut text: String = done
        .changes
        .iter()
        .take(NAMED_CHANGES)
        .map(|change| format!("{} {}\n", change.kind, change.path))
        .collect();
    match done.changes.len() {
        0 => text.push_str("Nothing changed: it is already like that.\n"),
        count if count > NAMED_CHANGES => text.push_str(&format!("and {} more\n", count - NAMED_CHANGES)),
        _ => {}
    }
    for overlap in &call.app.plans.overlaps(plan.id) {
        text.push_str(&overlap_line(overlap));
    }
    Ok(Reply::text(text).into())
}

/// Adds where the text of an edit is, if it doesn't occur exactly once.
async fn with_hint(
    call: &Call<'_>,
    plan: &WorkingPlan,
    operation: FileOperation,
    problem: Problem,
) -> Problem {
    let (path, find) = match operation {
        FileOperation::Edit { path, find, .. } if !find.is_empty() => (path.parse::<RelPath>(), find),
        _ => return problem,
    };
    let Ok(path) = path else {
        return problem;
    };
    let looked = move |explorer: &mut plans::Explorer<'_, '_>| find_once(explorer, &path, &find).map(drop);
    match call.app.plans.explore(plan.id, looked).await {
        Ok(Err(sessions::tools::ToolError::Refused(why))) => Problem::new(problem.code(), why),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use sessions::tools::ANSWER_LIMIT_BYTES;

    use super::*;

    fn part(text: &str, hash: Option<&str>, first: Option<u64>, last: Option<u64>) -> Result<String, String> {
        let file = PlanFile {
            path: "a.txt".to_owned(),
            kind: "file".to_owned(),
            text: Some(text.to_owned()),
            base64: None,
            mode: None,
            hash: hash.map(str::to_owned),
            target: None,
            names: Vec::new(),
        };
        shown(&file, first, last).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_are_as_they_are_and_say_where_to_go_on() {
        let text = "one\ntwo\r\nthree";
        for (first, last, expected) in [
            (None, None, Ok("[3 lines, hash h]\none\ntwo\r\nthree")),
            (Some(2), None, Ok("[lines 2 to 3 of 3, hash h]\ntwo\r\nthree")),
            (
                Some(2),
                Some(2),
                Ok("[lines 2 to 2 of 3, hash h; continue with first_line 3]\ntwo\r\n"),
            ),
            (None, Some(9), Ok("[3 lines, hash h]\none\ntwo\r\nthree")),
            (Some(9), None, Err("`a.txt` has 3 lines, so there is no line 9.")),
            (
                Some(2),
                Some(1),
                Err("`last_line`: can't come before the first line"),
            ),
        ] {
            let found = part(text, Some("h"), first, last);
            assert_eq!(
                found.as_deref().map_err(String::as_str),
                expected,
                "{first:?} {last:?}"
            );
        }
        assert_eq!(part("", None, None, None).unwrap(), "[0 lines]\n");
        let long = "x".repeat(SHOWN_LIMIT_BYTES - 1) + "\nlast\n";
        let shown = part(&long, None, None, None).unwrap();
        assert!(
            shown.starts_with("[lines 1 to 1 of 2; continue with first_line 2]\nxxx"),
            "{}",
            &shown[..80]
        );
        let huge = "x".repeat(SHOWN_LIMIT_BYTES * 2);
        let shown = part(&huge, None, None, None).unwrap();
        assert!(
            shown.len() < ANSWER_LIMIT_BYTES && shown.contains("[line 1 is cut: it has "),
            "{}",
            shown.len()
        );
    }
}
