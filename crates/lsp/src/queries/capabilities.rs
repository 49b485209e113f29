//! The capabilities of a server: those in its answer to `initialize`, and those it has registered since.

use std::collections::BTreeMap;

use serde_json::Value;

use super::tsserver::PASS_ON;
use crate::{documents::DocumentSync, text::PositionEncoding};

/// How many registrations of one server are kept. Servers make a few dozen; further ones are refused.
const MAX_REGISTRATIONS: usize = 1024;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Feature {
    PullDiagnostics,
    Hover,
    Completion,
    Definition,
    Declaration,
    TypeDefinition,
    Implementation,
    References,
    Rename,
    PrepareRename,
    CodeAction,
    /// The edit of a code action on a second request.
    ResolveCodeAction,
    Formatting,
    RangeFormatting,
    SignatureHelp,
    DocumentSymbol,
    WorkspaceSymbol,
    CallHierarchy,
}

impl Feature {
    pub fn what(self) -> &'static str {
        match self {
            Self::PullDiagnostics => "diagnostics on request",
            Self::Hover => "hover",
            Self::Completion => "completions",
            Self::Definition => "definitions",
            Self::Declaration => "declarations",
            Self::TypeDefinition => "type definitions",
            Self::Implementation => "implementations",
            Self::References => "references",
            Self::Rename => "renames",
            Self::PrepareRename => "checking a rename",
            Self::CodeAction => "code actions",
            Self::ResolveCodeAction => "resolving code actions",
            Self::Formatting => "formatting",
            Self::RangeFormatting => "formatting a range",
            Self::SignatureHelp => "signature help",
            Self::DocumentSymbol => "document symbols",
            Self::WorkspaceSymbol => "workspace symbols",
            Self::CallHierarchy => "call hierarchies",
        }
    }

    /// The field of the server's capabilities, and the method that it registers instead.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::PullDiagnostics => ("diagnosticProvider", "textDocument/diagnostic"),
            Self::Hover => ("hoverProvider", "textDocument/hover"),
            Self::Completion => ("completionProvider", "textDocument/completion"),
            Self::Definition => ("definitionProvider", "textDocument/definition"),
            Self::Declaration => ("declarationProvider", "textDocument/declaration"),
            Self::TypeDefinition => ("typeDefinitionProvider", "textDocument/typeDefinition"),
            Self::Implementation => ("implementationProvider", "textDocument/implementation"),
            Self::References => ("referencesProvider", "textDocument/references"),
            Self::Rename | Self::PrepareRename => ("renameProvider", "textDocument/rename"),
            Self::CodeAction | Self::ResolveCodeAction => ("codeActionProvider", "textDocument/codeAction"),
            Self::Formatting => ("documentFormattingProvider", "textDocument/formatting"),
            Self::RangeFormatting => ("documentRangeFormattingProvider", "textDocument/rangeFormatting"),
            Self::SignatureHelp => ("signatureHelpProvider", "textDocument/signatureHelp"),
            Self::DocumentSymbol => ("documentSymbolProvider", "textDocument/documentSymbol"),
            Self::WorkspaceSymbol => ("workspaceSymbolProvider", "workspace/symbol"),
            Self::CallHierarchy => ("callHierarchyProvider", "textDocument/prepareCallHierarchy"),
        }
    }

    pub(super) fn method(self) -> &'static str {
        self.names().1
    }

    /// The option that must be set as well.
    fn option(self) -> Option<&'static str> {
        match self {
            Self::PrepareRename => Some("prepareProvider"),
            Self::ResolveCodeAction => Some("resolveProvider"),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DiagnosticsBy {
    Report,
    /// It forwards a request to TypeScript's own server.
    Tsserver,
    Push,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the server has {limit} registrations, which is the limit")]
pub struct TooManyRegistrations {
    pub limit: usize,
}

#[derive(Clone, Debug)]
struct Registration {
    method: String,
    options: Value,
}

/// The capabilities of one generation of a server.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    initial: Value,
    registered: BTreeMap<String, Registration>,
}

impl Capabilities {
    /// The capabilities in the answer to `initialize`.
    pub fn new(capabilities: Value) -> Self {
        Self {
            initial: capabilities,
            registered: BTreeMap::new(),
        }
    }

    /// The handshake is over. Earlier registrations stay.
    pub(crate) fn initialized(&mut self, capabilities: Value) {
        self.initial = capabilities;
    }

    /// Registers a capability. Registering the same id again replaces it.
    pub fn register(&mut self, id: &str, method: &str, options: Value) -> Result<(), TooManyRegistrations> {
        if self.registered.len() >= MAX_REGISTRATIONS && !self.registered.contains_key(id) {
            return Err(TooManyRegistrations {
                limit: MAX_REGISTRATIONS,
            });
        }
        let registration = Registration {
            method: method.to_owned(),
            options,
        };
        self.registered.insert(id.to_owned(), registration);
        Ok(())
    }

    /// Unknown ids are ignored.
    pub fn unregister(&mut self, id: &str) {
        self.registered.remove(id);
    }

    /// Whether it offers a feature, for any kind of document. The server refuses documents that it doesn't support.
    pub fn offers(&self, feature: Feature) -> bool {
        self.options(feature).any(|options| match feature.option() {
            Some(option) => options.get(option) == Some(&Value::Bool(true)),
            None => true,
        })
    }

    pub fn diagnostics(&self) -> DiagnosticsBy {
        let commands = self.initial.pointer("/executeCommandProvider/commands");
        let commands = commands.and_then(Value::as_array);
        if self.offers(Feature::PullDiagnostics) {
            DiagnosticsBy::Report
        } else if commands.is_some_and(|commands| commands.iter().any(|command| command == PASS_ON)) {
            DiagnosticsBy::Tsserver
        } else {
            DiagnosticsBy::Push
        }
    }

    pub(super) fn diagnostics_identifier(&self) -> Option<&str> {
        self.options(Feature::PullDiagnostics)
            .find_map(|options| options.get("identifier")?.as_str())
    }

    pub fn sync(&self) -> DocumentSync {
        DocumentSync::from_capability(self.initial.get("textDocumentSync"))
    }

    /// The agreed encoding. One that was never offered is an error of the server.
    pub fn encoding(&self) -> Result<PositionEncoding, String> {
        match self.initial.get("positionEncoding") {
            None | Some(Value::Null) => Ok(PositionEncoding::default()),
            Some(name) => name
                .as_str()
                .and_then(PositionEncoding::from_name)
                .ok_or_else(|| {
                    format!("the server chose the position encoding {name}, which was not offered")
                }),
        }
    }

    fn options(&self, feature: Feature) -> impl Iterator<Item = &Value> {
        let (field, method) = feature.names();
        let initial = self.initial.get(field).filter(|value| match value {
            Value::Bool(offered) => *offered,
            Value::Object(_) => true,
            _ => false,
        });
        let registered = self
            .registered
            .values()
            .filter(move |registration| registration.method == method);
        initial
            .into_iter()
            .chain(registered.map(|registration| &registration.options))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn features_are_offered_at_first_or_later() {
        let mut capabilities = Capabilities::new(json!({
            "hoverProvider": true,
            "definitionProvider": false,
            "referencesProvider": {"workDoneProgress": true},
            "declarationProvider": null,
            "renameProvider": {"prepareProvider": true},
            "codeActionProvider": true,
            "diagnosticProvider": {"identifier": "x"},
        }));
        let cases = [
            (Feature::Hover, true),
            (Feature::Definition, false),
            (Feature::References, true),
            (Feature::Declaration, false),
            (Feature::Implementation, false),
            (Feature::Rename, true),
            (Feature::PrepareRename, true),
            (Feature::CodeAction, true),
            (Feature::ResolveCodeAction, false),
        ];
        for (feature, expected) in cases {
            assert_eq!(capabilities.offers(feature), expected, "{feature:?}");
        }
        assert_eq!(capabilities.diagnostics_identifier(), Some("x"));

        let method = "textDocument/implementation";
        capabilities.register("1", method, Value::Null).unwrap();
        assert!(capabilities.offers(Feature::Implementation));
        capabilities.unregister("2");
        assert!(capabilities.offers(Feature::Implementation));
        capabilities.unregister("1");
        assert!(!capabilities.offers(Feature::Implementation));
    }

    #[test]
    fn registrations_are_bounded() {
        let mut capabilities = Capabilities::default();
        for id in 0..MAX_REGISTRATIONS {
            capabilities.register(&id.to_string(), "m", Value::Null).unwrap();
        }
        assert!(capabilities.register("one more", "m", Value::Null).is_err());
        capabilities.register("0", "again", Value::Null).unwrap();
    }

    #[test]
    fn the_encoding_is_one_that_was_offered() {
        let encoding = |value| Capabilities::new(json!({ "positionEncoding": value })).encoding();
        assert_eq!(encoding(json!("utf-8")), Ok(PositionEncoding::Utf8));
        assert_eq!(encoding(json!(null)), Ok(PositionEncoding::Utf16));
        assert_eq!(Capabilities::default().encoding(), Ok(PositionEncoding::Utf16));
        assert!(encoding(json!("utf-7")).is_err());
    }
}
