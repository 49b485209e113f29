//! The conflicts of a plan: file by file, hunk by hunk, with all sides next to each other.

use maud::{Markup, html};
use protocol::{Plan, PlanConflict, PlanConflictHunk, PlanRefused};

use crate::page::parts::ansi::one_line;
use crate::page::parts::text::{capitalized, counted, exact};
use crate::page::parts::times::time;

/// How many conflicts are shown. A plan keeps about as many.
const SHOWN_CONFLICTS: usize = 50;
/// How many hunks of a file are shown.
const SHOWN_HUNKS: usize = 20;
/// How many lines of a side are shown.
const SHOWN_LINES: usize = 200;

/// The last attempt, if it failed.
pub(crate) fn section(plan: &Plan) -> Markup {
    html! { @if let Some(refused) = &plan.refused { (card(plan, refused)) } }
}

fn card(plan: &Plan, refused: &PlanRefused) -> Markup {
    let count = refused.conflicts.len();
    html! {
        section class="card conflicts" aria-labelledby="conflicts" {
            div class="card-heading" {
                h2 id="conflicts" { (heading(&refused.what)) }
                span { (counted(count as u64, "conflict", "conflicts")) }
            }
            p {
                "Nothing was changed. " (one_line(&refused.by)) " tried at "
                (time(&refused.at)) ". " (advice(plan, &refused.what))
            }
            @for conflict in refused.conflicts.iter().take(SHOWN_CONFLICTS) { (file(conflict, &refused.what)) }
            @if count > SHOWN_CONFLICTS { p class="more" { "and " (count - SHOWN_CONFLICTS) " more" } }
        }
    }
}

fn heading(what: &str) -> &'static str {
    match what {
        "apply" => "Apply failed",
        "undo" => "Undo failed",
        "refresh" => "Refresh failed",
        _ => "Not possible",
    }
}

fn advice(plan: &Plan, what: &str) -> Markup {
    html! {
        @match what {
            "undo" => "The same places have changed since. Edit them in the workspace yourself, or leave them as they are.",
            _ => {
                "Resolve the conflicts in the plan, for example with "
                code { "tidelock plan exec " (plan.id) " -- sh" }
                ", or change the workspace, then try again."
            }
        }
    }
}

fn file(conflict: &PlanConflict, what: &str) -> Markup {
    let more = conflict.hunks.len().saturating_sub(SHOWN_HUNKS);
    html! {
        section class="conflict" data-conflict=(conflict.kind) {
            h3 {
                code { (exact(&conflict.path)) }
                @if let Some(other) = &conflict.other { " and " code { (exact(other)) } }
            }
            p { (capitalized(&conflict.text)) "." }
            @for hunk in conflict.hunks.iter().take(SHOWN_HUNKS) { (place(hunk, what)) }
            @if more > 0 { p class="more" { "and " (more) " more places" } }
        }
    }
}

fn place(hunk: &PlanConflictHunk, what: &str) -> Markup {
    let theirs = match what {
        "undo" => "Without the plan",
        _ => "Plan",
    };
    html! {
        h4 { "Line " (hunk.line) " in the workspace" }
        div class="sides" {
            (side("Base", "base", &hunk.base))
            (side("Workspace", "ours", &hunk.ours))
            (side(theirs, "theirs", &hunk.theirs))
        }
    }
}

fn side(word: &str, class: &str, text: &str) -> Markup {
    let lines: Vec<&str> = text.lines().collect();
    html! {
        div class={ "side " (class) } {
            h5 { (word) }
            @if lines.is_empty() {
                p class="more" { "nothing" }
            } @else {
                pre tabindex="0" aria-label={ (word) " version" } {
                    code { @for line in lines.iter().take(SHOWN_LINES) { (exact(line)) "\n" } }
                }
            }
            @if lines.len() > SHOWN_LINES { p class="more" { (lines.len() - SHOWN_LINES) " more lines" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::PlanState;

    use super::*;
    use crate::page::parts::text::tests::assert_parts;
    use crate::page::plans::state::tests::{plan, refused};

    fn conflict(kind: &str, hunks: Vec<PlanConflictHunk>) -> PlanConflict {
        PlanConflict {
            path: "src/<a>\u{202e}.rs".to_owned(),
            other: None,
            kind: kind.to_owned(),
            text: "both changed the same lines".to_owned(),
            hunks,
        }
    }

    fn hunk() -> PlanConflictHunk {
        PlanConflictHunk {
            line: 12,
            base: "let a = 1;\n".to_owned(),
            ours: "let a = <2>;\nlet b = 3;\n".to_owned(),
            theirs: String::new(),
        }
    }

    fn shown(what: &str, conflicts: Vec<PlanConflict>) -> String {
        let plan = Plan {
            refused: Some(PlanRefused {
                conflicts,
                ..refused(what)
            }),
            ..plan(PlanState::Sealed)
        };
        section(&plan).into_string()
    }

    #[test]
    fn each_place_has_its_three_sides() {
        let page = shown("apply", vec![conflict("content", vec![hunk()])]);
        assert_parts(
            &page,
            &[
                "<h2 id=\"conflicts\">Apply failed</h2><span>1 conflict</span>",
                "<h3><code>src/&lt;a&gt;<span class=\"odd\">&lt;U+202E&gt;</span>.rs</code></h3>",
                "<p>Both changed the same lines.</p>",
                "<h4>Line 12 in the workspace</h4>",
                "<h5>Base</h5><pre tabindex=\"0\" aria-label=\"Base version\"><code>let a = 1;\n</code></pre>",
                "<h5>Workspace</h5><pre tabindex=\"0\" aria-label=\"Workspace version\">\
             <code>let a = &lt;2&gt;;\nlet b = 3;\n</code></pre>",
                "<h5>Plan</h5><p class=\"more\">nothing</p>",
            ],
        );
        let undo = shown("undo", vec![conflict("content", vec![hunk()])]);
        assert_parts(&undo, &["Undo failed", "<h5>Without the plan</h5>"]);
        assert_eq!(section(&plan(PlanState::Sealed)).into_string(), "");
    }

    #[test]
    fn everything_in_it_has_an_end() {
        let long = PlanConflictHunk {
            ours: "line\n".repeat(SHOWN_LINES + 5),
            ..hunk()
        };
        let page = shown("apply", vec![conflict("content", vec![long])]);
        assert_eq!(page.matches("line\n").count(), SHOWN_LINES);
        assert!(page.contains("5 more lines"), "{page}");
        let page = shown("apply", vec![conflict("content", vec![hunk(); SHOWN_HUNKS + 2])]);
        assert_eq!(page.matches("<h4>").count(), SHOWN_HUNKS);
        assert!(page.contains("and 2 more places"), "{page}");
        let page = shown("apply", vec![conflict("binary", Vec::new()); SHOWN_CONFLICTS + 1]);
        assert_eq!(page.matches("<h3>").count(), SHOWN_CONFLICTS);
        assert!(page.contains("and 1 more"), "{page}");
    }
}
