//! Language servers: which there are, and what they know about code.
//!
//! Lines and columns are 1-based, as people count them; a column counts characters (Unicode scalar values), not
//! bytes and not UTF-16 units. A range begins at its first character and ends *before* its last position. Paths are
//! relative to the workspace; what lies outside of it is absolute.

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
