//! The interface of a strategy.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Deadline, Scope};

use crate::answer::Depth;
use crate::index::Snapshot;
use crate::lines::Lines;
use crate::path::TreePath;
use crate::query::Query;
use crate::view::View;

/// The name of a strategy, for example `keyword`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StrategyName(Arc<str>);

impl StrategyName {
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of its circuit in the breaker that the whole daemon shares.
    #[must_use]
    pub fn circuit(&self) -> String {
        format!("context/{}", self.0)
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[derive(Clone, Debug)]
pub struct Ask {
    pub query: Query,
    pub focus: Vec<TreePath>,
    pub searched: SearchTree,
    /// How many locations are useful. Further ones are cut off.
    pub most_hits: usize,
}

#[derive(Clone, Debug)]
pub struct SearchTree {
    pub root: PathBuf,
    pub view: Arc<dyn View>,
    /// The index of the tree, if there is one.
    pub index: Option<Arc<Snapshot>>,
    /// Files for which the index isn't valid in this view, in order: changed in the plan, or on disk since
    /// the plan was created, or a moment ago. They are searched without the index, and its information about
    /// them isn't used.
    pub beside_index: Arc<[TreePath]>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub path: TreePath,
    /// The lines; `None` for the whole file.
    pub lines: Option<Lines>,
    /// How well it fits, on the strategy's own scale: finite, and higher is better.
    pub score: f64,
    /// Why, in a few words: `defines ParseConfig`.
    pub why: String,
    /// The most of it that should be shown.
    pub depth: Depth,
}

#[async_trait]
pub trait Strategy: Send + Sync + fmt::Debug {
    fn name(&self) -> StrategyName;

    /// Searches, and returns the best locations, best first. It must end soon after its scope is cancelled:
    /// blocking work runs through [`on_thread`](crate::executor::on_thread) and checks the scope between two
    /// files. The deadline is the latest end.
    ///
    /// # Errors
    /// See [`StrategyError`].
    async fn find(&self, ask: Arc<Ask>, scope: Scope, deadline: Deadline) -> Result<Vec<Hit>, StrategyError>;
}

/// Why a strategy has no results.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StrategyError {
    #[error("{0}")]
    NotApplicable(String),
    #[error("it was cancelled")]
    Cancelled,
    #[error("{0}")]
    Failed(String),
}
