//! Who asks for something, in the words in which it is written down for people.
//!
//! Whoever has the token may do everything, so a caller is believed when it gives its name: the header
//! `Tidelock-Actor`, which the command line fills with the user's. It tells people apart, and protects nothing.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::HeaderName;
use http::request::Parts;

use crate::access::Transport;
use crate::app::App;

const ACTOR: HeaderName = HeaderName::from_static("tidelock-actor");
/// The longest name. What is longer is cut.
const LIMIT_CHARACTERS: usize = 100;

/// The name of whoever asks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Actor(pub(crate) String);

impl FromRequestParts<Arc<App>> for Actor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &Arc<App>) -> Result<Self, Infallible> {
        let given = parts.headers.get(ACTOR).map(|name| name.as_bytes());
        let transport = parts.extensions.get().copied().unwrap_or(Transport::Tcp);
        Ok(named(given, transport))
    }
}

fn named(given: Option<&[u8]>, transport: Transport) -> Actor {
    let text = String::from_utf8_lossy(given.unwrap_or_default());
    let name: String = text
        .chars()
        .filter(|character| !character.is_control())
        .take(LIMIT_CHARACTERS)
        .collect();
    match name.trim() {
        "" => Actor(format!("a client over {}", transport.name())),
        name => Actor(name.to_owned()),
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
            let found = named(given.map(str::as_bytes), Transport::Unix);
            assert_eq!(found, Actor(expected.to_owned()), "{given:?}");
        }
    }
}
