//! What language servers answer.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A place in a text, 1-based; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Position {
    /// The line, from 1 on.
    pub line: u32,
    /// The column, from 1 on.
    pub column: u32,
}

/// A part of a text: from its first character to the place behind its last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Range {
    /// Where it begins.
    pub start: Position,
    /// The place behind its end.
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

/// A server that took part in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnsweredBy {
    /// Its id.
    pub id: String,
    /// Its name.
    pub server: String,
    /// Which process of that server it was: the first is 1.
    pub generation: u64,
    /// The version of the document that the answer is about, as the server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_version: Option<i32>,
}

/// A server that should have taken part and did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotAnswered {
    /// Its name.
    pub server: String,
    /// The stable code of what went wrong.
    pub code: String,
    /// What went wrong.
    pub detail: String,
}

/// A place in a file, with the code that stands there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Location {
    /// The file, relative to the workspace.
    pub path: String,
    /// Where in it.
    pub range: Range,
    /// The line that it begins in, cut if it is long. Missing if the file cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

/// Places: of definitions, declarations, types, implementations, references.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LocationsAnswer {
    /// The places, sorted by path and position. None means that the server knows of none.
    pub locations: Vec<Location>,
    /// How many there were before the list was cut.
    pub total: u64,
    /// What paths are relative to.
    pub workspace: String,
    /// Who answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// What a server says about a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HoverAnswer {
    /// The text, in Markdown. Missing if there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// What paths are relative to.
    pub workspace: String,
    /// Who answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// One way to go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Completion {
    /// What is shown.
    pub label: String,
    /// What it is, such as `function`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// More about it, such as its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What is put in, if that is not the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insert_text: Option<String>,
}

/// Ways to go on at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CompletionsAnswer {
    /// In the order that the server thinks best.
    pub completions: Vec<Completion>,
    /// How many there were before the list was cut.
    pub total: u64,
    /// Whether the server says that there are more than it told.
    pub incomplete: bool,
    /// What paths are relative to.
    pub workspace: String,
    /// Who answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// A change of a part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TextEdit {
    /// What is replaced, in the text as it was.
    pub range: Range,
    /// By what.
    pub new_text: String,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum FileEdit {
    /// Parts of it are replaced.
    Edit {
        /// The file.
        path: String,
        /// The changes, from top to bottom.
        edits: Vec<TextEdit>,
    },
    /// It is made.
    Create {
        /// The file.
        path: String,
    },
    /// It gets another name.
    Rename {
        /// The file.
        path: String,
        /// Its new name.
        new_path: String,
    },
    /// It goes away.
    Delete {
        /// The file.
        path: String,
    },
}

/// An edit that a server proposes. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EditAnswer {
    /// What becomes of which file, in order.
    pub files: Vec<FileEdit>,
    /// The same as a unified diff.
    pub diff: String,
    /// What paths are relative to.
    pub workspace: String,
    /// Who answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// Something that a server offers to do about a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeAction {
    /// What it would do.
    pub title: String,
    /// What kind of action it is, such as `quickfix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether the server thinks that it is the one to take.
    pub preferred: bool,
    /// Why it cannot be taken now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
    /// What it would change, where the server says so.
    pub files: Vec<FileEdit>,
}

/// What can be done about a place. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeActionsAnswer {
    /// The actions.
    pub actions: Vec<CodeAction>,
    /// What paths are relative to.
    pub workspace: String,
    /// Who answered.
    pub answered_by: Vec<AnsweredBy>,
    /// Who did not, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_answered: Vec<NotAnswered>,
}

/// One way to call what is called at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Signature {
    /// The signature.
    pub label: String,
    /// What it does, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
    /// Its parameters.
    pub parameters: Vec<String>,
    /// Which parameter the place is at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_parameter: Option<u32>,
}

/// The ways to call what is called at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignatureAnswer {
    /// The signatures.
    pub signatures: Vec<Signature>,
    /// Which of them fits best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<u32>,
    /// What paths are relative to.
    pub workspace: String,
    /// Who answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// Something with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// What it is, such as `function`.
    pub kind: String,
    /// More about it, such as its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The file.
    pub path: String,
    /// The place of its name; missing where the server names the file alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// How deep it stands in others, from 0 on.
    pub depth: u32,
}

/// Symbols of a file, in their order, or of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SymbolsAnswer {
    /// The symbols.
    pub symbols: Vec<Symbol>,
    /// How many there were before the list was cut.
    pub total: u64,
    /// What paths are relative to.
    pub workspace: String,
    /// Who answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// Somebody who calls, or is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// What it is, such as `function`.
    pub kind: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Where it is defined.
    pub location: Location,
    /// Where the calls stand: in the caller.
    pub calls: Vec<Range>,
}

/// Who calls what stands at a place, or whom it calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallsAnswer {
    /// The callers, or those who are called.
    pub calls: Vec<Call>,
    /// How many there were before the list was cut.
    pub total: u64,
    /// What paths are relative to.
    pub workspace: String,
    /// Who answered.
    pub answered_by: Vec<AnsweredBy>,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticSeverity {
    /// It is wrong.
    Error,
    /// It may be wrong.
    Warning,
    /// Something to know.
    Information,
    /// Something to consider.
    Hint,
}

/// A place that belongs to a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Related {
    /// Where it is.
    pub location: Location,
    /// What it says.
    pub message: String,
}

/// Something that a server has to say about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diagnostic {
    /// The file.
    pub path: String,
    /// Where in it.
    pub range: Range,
    /// How bad it is.
    pub severity: DiagnosticSeverity,
    /// Its code, as the server names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Who says so, such as `Pyright` or `Ruff`.
    pub source: String,
    /// What it says.
    pub message: String,
    /// The line that it begins in, cut if it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// `unnecessary`, `deprecated`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What belongs to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
}

/// What the servers have to say about a file as it is on disk now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiagnosticsAnswer {
    /// Sorted by place. None means that all that answered have nothing to complain about.
    pub diagnostics: Vec<Diagnostic>,
    /// How many there were before the list was cut.
    pub total: u64,
    /// What paths are relative to.
    pub workspace: String,
    /// Who answered.
    pub answered_by: Vec<AnsweredBy>,
    /// Who did not, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_answered: Vec<NotAnswered>,
}

/// The answer to a request of the protocol itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RawAnswer {
    /// What the server answered.
    pub result: Value,
    /// Who answered.
    pub answered_by: AnsweredBy,
}
