//! Files that a server watches for changes by others.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use serde_json::Value;

use crate::text::path_of_uri;

/// How many patterns one server may register. Servers have a few dozen; further ones are refused.
const MAX_PATTERNS: usize = 4096;
/// How long one pattern may be.
const MAX_PATTERN_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum FileEvent {
    Created,
    Changed,
    Deleted,
}

impl FileEvent {
    /// Its number in `workspace/didChangeWatchedFiles`.
    pub const fn number(self) -> u8 {
        match self {
            Self::Created => 1,
            Self::Changed => 2,
            Self::Deleted => 3,
        }
    }

    const fn bit(self) -> u64 {
        match self {
            Self::Created => 1,
            Self::Changed => 2,
            Self::Deleted => 4,
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum WatchError {
    #[error("the registration is broken: {problem}")]
    Broken { problem: String },
    #[error("`{pattern}` is not a pattern: {problem}")]
    BadPattern { pattern: String, problem: String },
    #[error("the server watches {limit} patterns, which is the limit")]
    TooMany { limit: usize },
}

#[derive(Deserialize)]
struct WireOptions {
    watchers: Vec<WireWatcher>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireWatcher {
    glob_pattern: Value,
    kind: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRelative {
    base_uri: Value,
    pattern: String,
}

#[derive(Clone, Debug)]
struct Group {
    /// What the patterns are relative to; `None` for the workspace, or absolute patterns.
    base: Option<PathBuf>,
    events: u64,
    patterns: GlobSet,
}

#[derive(Clone, Debug)]
struct Registration {
    groups: Vec<Group>,
    patterns: usize,
}

/// What one generation of a server watches.
#[derive(Clone, Debug)]
pub struct WatchedFiles {
    root: PathBuf,
    registrations: BTreeMap<String, Registration>,
}

impl WatchedFiles {
    /// Patterns without a base are relative to `root`.
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            registrations: BTreeMap::new(),
        }
    }

    /// Adds the options of a `workspace/didChangeWatchedFiles` registration: all of them or, on error, nothing.
    /// Registering the same id again replaces it.
    pub fn register(&mut self, id: &str, options: &Value) -> Result<(), WatchError> {
        let options: WireOptions =
            serde_json::from_value(options.clone()).map_err(|error| WatchError::Broken {
                problem: error.to_string(),
            })?;
        let others = self.registrations.iter().filter(|(other, _)| *other != id);
        let patterns: usize = others.map(|(_, registration)| registration.patterns).sum();
        if patterns + options.watchers.len() > MAX_PATTERNS {
            return Err(WatchError::TooMany { limit: MAX_PATTERNS });
        }
        let registration = Registration {
            patterns: options.watchers.len(),
            groups: groups(options.watchers)?,
        };
        self.registrations.insert(id.to_owned(), registration);
        Ok(())
    }

    /// Unknown ids are ignored.
    pub fn unregister(&mut self, id: &str) {
        self.registrations.remove(id);
    }

    /// Whether the server wants to be notified. The path is absolute.
    pub fn matches(&self, path: &Path, event: FileEvent) -> bool {
        let groups = self
            .registrations
            .values()
            .flat_map(|registration| &registration.groups);
        groups
            .filter(|group| group.events & event.bit() != 0)
            .any(|group| match &group.base {
                Some(base) => is_below(path, base, &group.patterns),
                None => group.patterns.is_match(path) || is_below(path, &self.root, &group.patterns),
            })
    }

    /// Directories outside the workspace that must be watched.
    pub fn bases_outside(&self) -> BTreeSet<&Path> {
        self.registrations
            .values()
            .flat_map(|registration| &registration.groups)
            .filter_map(|group| group.base.as_deref())
            .filter(|base| !base.starts_with(&self.root))
            .collect()
    }

    pub fn is_empty(&self) -> bool {
        self.registrations.is_empty()
    }
}

fn is_below(path: &Path, base: &Path, patterns: &GlobSet) -> bool {
    path.strip_prefix(base)
        .is_ok_and(|relative| patterns.is_match(relative))
}

fn groups(watchers: Vec<WireWatcher>) -> Result<Vec<Group>, WatchError> {
    let mut builders: BTreeMap<(Option<PathBuf>, u64), GlobSetBuilder> = BTreeMap::new();
    for watcher in watchers {
        let (base, pattern) = split(watcher.glob_pattern)?;
        // Without a value, all events count, per the protocol.
        let events = watcher.kind.unwrap_or(7);
        let glob = compile(&pattern)?;
        builders
            .entry((base, events))
            .or_insert_with(GlobSetBuilder::new)
            .add(glob);
    }
    builders
        .into_iter()
        .map(|((base, events), builder)| {
            let patterns = builder.build().map_err(|error| WatchError::Broken {
                problem: error.to_string(),
            })?;
            Ok(Group {
                base,
                events,
                patterns,
            })
        })
        .collect()
}

/// `Pattern | RelativePattern`. The base is a URI or a workspace folder.
fn split(pattern: Value) -> Result<(Option<PathBuf>, String), WatchError> {
    if let Value::String(pattern) = pattern {
        return Ok((None, pattern));
    }
    let broken = |problem: String| WatchError::Broken { problem };
    let relative: WireRelative =
        serde_json::from_value(pattern).map_err(|error| broken(error.to_string()))?;
    let uri = relative
        .base_uri
        .as_str()
        .or_else(|| relative.base_uri.get("uri")?.as_str());
    let uri = uri.ok_or_else(|| broken("a relative pattern without a base".to_owned()))?;
    let base = path_of_uri(uri).map_err(|error| broken(error.to_string()))?;
    Ok((Some(base), relative.pattern))
}

/// `*` and `?` stay within a path component, `**` does not, `{}` holds alternatives and `[]` characters. The library
/// matches bytes, so `?` and `[]` support only single-byte characters.
fn compile(pattern: &str) -> Result<globset::Glob, WatchError> {
    let bad = |problem: String| WatchError::BadPattern {
        pattern: pattern.chars().take(100).collect(),
        problem,
    };
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(bad(format!("it is longer than {MAX_PATTERN_BYTES} bytes")));
    }
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .empty_alternates(true)
        .build()
        .map_err(|error| bad(error.to_string()))
}
