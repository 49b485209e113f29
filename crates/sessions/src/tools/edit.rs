//! `edit`: replaces an exact piece of a file, which must occur once.

use async_trait::async_trait;
use plans::{Explorer, FileOperation, RelPath};
use serde::Deserialize;

use super::error::ToolError;
use super::order::Touches;
use super::parameters::{Parameter, Takes, required};
use super::path::SandboxPath;
use super::read::read_text;
use super::running::{self, Running};
use super::spec::{Access, ToolboxOptions};
use super::tool::{About, Tool, ToolOutput};
use crate::ports::Ports;

/// How many matches are listed when there are several.
const NAMED_PLACES: usize = 10;

#[derive(Debug)]
pub(super) struct Edit {
    path: RelPath,
    find: String,
    replace: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    find: String,
    replace: String,
}

#[async_trait]
impl Tool for Edit {
    type Arguments = Arguments;
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = "Replaces a piece of a text file. `find` must be the exact text, including whitespace \
        and line endings, and occur exactly once: include a line or two around it.";
    const ACCESS: Access = Access::WritesPath;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        vec![
            required("path", Takes::Text, "The file, for example `src/main.rs`."),
            required(
                "find",
                Takes::Text,
                "The exact text that is there now. It must occur once.",
            ),
            required(
                "replace",
                Takes::Text,
                "The text that replaces it; empty to remove it.",
            ),
        ]
    }

    async fn prepare(arguments: Arguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
        if arguments.find.is_empty() {
            return Err(ToolError::Refused(
                "`find` is empty. Give the text to replace, or use `write` for a whole file.".to_owned(),
            ));
        }
        if arguments.find == arguments.replace {
            return Err(ToolError::Refused(
                "`find` and `replace` are the same, so nothing would change.".to_owned(),
            ));
        }
        Ok(Self {
            path: running::place(options, &arguments.path).await?.path()?,
            find: arguments.find,
            replace: arguments.replace,
        })
    }

    fn about(&self) -> About {
        About {
            title: format!("edit {}", self.path),
            subjects: vec![self.path.to_string()],
            touches: Touches::Writes(vec![SandboxPath::Path(self.path.clone())]),
            whole_trees: Vec::new(),
        }
    }

    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        let (path, find) = (self.path.clone(), self.find.clone());
        // The plan checks again when it writes. This check is for a better error message.
        let line = running
            .explore(move |explorer, _| find_once(explorer, &path, &find))
            .await?;
        let path = self.path.clone();
        let operation = FileOperation::Edit {
            path: self.path,
            find: self.find,
            replace: self.replace,
        };
        running.change(Self::NAME, operation).await?;
        Ok(ToolOutput::done(format!("Edited `{path}` at line {line}.")))
    }
}

/// The line of the only match of a text in a file.
///
/// # Errors
/// The text doesn't occur, or occurs several times. The error says where, and what to do about it.
pub fn find_once(explorer: &Explorer<'_, '_>, path: &RelPath, find: &str) -> Result<usize, ToolError> {
    the_one_line(path, &read_text(explorer, path)?, find)
}

fn the_one_line(path: &RelPath, content: &[u8], find: &str) -> Result<usize, ToolError> {
    let places = places(content, find.as_bytes());
    let line_of = |place: &usize| 1 + content[..*place].iter().filter(|byte| **byte == b'\n').count();
    match places.as_slice() {
        [place] => Ok(line_of(place)),
        [] => Err(ToolError::Refused(format!(
            "`{path}` was not changed: `find` does not occur in it. {}",
            hint(content, find)
        ))),
        places => {
            let lines: Vec<String> = places
                .iter()
                .take(NAMED_PLACES)
                .map(|place| line_of(place).to_string())
                .collect();
            let and_more = if places.len() > NAMED_PLACES {
                ", and more"
            } else {
                ""
            };
            Err(ToolError::Refused(format!(
                "`{path}` was not changed: `find` occurs {} times in it, at lines {}{and_more}. Give more of what is around \
                 the one that you mean.",
                places.len(),
                lines.join(", ")
            )))
        }
    }
}

/// Where a piece occurs, overlaps included: an overlapping match is one more way to interpret the edit.
fn places(content: &[u8], find: &[u8]) -> Vec<usize> {
    let finder = memchr::memmem::Finder::new(find);
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(at) = content.get(from..).and_then(|rest| finder.find(rest)) {
        found.push(from + at);
        from += at + 1;
    }
    found
}

/// Guesses why a piece doesn't occur.
fn hint(content: &[u8], find: &str) -> String {
    if find.contains('\n') && !find.contains("\r\n") && content.windows(2).any(|pair| pair == b"\r\n") {
        return "The lines of this file end with `\\r\\n`; give them so.".to_owned();
    }
    let text = String::from_utf8_lossy(content);
    let wanted: Vec<&str> = find
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let lines: Vec<(usize, &str)> = (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let similar = |lines: &[(usize, &str)]| lines.iter().map(|(_, line)| *line).eq(wanted.iter().copied());
    let at = |found: &[(usize, &str)]| found.first().map_or(1, |(number, _)| *number);
    if let Some(found) = wanted
        .len()
        .checked_sub(1)
        .and_then(|_| lines.windows(wanted.len()).find(|window| similar(window)))
    {
        return format!(
            "At line {} it stands with other spaces or empty lines. Read that part, and copy it exactly.",
            at(found)
        );
    }
    match wanted
        .first()
        .and_then(|first| lines.iter().find(|(_, line)| line == first))
    {
        Some((number, _)) => format!(
            "Its first line is at line {number}, but what follows there is something else. Read that part, and copy it \
             exactly."
        ),
        None => "Read the file, and copy the piece exactly.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_must_occur_once_and_else_it_is_said_where() {
        let path: RelPath = "a.txt".parse().unwrap();
        let not_changed = "`a.txt` was not changed: ";
        let cases: &[(&str, &str, Result<usize, &str>)] = &[
            ("one\ntwo\nthree\n", "two", Ok(2)),
            ("one\ntwo\n", "one\ntwo", Ok(1)),
            (
                "a\nb\na\n",
                "a",
                Err(
                    "`find` occurs 2 times in it, at lines 1, 3. Give more of what is around the one that you mean.",
                ),
            ),
            (
                "aaa",
                "aa",
                Err(
                    "`find` occurs 2 times in it, at lines 1, 1. Give more of what is around the one that you mean.",
                ),
            ),
            (
                "one\n  two\n\nthree\n",
                "two\nthree",
                Err(
                    "`find` does not occur in it. At line 2 it stands with other spaces or empty lines. Read that part, and \
                     copy it exactly.",
                ),
            ),
            (
                "one\ntwo\n",
                "two\nfour",
                Err(
                    "`find` does not occur in it. Its first line is at line 2, but what follows there is something else. \
                     Read that part, and copy it exactly.",
                ),
            ),
            (
                "one\r\ntwo\r\n",
                "one\ntwo",
                Err("`find` does not occur in it. The lines of this file end with `\\r\\n`; give them so."),
            ),
            (
                "one\n",
                "zzz",
                Err("`find` does not occur in it. Read the file, and copy the piece exactly."),
            ),
            (
                "",
                " \n",
                Err("`find` does not occur in it. Read the file, and copy the piece exactly."),
            ),
        ];
        for (content, find, expected) in cases {
            let found = the_one_line(&path, content.as_bytes(), find).map_err(|error| error.to_string());
            let expected = expected.map_err(|text| format!("{not_changed}{text}"));
            assert_eq!(found, expected, "{content:?} {find:?}");
        }
        let many = "x\n".repeat(12);
        let error = the_one_line(&path, many.as_bytes(), "x").unwrap_err().to_string();
        assert!(
            error.contains("12 times in it, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, and more. Give"),
            "{error}"
        );
    }
}
