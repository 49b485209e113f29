//! Sessions: conversations with agents that can be left, found again, stopped and trusted.
//!
//! - [`Sessions`] is the service: it takes prompts, runs turns one after the other, and stops them.
//! - [`Agent`] does the work of a turn; [`agents`] has those that there are.
//! - [`Toolbox`] is what an agent can do, within a plan; [`Sink`] takes what it says and does.
//! - [`TurnEvent`] is what a turn's stream is made of, and a [`TurnTranscript`](protocol::TurnTranscript) what a reader has
//!   in the end.
//!
//! Words that storage and the wire share (states, answers, rules, usage, transcripts) are those of `protocol`.
//!
//! **Who owns the state:** the log. A session is a stream that anybody may write to, by a commit on the version they saw:
//! prompts, wishes to stop, answers to questions. A turn is a stream that only its owner writes to, and whoever buries it
//! when the owner is gone. To begin a turn, the session's claim and the turn's first event are one commit.
//!
//! **Invariant:** a session has at most one active turn, and names its owner. It is freed by the commit that ends the turn,
//! when nothing of it runs any more.
//!
//! **Invariant:** no step of a turn reads or writes more because the session is long.
//!
//! **What must not happen here:** HTTP, terminals, and a decision about who is alive that rests on a clock.

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
mod keys;
mod machines;
mod manage;
mod observe;
mod options;
mod owner;
mod pages;
mod pause;
pub mod permissions;
mod places;
mod ports;
mod prompt;
mod recorder;
mod recover;
mod removal;
mod runner;
mod service;
mod session;
mod shared;
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
