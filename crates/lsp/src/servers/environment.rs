//! The environment in which servers are searched for and started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The daemon's variables. Nothing here reads those of the process, so that a test can set them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
        }
    }

    /// The same, with the variables of another environment taking precedence. Programs are searched for on the other
    /// one's `PATH` first, then on this one's.
    pub(crate) fn with(&self, other: &Self) -> Self {
        let own = self.variables.clone().into_iter();
        let mut both = Self::new(own.chain(other.variables.clone()));
        let directories = other.path().into_iter().chain(self.path());
        // Neither has a directory with a colon in its name, or it would have been split.
        if let Ok(path) = std::env::join_paths(directories) {
            both.variables.insert("PATH".into(), path);
        }
        both
    }

    /// One variable, if it is set and not empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        let value = self.variables.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(value.as_os_str())
    }

    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }

    /// The directories of `PATH`. A relative one would mean a different directory for every process, so it is omitted.
    pub(crate) fn path(&self) -> Vec<PathBuf> {
        let path = self.get("PATH").unwrap_or_default();
        std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .collect()
    }

    /// Where programs are installed without always being on the `PATH`.
    pub(crate) fn usual_directories(&self) -> Vec<PathBuf> {
        let below =
            |variable: &str, rest: &str| self.get(variable).map(|base| PathBuf::from(base).join(rest));
        [
            below("CARGO_HOME", "bin"),
            below("HOME", ".cargo/bin"),
            below("HOME", ".local/bin"),
            self.get("GOBIN").map(PathBuf::from),
            below("GOPATH", "bin"),
            below("HOME", "go/bin"),
        ]
        .into_iter()
        .flatten()
        .filter(|directory| directory.is_absolute())
        .collect()
    }

    pub(crate) fn select<'a>(&self, names: impl Iterator<Item = &'a str>) -> BTreeMap<OsString, OsString> {
        names
            .filter_map(|name| Some((name.into(), self.get(name)?.to_owned())))
            .collect()
    }
}
