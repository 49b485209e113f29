//! What is asked.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokenizer::TokenizerName;

use crate::path::{BadPath, TreePath};
use crate::strategy::StrategyName;
use crate::view::View;

/// The longest question. A longer one is a document, and ranks everything alike.
pub const QUERY_LIMIT_BYTES: usize = 16 * 1024;
/// The most files that a question may be about.
pub const FOCUS_LIMIT: usize = 64;
/// The largest budget. No model reads more at once.
pub const BUDGET_LIMIT_TOKENS: usize = 1_000_000;
/// The longest that somebody may want to wait.
pub const DEADLINE_LIMIT: Duration = Duration::from_secs(120);

/// A question about a tree of files.
#[derive(Clone, Debug)]
pub struct Request {
    /// The root of the tree on disk, canonical. It names the index.
    pub root: PathBuf,
    /// What is read: the tree itself ([`DiskView`](crate::DiskView)), or the sandbox of a plan on it.
    pub view: Arc<dyn View>,
    /// The question: words, names, a sentence.
    pub query: String,
    /// Files that the question is about.
    pub focus: Vec<TreePath>,
    /// How many tokens the answer may have.
    pub budget_tokens: usize,
    /// How long it may take; the setting if there is none.
    pub patience: Option<Duration>,
    /// If there are some: only these strategies.
    pub only: Vec<StrategyName>,
    /// Without these.
    pub without: Vec<StrategyName>,
    /// How tokens are counted; the setting if there is none.
    pub tokenizer: Option<TokenizerName>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// There is neither a question nor a file that it is about.
    #[error("there is nothing to look for: the query is empty, and no file is in focus")]
    Empty,
    /// Something is larger than it may be.
    #[error("{what} is {found}, and the most is {most}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How large it is.
        found: String,
        /// How large it may be.
        most: String,
    },
    /// Nobody knows a strategy of this name.
    #[error("there is no strategy `{name}`; there are: {known}")]
    NoSuchStrategy {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A file in focus is no path of the tree.
    #[error(transparent)]
    BadPath(#[from] BadPath),
    /// A file in focus is not there.
    #[error("there is no file `{0}` to focus on")]
    NoSuchFile(TreePath),
    /// The root of the tree cannot be read.
    #[error("{root} cannot be read")]
    Unreadable {
        /// The root.
        root: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The tokenizer could not be loaded.
    #[error("the tokenizer cannot be used: {0}")]
    Tokenizer(#[from] tokenizer::LoadError),
    /// Whoever asked has gone away, or the daemon ends.
    #[error("the question was cancelled")]
    Cancelled,
}
