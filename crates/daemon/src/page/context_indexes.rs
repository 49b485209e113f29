//! The indexes that questions are answered with: how far they are, how large, and the buttons for them.

use maud::{Markup, html};
use protocol::{ContextIndex, ContextIndexState};

use super::form::token_field;
use super::job_time::ago;
use super::plan_text::{exact, exact_words};
use super::sign_in::Visitor;

pub(super) fn table(indexes: &[ContextIndex], visitor: &Visitor, now_ms: u64) -> Markup {
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
                table {
                    thead {
                        tr {
                            th scope="col" { "Workspace" }
                            th scope="col" { "State" }
                            th scope="col" class="count" { "Files" }
                            th scope="col" class="count" { "Source" }
                            th scope="col" class="count" { "Index" }
                            th scope="col" { span class="skip" { "Actions" } }
                        }
                    }
                    tbody { @for index in indexes { (row(index, visitor, now_ms)) } }
                }
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
            td class="count" data-label="Files" { (index.files) }
            td class="count" data-label="Source" { (megabytes(index.source_bytes)) }
            td class="count" data-label="Index" { (megabytes(index.index_bytes)) }
            td class="act" {
                div class="actions" {
                    @for (change, word) in [("rebuild", "Rebuild"), ("remove", "Remove")] {
                        form method="post" action="/context/indexes" {
                            (token_field(visitor))
                            input type="hidden" name="directory" value=(index.root);
                            input type="hidden" name="change" value=(change);
                            button data-key={ (change) " " (index.root) }
                                aria-label={ (word) " the index of " (exact_words(&index.root)) } { (word) }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn badge(state: ContextIndexState) -> Markup {
    let (class, word) = match state {
        ContextIndexState::Building => ("badge active busy", "Building"),
        ContextIndexState::Ready => ("badge good", "Ready"),
        ContextIndexState::Failed => ("badge bad", "Failed"),
    };
    html! { span class=(class) { (word) } }
}

fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::tests::detached;

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

    #[tokio::test]
    async fn an_index_has_its_state_its_size_and_its_buttons() {
        let app = detached().await;
        let visitor = Visitor::for_tests(&app);
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
