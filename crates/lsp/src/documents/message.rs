//! Messages about documents.

use std::{path::Path, sync::Arc};

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::text::ContentChange;

/// A notification about one document. It serializes as the parameters of its method.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DocumentMessage {
    /// It is open from now on.
    DidOpen {
        /// Which language it is in, in the protocol's words.
        language: Arc<str>,
        /// Its version.
        version: i32,
        /// Its text.
        text: Arc<str>,
    },
    /// It is another text from now on.
    DidChange {
        /// The version of the new text.
        version: i32,
        /// What is different.
        change: ContentChange,
        /// Whether anything is.
        text: TextIs,
    },
    /// It was written to disk.
    DidSave {
        /// The text, for a server that wants it.
        text: Option<Arc<str>>,
    },
    /// It is closed from now on.
    DidClose,
}

/// Whether a new version has a new text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TextIs {
    /// It has.
    New,
    /// It has not: the server shall look at the document again, since something around it has changed.
    TheSame,
}

impl DocumentMessage {
    /// The method of the notification.
    pub fn method(&self) -> &'static str {
        match self {
            Self::DidOpen { .. } => "textDocument/didOpen",
            Self::DidChange { .. } => "textDocument/didChange",
            Self::DidSave { .. } => "textDocument/didSave",
            Self::DidClose => "textDocument/didClose",
        }
    }
}

/// A message to be sent to one generation of a server. It serializes as the parameters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outgoing {
    /// The document.
    pub path: Arc<Path>,
    /// The same, in the protocol's words.
    pub uri: Arc<str>,
    /// What is said about it.
    pub message: DocumentMessage,
}

impl Outgoing {
    /// The method of the notification.
    pub fn method(&self) -> &'static str {
        self.message.method()
    }

    /// The version that the server has from this message on, if it makes a new one known.
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
                    // clangd says nothing about a text that it knows, unless this stands there. Nobody else knows it.
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
