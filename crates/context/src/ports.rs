//! What context needs from other components: language servers, and open plans.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Deadline, Scope};

use crate::lines::Lines;
use crate::path::TreePath;

#[derive(Clone, Debug)]
pub struct Ports {
    pub languages: Arc<dyn LanguageServers>,
    pub plans: Arc<dyn OpenPlans>,
}

/// A location that another component has named.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CodeLocation {
    pub path: TreePath,
    pub lines: Lines,
    pub what: String,
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PortError {
    /// There is no answer: no server handles these files, or it isn't ready yet.
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    Failed(String),
}

/// A question to the language servers of a tree. All answers are about the files on disk.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CodeQuestion {
    /// Definitions in the tree with a name like this one. The query goes to the servers for the languages of `near`; if
    /// `near` is empty, only to servers that are already running.
    Symbols {
        name: String,
        near: Vec<TreePath>,
    },
    Diagnostics {
        file: TreePath,
    },
    /// Where the definition `name`, at this line and column of its file, is used. Both count from 1, the column in
    /// characters.
    References {
        file: TreePath,
        line: u32,
        column: u32,
        name: String,
    },
}

/// Queries the language servers of a tree. *Cancel safety*: the future may be dropped.
#[async_trait]
pub trait LanguageServers: Send + Sync + fmt::Debug {
    async fn ask(
        &self,
        root: &Path,
        question: &CodeQuestion,
        scope: &Scope,
        deadline: &Deadline,
    ) -> Result<Vec<CodeLocation>, PortError>;
}

/// A plan that is open on a tree.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OpenPlan {
    pub plan: String,
    pub title: String,
    /// The files it has changed, in order.
    pub changed: Vec<TreePath>,
}

/// Knows which plans are open. *Cancel safety*: the future may be dropped.
#[async_trait]
pub trait OpenPlans: Send + Sync + fmt::Debug {
    async fn open(&self, root: &Path) -> Result<Vec<OpenPlan>, PortError>;
}

#[derive(Clone, Copy, Debug)]
pub struct NoLanguageServers;

#[async_trait]
impl LanguageServers for NoLanguageServers {
    async fn ask(
        &self,
        _: &Path,
        _: &CodeQuestion,
        _: &Scope,
        _: &Deadline,
    ) -> Result<Vec<CodeLocation>, PortError> {
        Err(PortError::Unavailable("there are no language servers".to_owned()))
    }
}

/// No open plans.
#[derive(Clone, Copy, Debug)]
pub struct NoChanges;

#[async_trait]
impl OpenPlans for NoChanges {
    async fn open(&self, _root: &Path) -> Result<Vec<OpenPlan>, PortError> {
        Ok(Vec::new())
    }
}

/// How to run commands: `git`, and strategies that are commands.
#[derive(Clone, Debug)]
pub struct ForCommands {
    pub processes: process::Processes,
    pub environment: BTreeMap<OsString, OsString>,
}
