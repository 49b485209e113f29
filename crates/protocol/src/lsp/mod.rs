//! Language servers: which ones are available, and what they know about code.
//!
//! Lines and columns start at 1, as people count them. A column counts characters (Unicode scalar values),
//! not bytes or UTF-16 units. A range starts at its first character and ends *before* its end position. Paths
//! are relative to the workspace; paths outside it are absolute.

mod answer;
mod query;
mod server;
mod verb;

pub use answer::{
    AnsweredBy, Call, CallsAnswer, CodeAction, CodeActionsAnswer, Completion, CompletionsAnswer, Diagnostic,
    DiagnosticSeverity, DiagnosticsAnswer, EditAnswer, FileEdit, HoverAnswer, Location, LocationsAnswer,
    NotAnswered, Position, Range, RawAnswer, Related, Signature, SignatureAnswer, Symbol, SymbolsAnswer,
    TextEdit,
};
pub use query::{CallDirection, CodeQuery, RawRequest, SEARCH_VARIABLES};
pub use server::{
    Availability, ChangeServer, ConfigNote, ConfiguredServer, LspConfig, Server, ServerHealth, ServerList,
    ServerLog, ServerLogLine, ServerProgress, ServerReadiness, ServerState, StartServer, TrustConfig,
    Trusted,
};
pub use verb::{CodeAnswer, CodeVerb};
