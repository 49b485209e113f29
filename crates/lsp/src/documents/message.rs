//! Messages about documents.

use std::{path::Path, sync::Arc};

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::text::ContentChange;

/// A notification about one document. It serializes as the parameters of its method.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DocumentMessage {
    DidOpen {
        /// Its language id in the protocol.
        language: Arc<str>,
        version: i32,
        text: Arc<str>,
    },
    DidChange {
        version: i32,
        change: ContentChange,
        text: TextIs,
    },
    DidSave {
        text: Option<Arc<str>>,
    },
    DidClose,
}

/// Whether a new version has a new text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TextIs {
    New,
    /// The text is the same: the server should reread the document, because something else has changed.
    TheSame,
}

impl DocumentMessage {
    pub fn method(&self) -> &'static str {
        match self {
            Self::DidOpen { .. } => "textDocument/didOpen",
            Self::DidChange { .. } => "textDocument/didChange",
            Self::DidSave { .. } => "textDocument/didSave",
            Self::DidClose => "textDocument/didClose",
        }
    }
}

/// A message for one generation of a server. It serializes as its parameters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outgoing {
    pub path: Arc<Path>,
    pub uri: Arc<str>,
    pub message: DocumentMessage,
}

impl Outgoing {
    pub fn method(&self) -> &'static str {
        self.message.method()
    }

    /// The version that this message announces, if any.
    pub fn version(&self) -> Option<i32> {
        match &self.message {
            DocumentMessage::DidOpen { version, .. } | DocumentMessage::DidChange { version, .. } => {
                Some(*version)
            }
            DocumentMessage::DidSave { .. } | DocumentMessage::DidClose => None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextDocument<'a> {
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    language_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

impl Serialize for Outgoing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = TextDocument {
            uri: &self.uri,
            language_id: None,
            version: None,
            text: None,
        };
        let mut params = serializer.serialize_map(None)?;
        match &self.message {
            DocumentMessage::DidOpen {
                language,
                version,
                text,
            } => {
                document.language_id = Some(language);
                document.version = Some(*version);
                document.text = Some(text);
            }
            DocumentMessage::DidChange {
                version,
                change,
                text,
            } => {
                document.version = Some(*version);
                params.serialize_entry("contentChanges", &[change])?;
                if *text == TextIs::TheSame {
                    // clangd publishes nothing for a text that it already knows, unless this is set. Other
                    // servers ignore it.
                    params.serialize_entry("forceRebuild", &true)?;
                }
            }
            DocumentMessage::DidSave { text: Some(text) } => params.serialize_entry("text", &**text)?,
            DocumentMessage::DidSave { text: None } | DocumentMessage::DidClose => {}
        }
        params.serialize_entry("textDocument", &document)?;
        params.end()
    }
}
