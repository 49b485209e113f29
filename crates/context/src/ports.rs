//! What others know, and context does not: language servers, and the plans that are open.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Deadline, Scope};

use crate::lines::Lines;
use crate::path::TreePath;

/// What others know.
#[derive(Clone, Debug)]
pub struct Ports {
    /// Language servers.
    pub languages: Arc<dyn LanguageServers>,
    /// Plans.
    pub plans: Arc<dyn OpenPlans>,
}

/// A place that somebody else has named.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// The file.
    pub path: TreePath,
    /// Where in it.
    pub lines: Lines,
    /// What is there, in a few words.
    pub what: String,
}

/// Somebody else did not answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PortError {
    /// There is nobody who would know: no server for these files, or one that is not ready yet.
    #[error("{0}")]
    Nobody(String),
    /// It went wrong.
    #[error("{0}")]
    Failed(String),
}

/// Asks the language servers of a tree. All answers are of the files on disk. *Cancel safety* of all: may be dropped.
#[async_trait]
pub trait LanguageServers: Send + Sync + fmt::Debug {
    /// Definitions in the tree whose name is like this one. `near` are files whose language is asked for; if there are none,
    /// only servers that run already are asked.
    async fn symbols(
        &self,
        root: &Path,
        near: &[TreePath],
        name: &str,
        time: (&Scope, &Deadline),
    ) -> Result<Vec<Place>, PortError>;

    /// Where the definitions of a file are used. `at` is the line and the column of the name of one, from 1, the column in
    /// characters.
    async fn references(
        &self,
        root: &Path,
        file: &TreePath,
        at: (u32, u32),
        time: (&Scope, &Deadline),
    ) -> Result<Vec<Place>, PortError>;

    /// What is wrong in a file.
    async fn diagnostics(
        &self,
        root: &Path,
        file: &TreePath,
        time: (&Scope, &Deadline),
    ) -> Result<Vec<Place>, PortError>;
}

/// A plan that is open on a tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OpenPlan {
    /// Its id, for people.
    pub plan: String,
    /// Its title, for people.
    pub title: String,
    /// What it has changed, in order.
    pub changed: Vec<TreePath>,
}

/// Knows which plans are open. *Cancel safety*: may be dropped.
#[async_trait]
pub trait OpenPlans: Send + Sync + fmt::Debug {
    /// The plans that are open on a tree, the one that moved last first.
    async fn open(&self, root: &Path) -> Result<Vec<OpenPlan>, PortError>;
}

/// Nobody knows any language.
#[derive(Clone, Copy, Debug)]
pub struct NoLanguageServers;

#[async_trait]
impl LanguageServers for NoLanguageServers {
    async fn symbols(
        &self,
        _root: &Path,
        _near: &[TreePath],
        _name: &str,
        _time: (&Scope, &Deadline),
    ) -> Result<Vec<Place>, PortError> {
        Err(PortError::Nobody("there are no language servers".to_owned()))
    }

    async fn references(
        &self,
        _root: &Path,
        _file: &TreePath,
        _at: (u32, u32),
        _time: (&Scope, &Deadline),
    ) -> Result<Vec<Place>, PortError> {
        Err(PortError::Nobody("there are no language servers".to_owned()))
    }

    async fn diagnostics(
        &self,
        _root: &Path,
        _file: &TreePath,
        _time: (&Scope, &Deadline),
    ) -> Result<Vec<Place>, PortError> {
        Err(PortError::Nobody("there are no language servers".to_owned()))
    }
}

/// No plan is open.
#[derive(Clone, Copy, Debug)]
pub struct NoChanges;

#[async_trait]
impl OpenPlans for NoChanges {
    async fn open(&self, _root: &Path) -> Result<Vec<OpenPlan>, PortError> {
        Ok(Vec::new())
    }
}

/// How commands are run: `git`, and strategies that are commands.
#[derive(Clone, Debug)]
pub struct ForCommands {
    /// Who owns the processes.
    pub processes: process::Processes,
    /// The variables that they get.
    pub environment: BTreeMap<OsString, OsString>,
}
