//! The indexes behind the answers: their state, their size, and their buttons.

use maud::{Markup, html};
use protocol::{ContextIndex, ContextIndexState};

use crate::page::login::Visitor;
use crate::page::parts::form::button_form;
use crate::page::parts::list::Column::{Actions, Count, Text};
use crate::page::parts::list::{self, count};
use crate::page::parts::text::{self, exact, exact_words, size};
use crate::page::parts::times::ago;

pub(crate) fn table(indexes: &[ContextIndex], visitor: &Visitor, now_ms: u64) -> Markup {
    html! {
        section class="card table" aria-labelledby="context-indexes" {
            div class="context-summary" {
                h2 id="context-indexes" { "Indexes" }
                p {
                    "Each workspace that you have searched has an index. It is a cache and updates itself when files change. If you "
                    "remove it, the next question rebuilds it."
                }
            }
            @if !indexes.is_empty() {
                (list::table(
                    &[Text("Workspace"), Text("State"), Count("Files"), Count("Source"), Count("Index"), Actions],
                    indexes.iter().map(|index| row(index, visitor, now_ms)),
                ))
            }
        }
    }
}

fn row(index: &ContextIndex, visitor: &Visitor, now_ms: u64) -> Markup {
    html! {
        tr data-index=(index.root) {
            th scope="row" {
                code { (exact(&index.root)) }
                @if let Some(ago) = ago(&index.used_at, now_ms) { small { "used " (ago) " ago" } }
            }
            td class="state" {
                (badge(index.state))
                @if let Some(why) = &index.why { small class="error" { (exact(why)) } }
            }
            (count("Files", index.files))
            (count("Source", size(index.source_bytes, "B")))
            (count("Index", size(index.index_bytes, "B")))
            td class="act" {
                div class="actions" {
                    @for (change, word) in [("rebuild", "Rebuild"), ("remove", "Remove")] {
                        (button_form(
                            visitor,
                            "/context/indexes",
                            &[("directory", &index.root), ("change", &change)],
                            &html! {
                                button data-key={ (change) " " (index.root) }
                                    aria-label={ (word) " the index of " (exact_words(&index.root)) } { (word) }
                            },
                        ))
                    }
                }
            }
        }
    }
}

pub(crate) fn badge(state: ContextIndexState) -> Markup {
    text::badge(match state {
        ContextIndexState::Building => ("badge active busy", "Building"),
        ContextIndexState::Ready => ("badge good", "Ready"),
        ContextIndexState::Failed => ("badge bad", "Failed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(state: ContextIndexState) -> ContextIndex {
        ContextIndex {
            root: "/home/me/<b>".to_owned(),
            state,
            why: (state == ContextIndexState::Failed).then(|| "no <room>".to_owned()),
            files: 1234,
            source_bytes: 5 << 20,
            index_bytes: 1500,
            used_at: "2026-01-31T09:30:00Z".to_owned(),
        }
    }

    #[test]
    fn an_index_has_its_state_its_size_and_its_buttons() {
        let visitor = Visitor::example();
        for (state, parts) in [
            (
                ContextIndexState::Ready,
                [">Ready</span></td>", "data-label=\"Files\">1234<"],
            ),
            (
                ContextIndexState::Building,
                [">Building</span></td>", "data-label=\"Source\">5.0 MiB<"],
            ),
            (
                ContextIndexState::Failed,
                [
                    ">Failed</span><small class=\"error\">no &lt;room&gt;</small></td>",
                    "data-label=\"Index\">1.5 KiB<",
                ],
            ),
        ] {
            let page = table(&[index(state)], &visitor, 0).into_string();
            for part in parts.into_iter().chain([
                "<code>/home/me/&lt;b&gt;</code>",
                "name=\"change\" value=\"rebuild\"",
                "aria-label=\"Remove the index of /home/me/&lt;b&gt;\"",
            ]) {
                assert!(page.contains(part), "{part}: {page}");
            }
        }
        assert!(!table(&[], &visitor, 0).into_string().contains("<table"));
    }
}
