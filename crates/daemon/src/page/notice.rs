//! What is said once, on the page that follows a form.

use api::{Breaker, Server};
use maud::{Markup, html};

use super::breakers::label;
use super::server_state;

/// What became of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A breaker was reset.
    Reset {
        /// Its name.
        name: String,
    },
    /// A breaker is held in a state by hand.
    Forced {
        /// Its name.
        name: String,
        /// The state, as it reads in a sentence.
        state: &'static str,
    },
    /// All breakers were reset.
    ResetAll {
        /// How many there were.
        count: u64,
    },
    /// A breaker had moved since its reader looked, so nothing was done.
    Moved {
        /// What it is now.
        current: Box<Breaker>,
    },
    /// A breaker is no longer known, so nothing was done.
    Gone {
        /// Its name.
        name: String,
    },
    /// There is no room to keep track of another breaker, so nothing was done.
    Full,
    /// A language server was changed, or is on its way to it.
    Server {
        /// Its name.
        name: String,
        /// What became of it, as it reads behind the name.
        outcome: &'static str,
    },
    /// A language server had moved since its reader looked, so nothing was done.
    ServerMoved {
        /// What it is now.
        current: Box<Server>,
    },
    /// A language server could not be changed.
    ServerRefused {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The log did not take it, so nothing was done.
    NotWritten {
        /// Why.
        reason: String,
    },
}

impl Notice {
    /// The notice as a part of a page.
    pub(super) fn render(&self) -> Markup {
        let (class, text) = match self {
            Self::Reset { name } => ("good", html! { "“" (name) "” was reset." }),
            Self::Forced { name, state } => (
                "good",
                html! { "“" (name) "” is " (state) " by hand now, until it is reset." },
            ),
            Self::ResetAll { count: 1 } => ("good", html! { "The one breaker was reset." }),
            Self::ResetAll { count } => ("good", html! { "All " (count) " breakers were reset." }),
            Self::Moved { current } => (
                "warn",
                html! {
                    "“" (current.id) "” has moved since you looked: it is now "
                    strong { (label(current.state).to_lowercase()) }
                    " (generation " (current.generation) "). Nothing was changed. Look at it below, and decide again."
                },
            ),
            Self::Gone { name } => (
                "warn",
                html! { "“" (name) "” is no longer known, which counts as closed. Nothing was changed." },
            ),
            Self::Full => (
                "warn",
                html! { "There is no room to keep track of another breaker. Nothing was changed." },
            ),
            Self::Server { name, outcome } => ("good", html! { "“" (name) "” " (outcome) "." }),
            Self::ServerMoved { current } => (
                "warn",
                html! {
                    "“" (current.server) "” has moved since you looked: it is now "
                    strong { (server_state::label(current).to_lowercase()) }
                    " (generation " (current.generation) "). Nothing was changed. Look at it below, and decide again."
                },
            ),
            Self::ServerRefused { name, reason } => {
                ("warn", html! { "“" (name) "” could not be changed: " (reason) })
            }
            Self::NotWritten { reason } => (
                "warn",
                html! { "This cannot be written to the log (" (reason) "), so nothing was changed. Try again later." },
            ),
        };
        html! {
            div class={ "notice " (class) } role="status" { p { (text) } }
        }
    }
}
