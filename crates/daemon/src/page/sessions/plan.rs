//! The plan of a session beside its conversation: what its agents have changed so far, and the available actions.

use ::plans::PlanError;
use maud::{Markup, html};
use protocol::{FileDiff, Plan, PlanDiff, PlanId};

use crate::app::App;
use crate::page::login::Visitor;
use crate::page::parts::text::{counted, exact, exact_words};
use crate::page::plans::buttons::{Commit, Seen, actions};
use crate::page::plans::diff::Arrangement;
use crate::page::plans::diff_rows::rows;
use crate::page::plans::files::letter;
use crate::page::plans::state::{badge, extent, lines, meaning, path};
use crate::plans::diff::diff;
use crate::plans::wire;

/// How many files are shown next to a conversation. The page of the plan shows them all.
const SHOWN_FILES: usize = 20;
/// How many lines of each. The page is rendered again after every change, so it must be small.
const SHOWN_LINES: usize = 80;

/// The plan of a session, as far as it can be shown.
pub(crate) enum SessionPlan {
    /// The session has no plan, or the plan no longer exists.
    None,
    /// The plan can't be read right now. Its page shows the reason.
    Unreadable(String),
    Shown(Box<ShownPlan>),
}

/// A plan, with its changes if they could be read.
pub(crate) struct ShownPlan {
    plan: Plan,
    changes: Option<PlanDiff>,
}

pub(crate) async fn read(app: &App, id: Option<PlanId>) -> SessionPlan {
    let Some(id) = id else {
        return SessionPlan::None;
    };
    match try_read(app, id).await {
        Ok(shown) => SessionPlan::Shown(Box::new(shown)),
        Err(PlanError::NotFound(_)) => SessionPlan::None,
        Err(error) => {
            tracing::warn!(%error, plan = %id, "the plan of a session cannot be read");
            SessionPlan::Unreadable(id.to_string())
        }
    }
}

async fn try_read(app: &App, id: PlanId) -> Result<ShownPlan, PlanError> {
    let plan = app.plans.get(id).await?;
    let plan = wire::show(&app.plans, &app.durable.machines, &plan).await?;
    let changes = match plan.summary.files {
        0 => None,
        _ => diff(&app.plans, id, None).await.ok(),
    };
    Ok(ShownPlan { plan, changes })
}

pub(crate) fn card(visitor: &Visitor, plan: &SessionPlan) -> Markup {
    let id = match plan {
        SessionPlan::None => None,
        SessionPlan::Unreadable(id) => Some(id),
        SessionPlan::Shown(shown) => Some(&shown.plan.id),
    };
    html! {
        section class="card session-plan" aria-labelledby="plan" {
            div class="card-heading" {
                h2 id="plan" { "Plan" }
                @if let Some(id) = id {
                    a href=(path(id)) data-key="plan" { "Open the plan" }
                }
            }
            @match plan {
                SessionPlan::Shown(shown) => (content(visitor, shown)),
                SessionPlan::Unreadable(_) => p { "Can't read the plan right now, so its changes aren't shown. They are safe." },
                SessionPlan::None => p { "No changes yet. Changes by agents show up here first. Your files change only when you apply them." },
            }
        }
    }
}

fn content(visitor: &Visitor, shown: &ShownPlan) -> Markup {
    let plan = &shown.plan;
    let files = shown
        .changes
        .as_ref()
        .map_or(&[][..], |changes| &changes.files[..]);
    html! {
        p class="state" id="plan-state" { (badge(plan)) " " (extent(plan)) small { (meaning(plan)) } }
        @for file in files.iter().take(SHOWN_FILES) { (changed_file(file)) }
        @if files.len() > SHOWN_FILES {
            p class="more" { (counted((files.len() - SHOWN_FILES) as u64, "more file", "more files")) }
        }
        div class="actions plan-actions" { (actions(plan, visitor, seen(shown), Commit::Impossible)) }
    }
}

/// The changes were read after the plan. If the plan changed in between, the page doesn't show what would be applied.
fn seen(shown: &ShownPlan) -> Seen {
    match &shown.changes {
        Some(changes) if changes.fingerprint != shown.plan.fingerprint => Seen::Outdated,
        Some(_) | None => Seen::Current,
    }
}

fn changed_file(file: &FileDiff) -> Markup {
    let total: usize = file.hunks.iter().map(|hunk| hunk.lines.len()).sum();
    html! {
        details class="beside-file" data-key={ "file " (exact_words(&file.path)) } {
            summary { (letter(&file.kind)) " " code { (exact(&file.path)) } " " (lines(file.added_lines, file.removed_lines)) }
            @if file.binary { p class="diff-more" { "Binary, or too large to show." } }
            @if !file.hunks.is_empty() { (rows(file, Arrangement::Unified, SHOWN_LINES)) }
            @if total > SHOWN_LINES {
                p class="diff-more" { (counted((total - SHOWN_LINES) as u64, "more line", "more lines")) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::PlanState;

    use super::*;
    use crate::page::parts::text::tests::{assert_absent, assert_parts};
    use crate::page::plans::diff::tests::{diff as plan_diff, file, hunk};
    use crate::page::plans::state::tests::plan;

    fn rendered(plan: Plan, changes: Option<PlanDiff>) -> String {
        let shown = SessionPlan::Shown(Box::new(ShownPlan { plan, changes }));
        card(&Visitor::example(), &shown).into_string()
    }

    #[test]
    fn a_plan_that_cannot_be_read_is_not_shown_as_one_without_changes() {
        let shown = |plan| card(&Visitor::example(), &plan).into_string();
        let page = shown(SessionPlan::Unreadable("plan_1".to_owned()));
        assert_parts(&page, &["href=\"/plans/plan_1\""]);
        assert_absent(&page, &["No changes yet"]);
        let page = shown(SessionPlan::None);
        assert!(page.contains("No changes yet"), "{page}");
    }

    fn changes(fingerprint: &str, files: Vec<FileDiff>) -> Option<PlanDiff> {
        Some(PlanDiff {
            fingerprint: fingerprint.to_owned(),
            ..plan_diff(files)
        })
    }

    #[test]
    fn the_changes_stand_beside_and_can_be_applied_only_if_they_are_those_of_the_plan() {
        let open = plan(PlanState::Open);
        let files = || vec![file("src/a.rs", vec![hunk(1, 1, &["-old", "+new"])])];
        let page = rendered(open.clone(), changes(&open.fingerprint, files()));
        assert_parts(
            &page,
            &[
                "data-key=\"file src/a.rs\"",
                ">old</td>",
                ">new</td>",
                ">Apply</button>",
            ],
        );
        let moved = rendered(open, changes("another", files()));
        assert!(!moved.contains(">Apply</button>"), "{moved}");
    }

    #[test]
    fn long_changes_are_cut() {
        let open = plan(PlanState::Open);
        let long = vec!["+x"; SHOWN_LINES + 3];
        let mut files: Vec<FileDiff> = (0..SHOWN_FILES + 1)
            .map(|number| file(&format!("{number:03}"), Vec::new()))
            .collect();
        files[0] = file("000", vec![hunk(1, 1, &long)]);
        let page = rendered(open.clone(), changes(&open.fingerprint, files));
        assert_eq!(page.matches("class=\"beside-file\"").count(), SHOWN_FILES);
        assert_parts(&page, &[">1 more file<", ">3 more lines<"]);
    }

    #[test]
    fn names_and_lines_of_files_become_text() {
        let open = plan(PlanState::Open);
        let hostile = file(
            "<script>alert(1)</script>",
            vec![hunk(1, 1, &["+<script>alert(1)</script>\"'&"])],
        );
        let page = rendered(open.clone(), changes(&open.fingerprint, vec![hostile]));
        assert!(!page.contains("<script>alert"), "{page}");
    }
}
