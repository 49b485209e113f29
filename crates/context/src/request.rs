//! The question.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokenizer::TokenizerName;

use crate::path::{BadPath, TreePath};
use crate::strategy::StrategyName;
use crate::view::View;

/// The longest query. A longer one is a document, and would rank everything alike.
pub const QUERY_LIMIT_BYTES: usize = 16 * 1024;
/// How many files a question may focus on.
pub const FOCUS_LIMIT: usize = 64;
/// The largest budget. No model can read more at once.
pub const BUDGET_LIMIT_TOKENS: usize = 1_000_000;
pub const DEADLINE_LIMIT: Duration = Duration::from_secs(120);

/// A question about a tree of files.
#[derive(Clone, Debug)]
pub struct Request {
    /// The root of the tree on disk, canonical. It identifies the index.
    pub root: PathBuf,
    /// The files to read: the tree itself ([`DiskView`](crate::DiskView)), or the sandbox of a plan on it.
    pub view: Arc<dyn View>,
    /// The query: words, names, a sentence.
    pub query: String,
    pub focus: Vec<TreePath>,
    pub budget_tokens: usize,
    /// How long it may take; `None` for the setting.
    pub patience: Option<Duration>,
    /// If not empty, only these strategies.
    pub only: Vec<StrategyName>,
    /// Not these strategies.
    pub without: Vec<StrategyName>,
    /// How to count tokens; `None` for the setting.
    pub tokenizer: Option<TokenizerName>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    #[error("there is nothing to look for: the query is empty, and no file is in focus")]
    Empty,
    #[error("{what} is {found}; the limit is {most}")]
    TooLarge {
        what: &'static str,
        found: String,
        most: String,
    },
    #[error("there is no strategy `{name}`; there are: {known}")]
    NoSuchStrategy { name: String, known: String },
    #[error(transparent)]
    BadPath(#[from] BadPath),
    #[error("there is no file `{0}` to focus on")]
    NoSuchFile(TreePath),
    #[error("{root} cannot be read")]
    Unreadable {
        root: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the tokenizer cannot be used: {0}")]
    Tokenizer(#[from] tokenizer::LoadError),
    #[error("the question was cancelled")]
    Cancelled,
}
