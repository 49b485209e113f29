//! Context: given a question and a budget of tokens, the pieces of a code base that help to answer it.
//!
//! Several strategies look at once, each behind a circuit breaker and within its time; what they find is put together,
//! ranked and packed. A strategy that hangs or fails costs neither the answer nor the next one, and is named in the result.
//!
//! - `request.rs`, `answer.rs`: what is asked, and what is answered.
//! - `pipeline/`: the steps from one to the other, each a trait with one default. [`Pipeline`] is the one place where they
//!   are wired together.
//! - `executor/`: strategies run together ([`ParallelStrategyExecutor`]).
//! - `strategies/`: the ways to find something. `strategy.rs`: what each of them is.
//! - `index/`: which files hold which trigrams and names, for everybody who asks about a tree. `outline/`: the definitions
//!   of a file.
//! - `view.rs`: a tree of files as somebody sees it: the workspace on disk, or the sandbox of a plan. `disk.rs`: how files
//!   on disk are opened, read and walked.
//! - `service.rs`, `indexes.rs`: the way in. [`Contexts`] owns the indexes.
//!
//! **Who owns the state:** [`Contexts`] owns one index per tree. An index is a cache: it can be thrown away at any time, and
//! no answer is wrong because of it, for whatever it names is read again before it is shown.
//!
//! **What must not happen here:** HTTP, agents, plans. What others know (language servers, changesets) comes in through
//! `ports.rs`.

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

pub use answer::{Answer, Depth, Fragment, LeftOut, Outcome, ScorePart, StrategyReport};
pub use executor::{Execute, ParallelStrategyExecutor, Ran, on_thread};
pub use index::{FileId, Index, IndexInfo, IndexOptions, IndexState, Key, Snapshot};
pub use lines::Lines;
pub use outline::{Definition, Language, Outline, Reference, SymbolKind, outline};
pub use path::{BadPath, TreePath};
pub use pipeline::Pipeline;
pub use ports::{
    ForCommands, LanguageServers, NoChanges, NoLanguageServers, OpenPlan, OpenPlans, Place, PortError, Ports,
};
pub use query::{Query, Term, TermKind};
pub use request::{
    BUDGET_LIMIT_TOKENS, ContextError, DEADLINE_LIMIT, FOCUS_LIMIT, QUERY_LIMIT_BYTES, Request,
};
pub use service::{Contexts, ContextsOptions};
pub use settings::{CommandSettings, ContextSettings, StrategySettings};
pub use strategies::{BUILT_IN as BUILT_IN_STRATEGIES, all as all_strategies};
pub use strategy::{Ask, Ground, Hit, Strategy, StrategyError, StrategyName};
pub use tokenizer::{Tokenizer, TokenizerName};
pub use view::{DiskView, FILE_LIMIT_BYTES, FileText, NotText, Since, View};
