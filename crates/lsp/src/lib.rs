//! Language servers, one per workspace, shared by all clients.
//!
//! [`Languages`] is the entry point: it answers questions about files, whatever happens to servers in the meantime. Its
//! parts can be read and tested on their own:
//!
//! - `wire` and `client`: framing with limits, and the connection to one server. An answer that is late, too large,
//!   malformed or unexpected costs one request, or the connection, and never memory.
//! - The crate `lifecycle` decides which servers run, for any kind of server; its public types are re-exported here.
//! - `text`, `documents`: positions and edits; what is open in a server, as what it should know and what it was sent.
//! - `queries`: a question as a conversation, without a connection: requests out, replies in, an answer in our own
//!   types.
//! - `servers`: which servers exist, how they are found, where their root is, and what the user trusts.
//! - `server`: one running server. `watch`: which files have changed. `languages`: puts it all together.
//!
//! **Who owns the state:** the lifecycle of a server is a `kernel::Slot` in the manager; its site holds what a server
//! has across all its processes; what ends with a process belongs to that process.
//!
//! **Invariant:** no answer is older than the question: before each one, files are compared with what the server was
//! sent. If something isn't known yet, the answer is "not ready", and an error is never turned into an empty answer.
//!
//! **What must not happen here:** HTTP, plans, sessions; changes to files: edits are answers.

#![expect(
    missing_docs,
    reason = "only this workspace uses the crate, and a comment that repeats a name says nothing"
)]

mod client;
mod documents;
mod languages;
mod queries;
mod server;
mod servers;
mod text;
mod wire;

pub use client::{
    Client, ClientSettings, Closed, Counters, Flush, Incoming, Notice, ProtocolError, Reply,
    Request as PendingRequest, RequestError,
};
pub use documents::{
    ChangeSync, DocumentCounts, DocumentError, DocumentMessage, DocumentSettings, DocumentSync, Documents,
    Lease, OpenClose, Outbox, Outgoing, SaveSync, SentError, TextIs,
};
pub use languages::{
    Answered, Ask, AskError, Detail, Languages, LanguagesOptions, PathError, ReadTextError, ServerCheck,
    ServerView, WhenIndexing, WhenStarting,
};
pub use lifecycle::{
    Changes, EndReason, ExpectedProcess, Failure, Health, Launch, LaunchFailure, LifecycleError,
    LifecycleManager, LifecycleOptions, LifecycleSettings, Patience, Probe, ProbeResult, RunningServer,
    ServerExit, ServerGeneration, ServerKey, ServerState, ServerStatus, StoppedBy,
};
pub use queries::{
    ActionEffect, Answer, At, Capabilities, CodeAction, Completions, Conversation, Declarations,
    DiagnosticsBy, Edit, Expectation, Feature, FileEvent, Hover, Indentation, Listed, OpenDocument, Origin,
    Push, PushTaken, PushedDiagnostics, Query, QueryError, QueryLimits, QueryResult, Readiness, ReadyState,
    Refusal, Request, ServerHealth, Signatures, Step, Surroundings, Texts, TooManyRegistrations, WatchError,
    WatchedFiles, answer_from_push, merge_answers,
};
pub use server::{RecordLevel, RecordLine};
pub use servers::{
    Applies, Bounds, Chosen, CommandLine, CommandSpec, ConfigError, ConfigHash, ConfigNote, DATA_PLACEHOLDER,
    Detected, Enablement, Environment, Fingerprint, FoundBy, FoundProgram, LanguageFiles, LaunchSpec,
    LocalPrograms, MissingProgram, MissingReason, MissingServer, Origin as ConfigOrigin, Overview,
    PORT_PLACEHOLDER, ProgramPlace, Readiness as ReadinessSignal, Registry, RegistrySettings, Role, Root,
    RootError, RootRule, RootStep, Search, Selection, ServerDefinition, ServerEntry, ServerLimits,
    ServerStatus as ServerAvailability, Transport, Trust, WorkspaceError, WorkspaceServers, find_root,
};
pub use text::{
    ContentChange, EditError, LineIndex, PositionEncoding, PositionError, TextEdit, UriError, WirePosition,
    WireRange, apply_edits, excerpt, path_of_uri, smallest_change, unified_diff, uri_of_path,
};
pub use wire::{
    ConnectError, Connection, Decoder, EncodeError, Frame, FrameError, FrameLimits, Message, MessageError,
    MessageId, Oversized, ResponseError, encode_notification, encode_request, encode_response, error_code,
};
