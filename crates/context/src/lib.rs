//! Context: finds the code relevant to a question, within a token budget.
//!
//! Several strategies search at the same time, each behind a circuit breaker and within its time limit. Their
//! results are merged, ranked and packed. A strategy that hangs or fails affects neither this answer nor the next
//! one, and is named in the result.
//!
//! - `request.rs`, `answer.rs`: the question and the answer.
//! - `pipeline/`: the steps from one to the other, one function each. Only [`Pipeline`] wires them
//!   together.
//! - `executor/`: runs strategies in parallel ([`ParallelStrategyExecutor`]).
//! - `strategies/`: the ways to find something. `strategy.rs`: their interface.
//! - `index/`: which files contain which trigrams and names, shared by all questions about a tree. `outline/`:
//!   the definitions of a file.
//! - `view.rs`: a tree of files as a caller sees it: the workspace on disk, or the sandbox of a plan. `disk.rs`:
//!   opens, reads and walks files on disk.
//! - `service.rs`, `indexes.rs`: the entry point. [`Contexts`] owns the indexes.
//!
//! **Who owns the state:** [`Contexts`] owns one index per tree. An index is a cache: it can be deleted at any
//! time, and no answer is wrong because of it, because everything it names is read again before it is shown.
//!
//! **What must not happen here:** HTTP, agents, plans. Information from other components (language servers, changesets)
//! comes in through `ports.rs`.

#![expect(
    missing_docs,
    reason = "only this workspace uses the crate, and a comment that repeats a name says nothing"
)]

mod answer;
mod disk;
mod executor;
mod index;
mod indexes;
mod lines;
mod outline;
mod path;
mod pipeline;
mod ports;
mod query;
mod request;
mod service;
mod settings;
mod strategies;
mod strategy;
mod view;

pub use answer::{Answer, Depth, Fragment, LeftOut, ScorePart, StrategyOutcome, StrategyReport};
pub use executor::{Execute, ParallelStrategyExecutor, Ran, on_thread};
pub use index::{FileId, Index, IndexInfo, IndexOptions, IndexState, Key, Snapshot};
pub use lines::Lines;
pub use outline::{Definition, Language, Outline, Reference, SymbolKind, outline};
pub use path::{BadPath, TreePath};
pub use pipeline::Pipeline;
pub use ports::{
    CodeLocation, CodeQuestion, ForCommands, LanguageServers, NoChanges, NoLanguageServers, OpenPlan,
    OpenPlans, PortError, Ports,
};
pub use query::{Query, Term, TermKind};
pub use request::{
    BUDGET_LIMIT_TOKENS, ContextError, DEADLINE_LIMIT, FOCUS_LIMIT, QUERY_LIMIT_BYTES, Request,
};
pub use service::{Contexts, ContextsOptions};
pub use settings::{CommandSettings, ContextSettings, StrategySettings};
pub use strategies::{BUILT_IN as BUILT_IN_STRATEGIES, all as all_strategies};
pub use strategy::{Ask, Hit, SearchTree, Strategy, StrategyError, StrategyName};
pub use tokenizer::{Tokenizer, TokenizerName};
pub use view::{DiskView, FILE_LIMIT_BYTES, FileText, NotText, Since, View};
