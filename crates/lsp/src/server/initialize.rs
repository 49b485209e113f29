//! What the two sides announce about themselves in the handshake.

use std::path::Path;

use serde_json::{Value, json};

/// The parameters of `initialize`. The process id is ours, so a server that watches it exits with the daemon.
pub(super) fn initialize_params(root: &Path, root_uri: &str, options: Option<&Value>) -> Value {
    let name = root
        .file_name()
        .map_or_else(|| root.to_string_lossy(), |name| name.to_string_lossy());
    json!({
        "processId": std::process::id(),
        "clientInfo": {"name": "tidelock", "version": env!("CARGO_PKG_VERSION")},
        "locale": "en",
        "rootPath": root,
        "rootUri": root_uri,
        "workspaceFolders": [{"uri": root_uri, "name": name}],
        "initializationOptions": options,
        "capabilities": capabilities(),
        "trace": "off",
    })
}

/// What we support.
fn capabilities() -> Value {
    let registered = json!({"dynamicRegistration": true});
    let symbol_kinds: Vec<u32> = (1..=26).collect();
    json!({
        "general": {
            "positionEncodings": ["utf-8", "utf-16"],
            "staleRequestSupport": {"cancel": true, "retryOnContentModified": []},
        },
        "window": {
            "workDoneProgress": true,
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": false}},
        },
        "workspace": {
            "applyEdit": false,
            "configuration": true,
            "workspaceFolders": true,
            "workspaceEdit": {
                "documentChanges": true,
                "resourceOperations": ["create", "rename", "delete"],
                "failureHandling": "abort",
            },
            "didChangeConfiguration": registered,
            "didChangeWatchedFiles": {"dynamicRegistration": true, "relativePatternSupport": true},
            "symbol": {
                "dynamicRegistration": true,
                "symbolKind": {"valueSet": symbol_kinds},
                "resolveSupport": {"properties": ["location.range"]},
            },
            "diagnostics": {"refreshSupport": true},
        },
        "textDocument": {
            "synchronization": {"dynamicRegistration": true, "didSave": true},
            "hover": {"dynamicRegistration": true, "contentFormat": ["markdown", "plaintext"]},
            "completion": {
                "dynamicRegistration": true,
                "contextSupport": true,
                "completionItem": {
                    "documentationFormat": ["markdown", "plaintext"],
                    "labelDetailsSupport": true,
                    "snippetSupport": false,
                },
            },
            "signatureHelp": {
                "dynamicRegistration": true,
                "signatureInformation": {
                    "documentationFormat": ["markdown", "plaintext"],
                    "parameterInformation": {"labelOffsetSupport": true},
                    "activeParameterSupport": true,
                },
            },
            "declaration": {"dynamicRegistration": true, "linkSupport": true},
            "definition": {"dynamicRegistration": true, "linkSupport": true},
            "typeDefinition": {"dynamicRegistration": true, "linkSupport": true},
            "implementation": {"dynamicRegistration": true, "linkSupport": true},
            "references": registered,
            "documentSymbol": {
                "dynamicRegistration": true,
                "hierarchicalDocumentSymbolSupport": true,
                "symbolKind": {"valueSet": symbol_kinds},
            },
            "codeAction": {
                "dynamicRegistration": true,
                "isPreferredSupport": true,
                "disabledSupport": true,
                "dataSupport": true,
                "resolveSupport": {"properties": ["edit"]},
                "codeActionLiteralSupport": {
                    "codeActionKind": {
                        "valueSet": ["", "quickfix", "refactor", "refactor.extract", "refactor.inline",
                                     "refactor.rewrite", "source", "source.organizeImports", "source.fixAll"],
                    },
                },
            },
            "formatting": registered,
            "rangeFormatting": registered,
            "rename": {"dynamicRegistration": true, "prepareSupport": true},
            "publishDiagnostics": {
                "relatedInformation": true,
                "versionSupport": true,
                "codeDescriptionSupport": true,
                "tagSupport": {"valueSet": [1, 2]},
            },
            "diagnostic": {"dynamicRegistration": true, "relatedDocumentSupport": true},
            "callHierarchy": registered,
        },
        "experimental": {"serverStatusNotification": true},
    })
}
