//! Who asks for something.
//!
//! Whoever has the token may do everything, so a caller is believed when it gives its name: the header
//! `Tidelock-Actor`, which the command line fills with the user's. It tells people apart, and protects nothing. What
//! protects the user's files is [`Peer`].

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
/// The longest name. What is longer is cut.
const LIMIT_CHARACTERS: usize = 100;

/// Who asks for an act.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The name that is recorded with what they do.
    pub(crate) actor: String,
    pub(crate) peer: Peer,
    pub(crate) started_for: StartedFor,
}

impl Caller {
    /// A caller that isn't at the other end of a connection: the page, or a client whose consent was asked for.
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
            // Both are put in by the layers around every handler. Without them the change would still be one.
            request_id: extensions.get().copied().unwrap_or_else(RequestId::generate),
            transport: extensions.get().copied().unwrap_or(Transport::Tcp),
        })
    }
}

/// The name that a caller gives, cleaned and cut, or one made of its transport.
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
