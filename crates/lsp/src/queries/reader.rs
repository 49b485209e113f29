//! Reading a server's answer, with the context it needs: the question, the location of files, and their content.

use std::{
    collections::VecDeque,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use protocol::{Location, Position, Range};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{capabilities::Capabilities, error::QueryError, limits::QueryLimits};
use crate::text::{LineIndex, PositionEncoding, WirePosition, WireRange, excerpt, path_of_uri};

/// How many texts of other files are cached while an answer is read. Answers are sorted by file, so one would almost be
/// enough.
const KEPT_TEXTS: usize = 8;

/// Reads files, up to its own size limit. For open documents, it returns the server's text.
pub trait Texts: Send + Sync {
    /// `None` if the file is missing, too large, or not text.
    fn text(&self, path: &Path) -> Option<Arc<str>>;
}

/// The document in the question, as the server has it.
#[derive(Clone, Copy, Debug)]
pub struct OpenDocument<'a> {
    /// Its path; absolute.
    pub path: &'a Path,
    pub version: i32,
    pub text: &'a LineIndex,
}

/// Everything an answer depends on.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub server: &'a str,
    pub generation: u64,
    pub root: &'a Path,
    /// The unit it counts in along a line.
    pub encoding: PositionEncoding,
    pub capabilities: &'a Capabilities,
    pub document: Option<OpenDocument<'a>>,
    /// Pushed diagnostics of that document, to ask for fixes.
    pub diagnostics: &'a [Value],
    pub texts: &'a dyn Texts,
    pub limits: &'a QueryLimits,
}

impl fmt::Debug for Surroundings<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Surroundings")
            .field("server", &self.server)
            .field("generation", &self.generation)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

/// Where a file is. Answers are sorted in this order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum FileOrigin {
    /// In the workspace; the path is relative to the root.
    Workspace,
    /// Elsewhere on this machine; the path is absolute.
    Outside,
    /// Only the server knows it, and the path is a URI.
    Virtual,
}

/// A file that an answer names.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct NamedFile {
    origin: FileOrigin,
    /// The path that answers show.
    pub(super) shown: String,
    pub(super) path: Option<PathBuf>,
}

pub(super) struct Reader<'a> {
    pub(super) around: &'a Surroundings<'a>,
    pub(super) method: &'static str,
    kept: VecDeque<(PathBuf, Option<LineIndex>)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(around: &'a Surroundings<'a>, method: &'static str) -> Self {
        Self {
            around,
            method,
            kept: VecDeque::new(),
        }
    }

    pub(super) fn limits(&self) -> &'a QueryLimits {
        self.around.limits
    }

    pub(super) fn broken(&self, place: impl Into<String>, problem: impl Into<String>) -> QueryError {
        QueryError::Broken {
            server: self.around.server.to_owned(),
            method: self.method,
            place: place.into(),
            problem: problem.into(),
        }
    }

    pub(super) fn parse<T: DeserializeOwned>(
        &self,
        value: Value,
        place: impl FnOnce() -> String,
    ) -> Result<T, QueryError> {
        serde_path_to_error::deserialize(value).map_err(|error| {
            let inner = error.path().to_string();
            let place = place();
            let whole = match inner.as_str() {
                "." => place,
                inner if inner.starts_with('[') => format!("{place}{inner}"),
                inner => format!("{place}.{inner}"),
            };
            self.broken(whole, error.inner().to_string())
        })
    }

    /// The items of a list, with the JSON position of each. `null` is an empty list.
    pub(super) fn items(&self, value: Value, place: &str) -> Result<Vec<Value>, QueryError> {
        match value {
            Value::Null => Ok(Vec::new()),
            Value::Array(items) => Ok(items),
            other => Err(self.broken(place, format!("expected a list, found {}", shape(&other)))),
        }
    }

    pub(super) fn name(&self, uri: &str) -> NamedFile {
        match path_of_uri(uri) {
            Ok(path) => self.name_path(path),
            Err(_) => NamedFile {
                origin: FileOrigin::Virtual,
                shown: uri.to_owned(),
                path: None,
            },
        }
    }

    pub(super) fn name_path(&self, path: PathBuf) -> NamedFile {
        let (origin, shown) = match path.strip_prefix(self.around.root) {
            Ok(relative) => (FileOrigin::Workspace, relative),
            Err(_) => (FileOrigin::Outside, path.as_path()),
        };
        NamedFile {
            origin,
            shown: shown.to_string_lossy().into_owned(),
            path: Some(path),
        }
    }

    pub(super) fn document(&self) -> Result<(OpenDocument<'a>, NamedFile), QueryError> {
        let document = self
            .around
            .document
            .ok_or_else(|| self.broken("result", "no document was asked about"))?;
        Ok((document, self.name_path(document.path.to_owned())))
    }

    pub(super) fn text(&mut self, path: &Path) -> Option<LineIndex> {
        if let Some(document) = self.around.document.filter(|document| document.path == path) {
            return Some(document.text.clone());
        }
        if let Some((_, text)) = self.kept.iter().find(|(kept, _)| kept == path) {
            return text.clone();
        }
        let text = self.around.texts.text(path).map(LineIndex::new);
        if self.kept.len() >= KEPT_TEXTS {
            self.kept.pop_front();
        }
        self.kept.push_back((path.to_owned(), text.clone()));
        text
    }

    /// A range of a file that an answer names, and the line it begins in. If the file can't be read, the line of the
    /// range is right, but the column only if everything before it is ASCII.
    pub(super) fn location(&mut self, file: &NamedFile, range: WireRange) -> Location {
        let text = file.path.as_deref().and_then(|path| self.text(path));
        let (range, excerpt) = match &text {
            Some(text) => {
                let offsets = text.offsets_of_wire(range, self.around.encoding);
                let line = excerpt(text, &offsets, self.limits().excerpt_columns);
                (text.range_at(&offsets), Some(line))
            }
            None => (guess(range), None),
        };
        Location {
            path: file.shown.clone(),
            range,
            excerpt,
        }
    }

    pub(super) fn range(&self, text: &LineIndex, range: WireRange) -> Range {
        text.range_at(&text.offsets_of_wire(range, self.around.encoding))
    }
}

fn guess(range: WireRange) -> Range {
    let position = |wire: WirePosition| Position {
        line: wire.line.saturating_add(1),
        column: wire.character.saturating_add(1),
    };
    Range {
        start: position(range.start),
        end: position(range.end.max(range.start)),
    }
}

pub(super) fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
