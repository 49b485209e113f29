//! A timeline: what happened to something, when, and what was said about it.

use maud::{Markup, html};

use super::ansi::one_line;
use super::times::time;

#[derive(Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) event: &'a str,
    pub(crate) at: &'a str,
    /// Who did it, or how long it took to get there.
    pub(crate) passed: Option<String>,
    pub(crate) text: &'a str,
}

/// The last `most` moments, oldest first. `words` says what an event is called and how it looks.
pub(crate) fn timeline<'a>(
    of: &str,
    most: usize,
    words: impl Fn(&'a str) -> (&'a str, &'static str),
    moments: impl ExactSizeIterator<Item = Moment<'a>>,
) -> Markup {
    let left_out = moments.len().saturating_sub(most);
    html! {
        @if moments.len() == 0 { p { "The history of this " (of) " has expired." } }
        @if left_out > 0 {
            p class="more" { (left_out) " earlier events are not shown; " code { "tidelock " (of) " show" } " lists them all." }
        }
        ol class="timeline" {
            @for moment in moments.skip(left_out) {
                @let (word, class) = words(moment.event);
                li class=(class) data-event=(moment.event) {
                    strong { (word) }
                    (time(moment.at))
                    @if let Some(passed) = moment.passed { span class="passed" { (passed) } }
                    @if !moment.text.is_empty() { span class="said" { (one_line(moment.text)) } }
                }
            }
        }
    }
}
