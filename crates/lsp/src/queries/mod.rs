//! Questions about code, and their answers.
//!
//! A [`Query`] becomes a [`Conversation`]: requests for the server, then its replies, then perhaps more requests,
//! and at the end an [`Answer`] in our own types, with paths relative to the workspace and positions that count
//! from one. The caller sends and receives; nothing is sent from here.
//!
//! Rules:
//!
//! 1. Nothing found is an answer. An error is never turned into one: neither an error of the server, nor an answer that
//!    violates the protocol, which is reported with its position.
//! 2. An answer is sorted, has no duplicates, and has a limit; what was left out is counted.
//! 3. No answer is older than its document. Diagnostics that a server pushed count only for the version that was
//!    sent last ([`PushedDiagnostics`]).
//! 4. Whether a server is still starting up is a separate state ([`Readiness`]), so that "nothing found" and "not
//!    searched yet" are different answers.
//!
//! **Who owns the state:** the code that runs the server. All of it belongs to one generation and ends with it.
//!
//! **What must not happen here:** files (they come in through [`Texts`]), tasks, clocks.

mod actions;
mod answer;
mod calls;
mod capabilities;
mod completions;
mod conversation;
mod diagnostics;
mod drafts;
mod edits;
mod error;
mod hover;
mod limits;
mod locations;
mod names;
mod pushed;
mod query;
mod reader;
mod readiness;
mod signatures;
mod symbols;
mod tsserver;
mod watched;

pub use actions::{ActionEffect, CodeAction};
pub use answer::{Answer, Origin, QueryResult, merge_answers};
pub use capabilities::{Capabilities, DiagnosticsBy, Feature, TooManyRegistrations};
pub use completions::Completions;
pub use conversation::{Conversation, Request, Step, answer_from_push};
pub use edits::Edit;
pub use error::{QueryError, Refusal};
pub use hover::Hover;
pub use limits::{Listed, QueryLimits};
pub use pushed::{Push, PushTaken, PushedDiagnostics};
pub(crate) use query::Reach;
pub use query::{At, Declarations, Indentation, Query};
pub use reader::{OpenDocument, Surroundings, Texts};
pub use readiness::{Expectation, Readiness, ReadyState, ServerHealth};
pub use signatures::Signatures;
pub use watched::{FileEvent, WatchError, WatchedFiles};
