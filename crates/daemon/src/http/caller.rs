//! The caller of a request.
//!
//! Anyone with the token may do everything, so a caller's name is taken on trust: the `Tidelock-Actor` header, which
//! the command line fills with the user's name. It tells people apart, but protects nothing. [`Peer`] is what protects
//! the user's files.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::HeaderName;
use http::request::Parts;
use protocol::RequestId;

use super::consent::{Peer, StartedFor};
use crate::access::Transport;
use crate::app::App;
use crate::durable::Who;

const ACTOR: HeaderName = HeaderName::from_static("tidelock-actor");
/// The longest name. Longer names are truncated.
const LIMIT_CHARACTERS: usize = 100;

#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The name that is recorded with their changes.
    pub(crate) actor: String,
    pub(crate) peer: Peer,
    pub(crate) started_for: StartedFor,
}

impl Caller {
    /// A caller that isn't at the other end of a connection: the page, or a client that has the user's consent.
    pub(crate) fn named(actor: impl Into<String>) -> Self {
        Self {
            actor: actor.into(),
            peer: Peer(None),
            started_for: StartedFor::Anybody,
        }
    }

    /// The actor as plans and sessions record it.
    pub(crate) fn by(&self) -> Arc<str> {
        self.actor.as_str().into()
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &Arc<App>) -> Result<Self, Infallible> {
        let given = parts.headers.get(ACTOR).map(|name| name.as_bytes());
        let transport = parts.extensions.get().copied().unwrap_or(Transport::Tcp);
        Ok(Self {
            peer: parts.extensions.get().copied().unwrap_or_default(),
            ..Self::named(actor(given, transport))
        })
    }
}

impl FromRequestParts<Arc<App>> for Who {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &Arc<App>) -> Result<Self, Infallible> {
        let extensions = &parts.extensions;
        Ok(Self {
            // The layers around every handler add both. A change without them would still be valid.
            request_id: extensions.get().copied().unwrap_or_else(RequestId::generate),
            transport: extensions.get().copied().unwrap_or(Transport::Tcp),
        })
    }
}

/// The name that a caller gives, cleaned and truncated, or a name based on its transport.
pub(crate) fn actor(given: Option<&[u8]>, transport: Transport) -> String {
    let text = String::from_utf8_lossy(given.unwrap_or_default());
    let name: String = text
        .chars()
        .filter(|character| !character.is_control())
        .take(LIMIT_CHARACTERS)
        .collect();
    match name.trim() {
        "" => format!("a client over {}", transport.name()),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_as_it_is_given_and_kept_short() {
        let long = "x".repeat(LIMIT_CHARACTERS + 1);
        for (given, expected) in [
            (None, "a client over unix"),
            (Some("  "), "a client over unix"),
            (Some("me"), "me"),
            (Some("zoë\u{7f}"), "zoë"),
            (Some(&*long), &long[1..]),
        ] {
            let found = actor(given.map(str::as_bytes), Transport::Unix);
            assert_eq!(found, expected, "{given:?}");
        }
    }
}
