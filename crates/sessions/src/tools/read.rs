//! `read`: a file, part of a file, or a directory listing.

use async_trait::async_trait;
use plans::{Explorer, FileKind, RelPath};
use serde::Deserialize;

use super::error::ToolError;
use super::list;
use super::order::Touches;
use super::parameters::{Parameter, Takes, optional, required};
use super::path::SandboxPath;
use super::running::{self, Running};
use super::spec::{Access, ToolboxOptions};
use super::text::{SHOWN_LIMIT_BYTES, beginning};
use super::tool::{About, Tool, ToolOutput};
use crate::ports::Ports;

/// The largest file to read, since all of it is held in memory. For a larger one there is the shell.
pub(super) const FILE_LIMIT_BYTES: u64 = 32 * 1024 * 1024;
/// How many bytes are checked to tell whether a file is text.
const LOOKED_AT_BYTES: usize = 8 * 1024;
/// The most lines of an answer.
const MOST_LINES: u64 = 1_000_000;
/// How similar a name must be to be suggested.
const LIKENESS: f64 = 0.7;

#[derive(Debug)]
pub(super) struct Read {
    place: SandboxPath,
    from: u64,
    lines: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    from: Option<u64>,
    lines: Option<u64>,
}

#[async_trait]
impl Tool for Read {
    type Arguments = Arguments;
    const NAME: &'static str = "read";
    const DESCRIPTION: &'static str = "Reads a text file, or lists a directory. Paths are relative to the root of the \
        workspace. A long file is cut at 31 KiB, and the answer says where to continue.";
    const ACCESS: Access = Access::Reads;

    fn parameters(_ports: &Ports) -> Vec<Parameter> {
        let number = Takes::Number {
            least: 1,
            most: MOST_LINES,
        };
        vec![
            required(
                "path",
                Takes::Text,
                "The file or directory, for example `src/main.rs`.",
            ),
            optional("from", number.clone(), "The first line, counted from 1."),
            optional("lines", number, "How many lines. Default: as many as fit."),
        ]
    }

    async fn prepare(arguments: Arguments, options: &ToolboxOptions) -> Result<Self, ToolError> {
        Ok(Self {
            place: running::place(options, &arguments.path).await?,
            from: arguments.from.unwrap_or(1),
            lines: arguments.lines.unwrap_or(MOST_LINES),
        })
    }

    fn about(&self) -> About {
        About {
            title: format!("read {}", self.place),
            subjects: vec![self.place.to_string()],
            touches: Touches::Reads(vec![self.place.clone()]),
            whole_trees: Vec::new(),
        }
    }

    async fn run(self, running: &Running<'_>) -> Result<ToolOutput, ToolError> {
        running.explore(move |explorer, _| self.look(explorer)).await
    }
}

impl Read {
    fn look(&self, explorer: &Explorer<'_, '_>) -> Result<ToolOutput, ToolError> {
        let SandboxPath::Path(path) = &self.place else {
            return list::names(explorer.tree(), &self.place);
        };
        let tree = explorer.tree();
        let failed = |error| ToolError::of_tree(path, &error);
        match tree.stat(path).map_err(failed)?.map(|stat| stat.kind) {
            None => Err(not_found(explorer, path)),
            Some(FileKind::Directory) => list::names(tree, &self.place),
            Some(FileKind::Symlink) => {
                let target = tree.link_target(path).map_err(failed)?;
                let target = String::from_utf8_lossy(&target.0).into_owned();
                Ok(ToolOutput::done(format!(
                    "[`{path}` is a symlink to `{target}`; read that path if it is in the workspace]"
                )))
            }
            Some(FileKind::Special) => Err(ToolError::Refused(format!("`{path}` is not a regular file."))),
            Some(FileKind::File) => {
                let content = read_text(explorer, path)?;
                self.part_of(path, &content)
            }
        }
    }

    /// The requested lines, as many as fit.
    fn part_of(&self, path: &RelPath, content: &[u8]) -> Result<ToolOutput, ToolError> {
        if content.is_empty() {
            return Ok(ToolOutput::done("[the file is empty]"));
        }
        let lines = lines_of(&path.to_string(), content, self.from, self.lines)?;
        if lines.is_to_the_end() {
            return Ok(ToolOutput::done(lines.text));
        }
        let mut text = lines.text;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!(
            "[lines {} to {} of {}; go on with \"from\": {}]",
            lines.first,
            lines.last,
            lines.total,
            lines.last + 1
        ));
        Ok(ToolOutput::done(text).with_full(path.to_string()))
    }
}

/// Some lines of a file, unchanged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileLines {
    /// The lines.
    pub text: String,
    /// The number of the first line, from 1.
    pub first: u64,
    /// The number of the last line.
    pub last: u64,
    /// How many lines the file has.
    pub total: u64,
}

impl FileLines {
    /// Whether these lines reach the end of the file.
    #[must_use]
    pub fn is_to_the_end(&self) -> bool {
        self.last >= self.total
    }
}

/// At most `count` lines starting at line `first`, as many as fit into an answer.
///
/// # Errors
/// The file has fewer lines.
pub fn lines_of(path: &str, content: &[u8], first: u64, count: u64) -> Result<FileLines, ToolError> {
    let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    let total = lines.len() as u64;
    if first > total.max(1) {
        return Err(ToolError::Refused(format!(
            "`{path}` has {total} lines, so there is no line {first}."
        )));
    }
    let skipped = usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX);
    let wanted = usize::try_from(count).unwrap_or(usize::MAX);
    let (mut text, mut shown) = (String::new(), 0);
    for line in lines.iter().skip(skipped).take(wanted) {
        let line = String::from_utf8_lossy(line);
        if text.len() + line.len() <= SHOWN_LIMIT_BYTES {
            text.push_str(&line);
            shown += 1;
            continue;
        }
        if shown == 0 {
            // A line that doesn't fit on its own is shown in part, so that the reader can move on to the next
            // one.
            text.push_str(beginning(&line, SHOWN_LIMIT_BYTES).0);
            text.push_str(&format!("\n[line {first} is cut: it has {} bytes]\n", line.len()));
            shown += 1;
        }
        break;
    }
    Ok(FileLines {
        text,
        first,
        last: (first + shown).saturating_sub(1),
        total,
    })
}

/// The content of a text file.
pub(super) fn read_text(explorer: &Explorer<'_, '_>, path: &RelPath) -> Result<Vec<u8>, ToolError> {
    let content = match explorer.tree().read(path, FILE_LIMIT_BYTES) {
        Ok(content) => content,
        Err(plans::TreeError::NotFound { .. }) => return Err(not_found(explorer, path)),
        Err(error @ plans::TreeError::TooLarge { .. }) => {
            return Err(ToolError::Refused(format!(
                "{error}. Look at a part of it with a command, for example `sed -n 1,100p`."
            )));
        }
        Err(error) => return Err(ToolError::of_tree(path, &error)),
    };
    if is_binary(&content) {
        return Err(ToolError::Refused(format!(
            "`{path}` is not text; it has {} bytes. Inspect it with a command that understands it.",
            content.len()
        )));
    }
    Ok(content)
}

/// Whether content is binary, judging by its start.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(LOOKED_AT_BYTES)].contains(&0)
}

fn not_found(explorer: &Explorer<'_, '_>, path: &RelPath) -> ToolError {
    match similar_path(explorer, path) {
        None => ToolError::missing(path),
        Some(meant) => ToolError::Refused(format!(
            "there is nothing at `{path}`. Did you mean `{meant}`? List the directory to see what is there."
        )),
    }
}

/// The existing path with the most similar name in the same directory, for a path that doesn't exist.
#[must_use]
pub fn similar_path(explorer: &Explorer<'_, '_>, path: &RelPath) -> Option<String> {
    let directory = path.parent();
    let names = explorer.tree().list(directory.as_ref()).ok()?;
    let wanted = path.name().to_string_lossy().to_lowercase();
    let near = names.into_iter().filter_map(|(name, _)| {
        let name = name.into_string().ok()?;
        let likeness = strsim::normalized_damerau_levenshtein(&name.to_lowercase(), &wanted);
        (likeness >= LIKENESS).then_some((likeness, name))
    });
    let (_, name) = near.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(match directory {
        Some(directory) => format!("{directory}/{name}"),
        None => name,
    })
}
