//! Sessions: durable conversations with agents.
//!
//! - [`Sessions`] is the service: it accepts prompts, runs turns one after the other, and stops them.
//! - [`Agent`] does the work of a turn; [`agents`] has the implementations.
//! - [`Toolbox`] is what an agent can do, within a plan; [`Sink`] records its output and its actions.
//! - [`TurnEvent`] is an event in the stream of a turn; [`TurnTranscript`](protocol::TurnTranscript) is what its readers end
//!   up with.
//!
//! Types that storage and the wire share (states, answers, rules, usage, transcripts) are declared in `protocol`.
//!
//! **Who owns the state:** the log. A session is a stream that any daemon may write to, by a commit on the version it read:
//! prompts, stop requests, answers to questions. Only the owner of a turn writes to its stream, or a daemon that ends the turn
//! because its owner is gone. One commit starts a turn: it claims the session and writes the first event of the turn.
//!
//! **Invariant:** a session has at most one active turn, and names its owner. The commit that ends the turn frees the
//! session; by then, nothing of the turn is running anymore.
//!
//! **Invariant:** no step of a turn reads or writes more because the session is long.
//!
//! **What must not happen here:** HTTP, terminals, and deciding by a clock who is alive.

mod agent;
pub mod agents;
mod answers;
mod asking;
mod compact;
mod desk;
mod error;
mod event;
mod export;
mod follow;
mod history;
mod inner;
mod keys;
mod machines;
mod manage;
mod observe;
mod options;
mod owner;
mod pause;
pub mod permissions;
mod permits;
mod ports;
mod prompt;
mod recorder;
mod recover;
mod removal;
mod runner;
mod service;
mod session;
mod sink;
mod starting;
mod state;
#[cfg(test)]
mod state_model;
mod store;
mod streams;
pub mod tools;
mod transcript;
mod turn;
mod watch;

pub use agent::{Agent, AgentEnd, AgentInfo, AgentTurn, Readiness};
pub use answers::{Accepted, NewSession, NewTurn, RunOn, SessionQuery, Started};
pub use asking::{Asker, Question};
pub use compact::Folded;
pub use desk::PlanDesk;
pub use error::SessionError;
pub use event::{TurnEvent, from_log};
pub use export::{Export, ExportFormat, ExportedTurn};
pub use follow::{FollowEnd, FollowFrom, FollowItem, TurnFollow};
pub use machines::AwaitedMachine;
pub use observe::Observer;
pub use options::{AfterCrash, SessionsOptions, SessionsSettings};
pub use owner::{Owner, Sharing};
pub use ports::{
    ContextFinder, ContextFound, ContextGround, ContextOrder, FinderError, FinishError, FinishOrder,
    LanguageError, LanguageOrder, Languages, NoContextFinder, NoPlanFinisher, PlanFinisher, Ports, Shell,
    ShellEnd, ShellError, ShellOrder,
};
pub use prompt::{ATTACHMENT_LIMIT, PROMPT_LIMIT_BYTES, Prompt, SCRIPT_LIMIT_BYTES, StoredAttachment};
pub use service::Sessions;
pub use session::{ActiveTurn, Actor, Asked, Fork, Session, SessionFacts, SessionRecord, Stop};
pub use sink::{Sink, SinkError, ToolSink};
pub use state::Happening;
pub use store::unreadable_head;
pub use tools::Toolbox;
pub use transcript::{apply, apply_stored};
pub use turn::{Turn, TurnRecord};
