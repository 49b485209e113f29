//! What the page says once, after a form.

use maud::{Markup, PreEscaped, html};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    class: &'static str,
    /// Rendered already: what it is about may be gone by the time somebody reads it.
    text: String,
}

impl Notice {
    pub(crate) fn good(text: Markup) -> Self {
        Self {
            class: "good",
            text: text.into_string(),
        }
    }

    /// It was not done, or not as its reader expected.
    pub(crate) fn warn(text: Markup) -> Self {
        Self {
            class: "warn",
            text: text.into_string(),
        }
    }

    /// The log did not take it.
    pub(crate) fn not_written(reason: &str) -> Self {
        Self::warn(
            html! { "Can't write this to the log (" (reason) "), so nothing was changed. Try again later." },
        )
    }

    /// It is no longer what its reader saw.
    pub(crate) fn moved(name: &str, state: &str, generation: Option<u64>) -> Self {
        Self::warn(html! {
            "“" (name) "” has moved since you looked: it is now " strong { (state.to_lowercase()) }
            @if let Some(generation) = generation {
                " (generation " (generation) "). Nothing was changed. Check its current state below and try again."
            } @else { ". Nothing was changed." }
        })
    }

    pub(crate) fn render(&self) -> Markup {
        html! {
            div class={ "notice " (self.class) } role="status" { p { (PreEscaped(&self.text)) } }
        }
    }
}
