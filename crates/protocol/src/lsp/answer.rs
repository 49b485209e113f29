//! Answers of language servers.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A position in a text. Lines and columns start at 1, and columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Position {
    /// The line, starting at 1.
    pub line: u32,
    /// The column in characters, starting at 1.
    pub column: u32,
}

/// A part of a text. The end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Range {
    /// The position of the first character.
    pub start: Position,
    /// The position after the last character.
    pub end: Position,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.start, self.end)
    }
}

/// A server that contributed to an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnsweredBy {
    /// The id of the server.
    pub id: String,
    /// The name of the server.
    pub server: String,
    /// Which process of that server answered, starting at 1.
    pub generation: u64,
    /// The version of the document that the answer is about, as the server knows it. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_version: Option<i32>,
}

/// A server that should have contributed to an answer but didn't.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotAnswered {
    /// The name of the server.
    pub server: String,
    /// The stable error code.
    pub code: String,
    /// What went wrong.
    pub detail: String,
}

/// A location in a file, with the code there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Location {
    /// The file, relative to the workspace. Absolute if it is outside the workspace.
    pub path: String,
    /// The range in the file.
    pub range: Range,
    /// The first line of the range. Long lines are cut. Absent if the file can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

/// Locations of definitions, declarations, types, implementations or references.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LocationsAnswer {
    /// The locations, sorted by path and position. Empty if the server knows of none.
    pub locations: Vec<Location>,
    /// The number of results before the list was cut.
    pub total: u64,
    /// The workspace, as an absolute path. Other paths are relative to it.
    pub workspace: String,
    /// The servers that answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// What a server knows about a position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HoverAnswer {
    /// The text, in Markdown. Absent if the server has nothing to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The range the text is about. Absent if the server doesn't report one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// The workspace, as an absolute path. Other paths are relative to it.
    pub workspace: String,
    /// The servers that answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// A completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Completion {
    /// The text to show.
    pub label: String,
    /// The kind of symbol, such as `function`. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// More information, such as the type. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The text to insert. Absent if it is the same as `label`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insert_text: Option<String>,
}

/// Completions at a position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CompletionsAnswer {
    /// The completions, in the order the server recommends.
    pub completions: Vec<Completion>,
    /// The number of results before the list was cut.
    pub total: u64,
    /// Whether the server reports that it has more completions than it returned.
    pub incomplete: bool,
    /// The workspace, as an absolute path. Other paths are relative to it.
    pub workspace: String,
    /// The servers that answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// A change to a part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TextEdit {
    /// The range to replace, in the original text.
    pub range: Range,
    /// The replacement.
    pub new_text: String,
}

/// A change to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum FileEdit {
    /// Replaces parts of the file.
    Edit {
        /// The file.
        path: String,
        /// The changes, from top to bottom.
        edits: Vec<TextEdit>,
    },
    /// Creates the file.
    Create {
        /// The file.
        path: String,
    },
    /// Renames the file.
    Rename {
        /// The current path.
        path: String,
        /// The new path.
        new_path: String,
    },
    /// Deletes the file.
    Delete {
        /// The file.
        path: String,
    },
}

/// Edits that a server proposes. No files were changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EditAnswer {
    /// The changes to files, in order.
    pub files: Vec<FileEdit>,
    /// The same changes as a unified diff.
    pub diff: String,
    /// The workspace, as an absolute path. Other paths are relative to it.
    pub workspace: String,
    /// The servers that answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// An action that a server offers at a position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeAction {
    /// What the action does.
    pub title: String,
    /// The kind of action, such as `quickfix`. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether the server recommends this action.
    pub preferred: bool,
    /// Why the action isn't available now. Absent if it is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    /// The changes the action would make. Empty if the server doesn't report them.
    pub files: Vec<FileEdit>,
}

/// Actions available at a position. No files were changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeActionsAnswer {
    /// The actions.
    pub actions: Vec<CodeAction>,
    /// The workspace, as an absolute path. Other paths are relative to it.
    pub workspace: String,
    /// The servers that answered.
    pub answered_by: Vec<AnsweredBy>,
    /// The servers that didn't answer, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_answered: Vec<NotAnswered>,
}

/// A signature of the function called at a position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Signature {
    /// The signature, as text.
    pub label: String,
    /// The documentation, in Markdown. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
    /// The parameters.
    pub parameters: Vec<String>,
    /// The index of the parameter at the position. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_parameter: Option<u32>,
}

/// The signatures of the function called at a position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignatureAnswer {
    /// The signatures.
    pub signatures: Vec<Signature>,
    /// The index of the signature that fits best. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<u32>,
    /// The workspace, as an absolute path. Other paths are relative to it.
    pub workspace: String,
    /// The servers that answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// A named symbol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Symbol {
    /// The name.
    pub name: String,
    /// The kind of symbol, such as `function`.
    pub kind: String,
    /// More information, such as the type. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The symbol that contains it. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The file.
    pub path: String,
    /// The range of the name. Absent if the server only reports the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// The nesting depth, starting at 0.
    pub depth: u32,
}

/// The symbols of a file, in source order, or of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SymbolsAnswer {
    /// The symbols.
    pub symbols: Vec<Symbol>,
    /// The number of results before the list was cut.
    pub total: u64,
    /// The workspace, as an absolute path. Other paths are relative to it.
    pub workspace: String,
    /// The servers that answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// A caller or a callee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Call {
    /// The name.
    pub name: String,
    /// The kind of symbol, such as `function`.
    pub kind: String,
    /// More information. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Where it is defined.
    pub location: Location,
    /// The ranges of the calls, in the caller.
    pub calls: Vec<Range>,
}

/// The callers of the function at a position, or the functions it calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallsAnswer {
    /// The callers or callees.
    pub calls: Vec<Call>,
    /// The number of results before the list was cut.
    pub total: u64,
    /// The workspace, as an absolute path. Other paths are relative to it.
    pub workspace: String,
    /// The servers that answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticSeverity {
    /// An error.
    Error,
    /// A possible error.
    Warning,
    /// Information.
    Information,
    /// A suggestion.
    Hint,
}

/// A location related to a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Related {
    /// The location.
    pub location: Location,
    /// The message for this location.
    pub message: String,
}

/// A diagnostic that a server reports about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diagnostic {
    /// The file.
    pub path: String,
    /// The range in the file.
    pub range: Range,
    /// The severity.
    pub severity: DiagnosticSeverity,
    /// The server's code for the diagnostic. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The tool that reported it, such as `Pyright` or `Ruff`.
    pub source: String,
    /// The message.
    pub message: String,
    /// The first line of the range. Long lines are cut. Absent if there is none to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// Tags: `unnecessary`, `deprecated`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Related locations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
}

/// Diagnostics for a file as it is on disk now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiagnosticsAnswer {
    /// The diagnostics, sorted by position. Empty if every server that answered found no problems.
    pub diagnostics: Vec<Diagnostic>,
    /// The number of results before the list was cut.
    pub total: u64,
    /// The workspace, as an absolute path. Other paths are relative to it.
    pub workspace: String,
    /// The servers that answered.
    pub answered_by: Vec<AnsweredBy>,
    /// The servers that didn't answer, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_answered: Vec<NotAnswered>,
}

/// The answer to a raw LSP request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RawAnswer {
    /// The result, as the server sent it.
    pub result: Value,
    /// The server that answered.
    pub answered_by: AnsweredBy,
}
