//! Headers in which a client describes itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::http::{HeaderMap, HeaderName};

use super::actor::ShortId;
use crate::access::Transport;
use crate::http::caller::actor;

/// Distinguishes clients of the same program; each `tidelock mcp` process creates one.
const CLIENT_ID: HeaderName = HeaderName::from_static("tidelock-client-id");
/// The working directory of a client, percent-encoded.
const DIRECTORY: HeaderName = HeaderName::from_static("tidelock-directory");
/// Variables that say where the client's programs are: a JSON object, percent-encoded.
const ENVIRONMENT: HeaderName = HeaderName::from_static("tidelock-environment");
/// `allow` if the user who started the client has allowed it to apply plans.
const APPLY: HeaderName = HeaderName::from_static("tidelock-apply");
/// The actor of a client without a session.
const ACTOR: HeaderName = HeaderName::from_static("tidelock-actor");

/// What a client says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientHeaders {
    pub(super) id: Option<ShortId>,
    pub(super) actor: Option<String>,
    pub(super) directory: Option<PathBuf>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) grant: Grant,
}

/// Whether the user who started a client has allowed it to apply plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Grant {
    /// The configuration decides.
    #[default]
    AsConfigured,
    Allowed,
}

impl ClientHeaders {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        Self {
            id: text(&CLIENT_ID).and_then(ShortId::read),
            actor: text(&ACTOR)
                .filter(|name| !name.trim().is_empty())
                .map(|name| actor(Some(name.as_bytes()), Transport::Tcp)),
            directory: text(&DIRECTORY)
                .and_then(decoded)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute()),
            environment: text(&ENVIRONMENT)
                .and_then(decoded)
                .and_then(|given| serde_json::from_str(&given).ok())
                .unwrap_or_default(),
            grant: match text(&APPLY) {
                Some("allow") => Grant::Allowed,
                _ => Grant::AsConfigured,
            },
        }
    }
}

/// Decodes a percent-encoded text, if it is valid.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| {
            char::from(byte)
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        };
        let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
        bytes.push(high * 16 + low);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read() {
        let read = |headers: &[(&'static str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(*name, value.parse().unwrap());
            }
            ClientHeaders::read(&map)
        };
        let nothing = ClientHeaders {
            id: None,
            actor: None,
            directory: None,
            environment: BTreeMap::new(),
            grant: Grant::AsConfigured,
        };
        assert_eq!(read(&[]), nothing);
        assert_eq!(
            read(&[
                ("tidelock-client-id", "k3v9qd"),
                ("tidelock-directory", "/home/gr%C3%B6%C3%9Fe/a%20b"),
                ("tidelock-environment", r#"{"PATH":"/a%20b:/c"}"#),
                ("tidelock-apply", "allow"),
                ("tidelock-actor", "me"),
            ]),
            ClientHeaders {
                id: ShortId::read("k3v9qd"),
                actor: Some("me".to_owned()),
                directory: Some(PathBuf::from("/home/größe/a b")),
                environment: BTreeMap::from([("PATH".to_owned(), "/a b:/c".to_owned())]),
                grant: Grant::Allowed,
            }
        );
        for bad in ["relative", "/a%2", "/a%zz", "/%ff"] {
            assert_eq!(read(&[("tidelock-directory", bad)]), nothing, "{bad}");
        }
    }
}
