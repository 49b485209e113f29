//! The queries that language servers answer, declared once for HTTP, MCP and the tools of sessions.

use serde::Serialize;

use super::answer::{
    AnsweredBy, CallsAnswer, CodeActionsAnswer, CompletionsAnswer, DiagnosticsAnswer, EditAnswer,
    HoverAnswer, LocationsAnswer, SignatureAnswer, SymbolsAnswer,
};

macro_rules! verbs {
    ($($verb:ident, $name:literal, [$($member:literal),+], $description:literal;)+) => {
        /// A query about code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CodeVerb {
            $(#[doc = $description] $verb,)+
        }

        impl CodeVerb {
            /// All verbs.
            pub const ALL: &'static [Self] = &[$(Self::$verb),+];

            /// The last segment of its path, `POST /v1/lsp/{name}`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$verb => $name,)+ }
            }

            /// A one-sentence description.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Self::$verb => $description,)+ }
            }

            /// The fields of a [`CodeQuery`](super::CodeQuery) it takes in addition to those that all verbs take.
            #[must_use]
            pub const fn takes(self) -> &'static [&'static str] {
                match self { $(Self::$verb => &[$($member),+],)+ }
            }
        }
    };
}

verbs! {
    Diagnostics, "diagnostics", ["path"],
        "Lists the errors and warnings of a file as it is on disk. All servers of its language are asked.";
    Hover, "hover", ["path", "line", "column"],
        "Shows the type, signature and documentation of the code at a position.";
    Completions, "completions", ["path", "line", "column"],
        "Lists names that could be written at a position: fields, methods, variables.";
    Definition, "definition", ["path", "line", "column"],
        "Finds where the symbol at a position is defined.";
    Declaration, "declaration", ["path", "line", "column"],
        "Finds where the symbol at a position is declared, such as in a header.";
    TypeDefinition, "type-definition", ["path", "line", "column"],
        "Finds where the type of the symbol at a position is defined.";
    Implementation, "implementation", ["path", "line", "column"],
        "Finds what implements the trait, interface or method at a position.";
    References, "references", ["path", "line", "column", "without_declaration"],
        "Finds every use of the symbol at a position.";
    Rename, "rename", ["path", "line", "column", "new_name"],
        "Shows the edits that rename the symbol at a position everywhere. Nothing is changed.";
    CodeActions, "code-actions", ["path", "line", "column", "end_line", "end_column", "kinds"],
        "Lists the fixes and refactorings that are offered at a position. Nothing is changed.";
    Format, "format", ["path", "line", "column", "end_line", "end_column"],
        "Shows the edits that format a file, or a part of it. Nothing is changed.";
    Signature, "signature", ["path", "line", "column"],
        "Shows the parameters of the call around a position.";
    Symbols, "symbols", ["path"],
        "Shows the outline of a file: what it defines, with line numbers.";
    WorkspaceSymbols, "workspace-symbols", ["path", "query"],
        "Finds symbols in the whole project by their name, or a part of it.";
    Calls, "calls", ["path", "line", "column", "direction"],
        "Finds the callers of the function at a position, or the functions that it calls.";
}

impl CodeVerb {
    /// The verb with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|verb| verb.name() == name)
    }

    /// Whether it needs a position in a file. The position is optional for [`Format`](Self::Format).
    #[must_use]
    pub fn has_position(self) -> bool {
        self.takes().contains(&"line") && self != Self::Format
    }
}

/// The answer to a query about code. Each verb uses one of these.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CodeAnswer {
    /// The answer to `diagnostics`.
    Diagnostics(DiagnosticsAnswer),
    /// The answer to `hover`.
    Hover(HoverAnswer),
    /// The answer to `completions`.
    Completions(CompletionsAnswer),
    /// The answer to `definition`, `declaration`, `type-definition`, `implementation` and `references`.
    Locations(LocationsAnswer),
    /// The answer to `rename` and `format`.
    Edit(EditAnswer),
    /// The answer to `code-actions`.
    CodeActions(CodeActionsAnswer),
    /// The answer to `signature`.
    Signature(SignatureAnswer),
    /// The answer to `symbols` and `workspace-symbols`.
    Symbols(SymbolsAnswer),
    /// The answer to `calls`.
    Calls(CallsAnswer),
}

impl CodeAnswer {
    /// The servers that answered.
    #[must_use]
    pub fn answered_by(&self) -> &[AnsweredBy] {
        match self {
            Self::Diagnostics(answer) => &answer.answered_by,
            Self::Hover(answer) => &answer.answered_by,
            Self::Completions(answer) => &answer.answered_by,
            Self::Locations(answer) => &answer.answered_by,
            Self::Edit(answer) => &answer.answered_by,
            Self::CodeActions(answer) => &answer.answered_by,
            Self::Signature(answer) => &answer.answered_by,
            Self::Symbols(answer) => &answer.answered_by,
            Self::Calls(answer) => &answer.answered_by,
        }
    }
}
