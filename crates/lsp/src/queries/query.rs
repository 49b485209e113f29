//! The questions.

use std::{path::Path, sync::Arc};

use protocol::{CallDirection, Position, Range};

use super::capabilities::Feature;

/// A position in a file, for a question.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct At {
    /// The file; absolute.
    pub path: Arc<Path>,
    pub position: Position,
}

/// Whether the declaration of a thing is one of its references.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Declarations {
    Included,
    LeftOut,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Indentation {
    /// Tabs, displayed as this many spaces.
    Tabs(u32),
    Spaces(u32),
}

/// A question about code. Questions only read: a change is returned as an edit and isn't made. So a question can be
/// repeated if the server dies.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Query {
    Diagnostics {
        path: Arc<Path>,
    },
    Hover(At),
    Completions(At),
    Definition(At),
    Declaration(At),
    TypeDefinition(At),
    Implementation(At),
    References {
        at: At,
        declarations: Declarations,
    },
    Rename {
        at: At,
        new_name: String,
    },
    CodeActions {
        path: Arc<Path>,
        range: Range,
        /// Only these kinds, for example `quickfix`; all kinds if empty.
        kinds: Vec<String>,
    },
    Format {
        path: Arc<Path>,
        /// Only this part.
        range: Option<Range>,
        /// How to indent, unless the server decides.
        indentation: Indentation,
    },
    /// The parameters of the call around a position.
    SignatureHelp(At),
    DocumentSymbols {
        path: Arc<Path>,
    },
    WorkspaceSymbols {
        name: String,
    },
    Calls {
        at: At,
        direction: CallDirection,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reach {
    /// The text of the file.
    File,
    /// What the file uses; the answer names no other file.
    Surroundings,
    /// All files, and the answer may name any of them.
    Workspace,
}

impl Query {
    /// Its name in logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Diagnostics { .. } => "diagnostics",
            Self::Hover(_) => "hover",
            Self::Completions(_) => "completions",
            Self::Definition(_) => "definition",
            Self::Declaration(_) => "declaration",
            Self::TypeDefinition(_) => "type_definition",
            Self::Implementation(_) => "implementation",
            Self::References { .. } => "references",
            Self::Rename { .. } => "rename",
            Self::CodeActions { .. } => "code_actions",
            Self::Format { .. } => "format",
            Self::SignatureHelp(_) => "signature_help",
            Self::DocumentSymbols { .. } => "document_symbols",
            Self::WorkspaceSymbols { .. } => "workspace_symbols",
            Self::Calls { .. } => "calls",
        }
    }

    /// The file that must be open for it.
    pub fn path(&self) -> Option<&Arc<Path>> {
        match self {
            Self::Diagnostics { path }
            | Self::CodeActions { path, .. }
            | Self::Format { path, .. }
            | Self::DocumentSymbols { path } => Some(path),
            Self::Hover(at)
            | Self::Completions(at)
            | Self::Definition(at)
            | Self::Declaration(at)
            | Self::TypeDefinition(at)
            | Self::Implementation(at)
            | Self::References { at, .. }
            | Self::Rename { at, .. }
            | Self::SignatureHelp(at)
            | Self::Calls { at, .. } => Some(&at.path),
            Self::WorkspaceSymbols { .. } => None,
        }
    }

    #[must_use]
    pub fn with_path(mut self, other: Arc<Path>) -> Self {
        match &mut self {
            Self::Diagnostics { path }
            | Self::CodeActions { path, .. }
            | Self::Format { path, .. }
            | Self::DocumentSymbols { path } => *path = other,
            Self::Hover(at)
            | Self::Completions(at)
            | Self::Definition(at)
            | Self::Declaration(at)
            | Self::TypeDefinition(at)
            | Self::Implementation(at)
            | Self::References { at, .. }
            | Self::Rename { at, .. }
            | Self::SignatureHelp(at)
            | Self::Calls { at, .. } => at.path = other,
            Self::WorkspaceSymbols { .. } => {}
        }
        self
    }

    /// Whether the answer depends on files other than the one in the question.
    pub(crate) fn reach(&self) -> Reach {
        match self {
            Self::Format { .. } | Self::DocumentSymbols { .. } => Reach::File,
            Self::Hover(_) | Self::Completions(_) | Self::SignatureHelp(_) => Reach::Surroundings,
            _ => Reach::Workspace,
        }
    }

    /// The feature that a server must offer. Diagnostics may also be pushed.
    pub fn needs(&self) -> Feature {
        match self {
            Self::Diagnostics { .. } => Feature::PullDiagnostics,
            Self::Hover(_) => Feature::Hover,
            Self::Completions(_) => Feature::Completion,
            Self::Definition(_) => Feature::Definition,
            Self::Declaration(_) => Feature::Declaration,
            Self::TypeDefinition(_) => Feature::TypeDefinition,
            Self::Implementation(_) => Feature::Implementation,
            Self::References { .. } => Feature::References,
            Self::Rename { .. } => Feature::Rename,
            Self::CodeActions { .. } => Feature::CodeAction,
            Self::Format { range: None, .. } => Feature::Formatting,
            Self::Format { range: Some(_), .. } => Feature::RangeFormatting,
            Self::SignatureHelp(_) => Feature::SignatureHelp,
            Self::DocumentSymbols { .. } => Feature::DocumentSymbol,
            Self::WorkspaceSymbols { .. } => Feature::WorkspaceSymbol,
            Self::Calls { .. } => Feature::CallHierarchy,
        }
    }
}
