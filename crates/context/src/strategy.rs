//! One way to find something.

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
    /// A strategy of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name as a text.
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

/// What a strategy is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The question, taken apart.
    pub query: Query,
    /// The files that it is about.
    pub focus: Vec<TreePath>,
    /// Where to look.
    pub ground: Ground,
    /// The most places that are of use. More are cut off.
    pub most_hits: usize,
}

/// Where to look.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The root of the tree on disk.
    pub root: PathBuf,
    /// What is read.
    pub view: Arc<dyn View>,
    /// What is known of the tree already; `None` while there is no index.
    pub index: Option<Arc<Snapshot>>,
    /// Files of which the index does not know what is in them in this view, in order: changed in the plan, or on disk since
    /// the plan was taken, or a moment ago. They are looked into without it, and what it says of them is not used.
    pub beside_index: Arc<[TreePath]>,
}

/// A place that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The file.
    pub path: TreePath,
    /// Where in it; `None` for the file as a whole.
    pub lines: Option<Lines>,
    /// How well it fits, in the strategy's own measure: finite, and the larger the better.
    pub score: f64,
    /// Why, in a few words: `defines ParseConfig`.
    pub why: String,
    /// The most that should be shown of it.
    pub depth: Depth,
}

/// One way to find something.
#[async_trait]
pub trait Strategy: Send + Sync + fmt::Debug {
    /// Its name.
    fn name(&self) -> StrategyName;

    /// Looks. Answers with the best places, the best first. It ends soon after its scope is cancelled: work that blocks runs
    /// through [`on_thread`](crate::executor::on_thread) and looks at the scope between two files. The deadline says how much
    /// time there is at most.
    ///
    /// # Errors
    /// See [`StrategyError`].
    async fn find(&self, ask: Arc<Ask>, scope: Scope, deadline: Deadline) -> Result<Vec<Hit>, StrategyError>;
}

/// Why a strategy has nothing to say.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StrategyError {
    /// There is nothing for it here, and that is all right.
    #[error("{0}")]
    NotApplicable(String),
    /// It was cancelled, or its time was over.
    #[error("it was cancelled")]
    Cancelled,
    /// It failed.
    #[error("{0}")]
    Failed(String),
}
