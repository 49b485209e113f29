//! What context needs from others: language servers, and open plans.

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
pub struct Place {
    pub path: TreePath,
    pub lines: Lines,
    pub what: String,
}

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PortError {
    /// Nobody can answer: there is no server for these files, or it isn't ready yet.
    #[error("{0}")]
    Nobody(String),
    #[error("{0}")]
    Failed(String),
}

/// Queries the language servers of a tree. All answers are about the files on disk. *Cancel safety* of all
/// methods: the future may be dropped.
#[async_trait]
pub trait LanguageServers: Send + Sync + fmt::Debug {
    /// Definitions in the tree with a name like this one. `near` are files whose languages are asked; if there
    /// are none, only servers that are already running are asked.
    async fn symbols(
        &self,
        root: &Path,
        near: &[TreePath],
        name: &str,
        time: (&Scope, &Deadline),
    ) -> Result<Vec<Place>, PortError>;

    /// Where the definitions of a file are used. `at` is the line and the column of the name of one, from 1; the
    /// column is in characters.
    async fn references(
        &self,
        root: &Path,
        file: &TreePath,
        at: (u32, u32),
        time: (&Scope, &Deadline),
    ) -> Result<Vec<Place>, PortError>;

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
    pub plan: String,
    pub title: String,
    /// What it has changed, in order.
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
