//! Reading a server's answer: what it was asked, where its files are, and what stands in them.

use std::{
    collections::VecDeque,
    fmt,
    ops::Range as Offsets,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{capabilities::Capabilities, error::QueryError, limits::QueryLimits};
use crate::text::{
    Excerpt, LineIndex, Position, PositionEncoding, Range, WirePosition, WireRange, path_of_uri,
};

/// How many texts of other files are kept while one answer is read. Answers are sorted by file, so that one would
/// nearly do; a file that was dropped is read again.
const KEPT_TEXTS: usize = 8;

/// Reads files. It has a limit of its own for their size, and gives the text of an open document as the server has it.
pub trait Texts: Send + Sync {
    /// The text of a file; `None` if there is none, it is too large, or it is not text.
    fn text(&self, path: &Path) -> Option<Arc<str>>;
}

/// The document that is asked about, as the server has it.
#[derive(Clone, Copy, Debug)]
pub struct OpenDocument<'a> {
    /// Its path; absolute.
    pub path: &'a Path,
    pub version: i32,
    pub text: &'a LineIndex,
}

/// Everything around a question that its answer depends on.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub server: &'a str,
    pub generation: u64,
    pub root: &'a Path,
    /// In what it counts along a line.
    pub encoding: PositionEncoding,
    pub capabilities: &'a Capabilities,
    pub document: Option<OpenDocument<'a>>,
    /// What the server has pushed for that document, so that it can be asked for repairs.
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

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// In the workspace; its path is relative to the root.
    Workspace,
    /// Elsewhere on this machine; its path is absolute.
    Outside,
    /// Nowhere: only the server knows it, and its path is a URI.
    Virtual,
}

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Place {
    /// Where it stands. Those of the workspace sort first.
    pub standing: Standing,
    pub path: String,
}

/// How far a position can be trusted.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    Exact,
    /// The text could not be read: the line is right, the column only if all before it is plain.
    Approximate,
}

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Location {
    #[serde(flatten)]
    pub place: Place,
    pub range: Range,
    pub precision: Precision,
    pub excerpt: Option<Excerpt>,
}

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Named {
    pub(super) place: Place,
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

    /// The items of a list, with the place of each. Nothing is an empty list.
    pub(super) fn items(&self, value: Value, place: &str) -> Result<Vec<Value>, QueryError> {
        match value {
            Value::Null => Ok(Vec::new()),
            Value::Array(items) => Ok(items),
            other => Err(self.broken(place, format!("expected a list, found {}", shape(&other)))),
        }
    }

    pub(super) fn name(&self, uri: &str) -> Named {
        match path_of_uri(uri) {
            Ok(path) => self.name_path(path),
            Err(_) => Named {
                place: Place {
                    standing: Standing::Virtual,
                    path: uri.to_owned(),
                },
                path: None,
            },
        }
    }

    pub(super) fn name_path(&self, path: PathBuf) -> Named {
        let (standing, shown) = match path.strip_prefix(self.around.root) {
            Ok(relative) => (Standing::Workspace, relative),
            Err(_) => (Standing::Outside, path.as_path()),
        };
        let place = Place {
            standing,
            path: shown.to_string_lossy().into_owned(),
        };
        Named {
            place,
            path: Some(path),
        }
    }

    pub(super) fn document(&self) -> Result<(OpenDocument<'a>, Named), QueryError> {
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

    pub(super) fn location(&mut self, named: &Named, range: WireRange) -> Location {
        let text = named.path.as_deref().and_then(|path| self.text(path));
        let (range, precision, excerpt) = match &text {
            Some(text) => {
                let offsets = text.offsets_of_wire(range, self.around.encoding);
                let excerpt = Excerpt::around(text, &offsets, &self.limits().excerpt);
                (text.range_at(&offsets), Precision::Exact, Some(excerpt))
            }
            None => (guess(range), Precision::Approximate, None),
        };
        Location {
            place: named.place.clone(),
            range,
            precision,
            excerpt,
        }
    }

    pub(super) fn range(&self, text: &LineIndex, range: WireRange) -> Range {
        let offsets: Offsets<usize> = text.offsets_of_wire(range, self.around.encoding);
        text.range_at(&offsets)
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
