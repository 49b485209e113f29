//! The buttons of a plan: what can be done about it as it is.
//!
//! Each form names the version that its reader saw. An apply names the changes as well: they are what its reader decided
//! on.

use maud::{Markup, html};
use protocol::{Plan, PlanState};
use serde::Deserialize;

use super::form::token_field;
use super::plan_state::{checks_passed, path};
use super::sign_in::Visitor;

/// What a button does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    Apply,
    Undo,
    Check,
    CheckAll,
    Seal,
    Refresh,
    Discard,
    Forget,
}

impl Action {
    fn value(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Undo => "undo",
            Self::Check => "check",
            Self::CheckAll => "check_all",
            Self::Seal => "seal",
            Self::Refresh => "refresh",
            Self::Discard => "discard",
            Self::Forget => "forget",
        }
    }

    fn word(self, plan: &Plan) -> &'static str {
        match self {
            Self::Apply if plan.state == PlanState::Undone => "Apply again",
            Self::Apply if plan.parent.is_some() => "Merge into parent",
            Self::Apply => "Apply",
            Self::Undo => "Undo",
            Self::Check => "Run checks",
            Self::CheckAll => "Run checks again",
            Self::Seal => "Seal",
            Self::Refresh => "Refresh",
            Self::Discard => "Discard",
            Self::Forget => "Forget",
        }
    }

    /// What it does, for somebody who points at it.
    fn explained(self) -> &'static str {
        match self {
            Self::Apply => "Apply all changes to the workspace, or none if there is a conflict",
            Self::Undo => "Undo its changes and keep what others have changed since",
            Self::Check => "Run the checks that haven't passed for its current content",
            Self::CheckAll => "Run all checks again",
            Self::Seal => "Mark the work as done",
            Self::Refresh => "Update it to the current state of the workspace",
            Self::Discard => "Close it without applying its changes",
            Self::Forget => "Permanently delete its changes and their contents",
        }
    }
}

/// Whether the changes on the page are those that are in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Current,
    Outdated,
}

/// Whether a git commit can be made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commit {
    Possible,
    Impossible,
}

/// What can be done about a plan as it is.
pub(super) fn possible(plan: &Plan) -> Vec<Action> {
    if !plan.running.is_empty() {
        return Vec::new();
    }
    let check = match (plan.checks.is_empty(), checks_passed(plan)) {
        (true, _) => None,
        (false, true) => Some(Action::CheckAll),
        (false, false) => Some(Action::Check),
    };
    let apply = checks_passed(plan).then_some(Action::Apply);
    match plan.state {
        PlanState::Open => {
            let actions = [
                apply,
                check,
                Some(Action::Seal),
                Some(Action::Refresh),
                Some(Action::Discard),
            ];
            actions.into_iter().flatten().collect()
        }
        PlanState::Sealed => {
            let actions = [apply, check, Some(Action::Refresh), Some(Action::Discard)];
            actions.into_iter().flatten().collect()
        }
        PlanState::Undone => [apply, check, Some(Action::Discard)]
            .into_iter()
            .flatten()
            .collect(),
        PlanState::Applied => vec![Action::Undo],
        PlanState::Discarded => Vec::new(),
    }
}

/// Whether giving it up loses work.
pub(super) fn has_work(plan: &Plan) -> bool {
    plan.summary.files > 0 && matches!(plan.state, PlanState::Open | PlanState::Sealed)
}

/// The buttons, and why one that somebody looks for is not there.
pub(super) fn actions(plan: &Plan, visitor: &Visitor, seen: Seen, commit: Commit) -> Markup {
    let actions = possible(plan);
    html! {
        @for action in actions {
            @match action {
                Action::Apply if seen == Seen::Outdated => {
                    // With a place on the page in it, a browser would stay on the page that it has.
                    a class="button" href=(path(&plan.id)) id="look-again" data-key="look again" {
                        "View the new changes"
                    }
                }
                Action::Apply => (apply_form(plan, visitor, commit)),
                Action::Discard if has_work(plan) => {
                    a class="button" href={ (path(&plan.id)) "/discard" } id="discard" data-key="discard" { "Discard…" }
                }
                action => (button(plan, visitor, action, &html! {})),
            }
        }
        @if can_be_forgotten(plan) {
            a class="button" href={ (path(&plan.id)) "/forget" } id="forget" data-key="forget"
                title=(Action::Forget.explained()) { "Forget…" }
        }
        @if let Some(why) = why_not_applied(plan) { p class="hint" { (why) } }
    }
}

/// Whether nothing is left to decide about it.
pub(super) fn can_be_forgotten(plan: &Plan) -> bool {
    let is_over = matches!(
        plan.state,
        PlanState::Applied | PlanState::Undone | PlanState::Discarded
    );
    is_over && plan.running.is_empty()
}

fn why_not_applied(plan: &Plan) -> Option<&'static str> {
    let is_decided = matches!(plan.state, PlanState::Applied | PlanState::Discarded);
    match (plan.running.is_empty(), checks_passed(plan)) {
        _ if is_decided => None,
        (false, _) => Some("You can apply it once nobody is working in it."),
        (true, false) => Some("You can apply it once all checks have passed."),
        (true, true) => None,
    }
}

fn apply_form(plan: &Plan, visitor: &Visitor, commit: Commit) -> Markup {
    let choice = html! {
        @if commit == Commit::Possible && plan.parent.is_none() {
            label class="choice" { input type="checkbox" name="commit" value="yes" data-key="commit"; " and commit" }
        }
    };
    button(plan, visitor, Action::Apply, &choice)
}

/// A form with one button.
fn button(plan: &Plan, visitor: &Visitor, action: Action, more: &Markup) -> Markup {
    let class = matches!(action, Action::Apply).then_some("primary");
    html! {
        form method="post" action="/plans/change" {
            (fields(plan, visitor, action))
            button id=(action.value()) class=[class] title=(action.explained()) data-key=(action.value()) {
                (action.word(plan))
            }
            (more)
        }
    }
}

fn fields(plan: &Plan, visitor: &Visitor, action: Action) -> Markup {
    html! {
        (token_field(visitor))
        input type="hidden" name="id" value=(plan.id);
        input type="hidden" name="version" value=(plan.version);
        // It is offered only while these are the changes that stand on the page.
        @if action == Action::Apply { input type="hidden" name="seen" value=(plan.fingerprint); }
        input type="hidden" name="action" value=(action.value());
    }
}

/// The button that takes one changeset of an applied plan back.
pub(super) fn undo_changeset(plan: &Plan, changeset: &str, visitor: &Visitor, action: Action) -> Markup {
    html! {
        form method="post" action="/plans/change" {
            (fields(plan, visitor, action))
            input type="hidden" name="changeset" value=(changeset);
            button data-key={ "undo " (changeset) } title="Undo only this changeset" { (action.word(plan)) }
        }
    }
}

/// The form that gives a plan up with the work in it.
pub(super) fn give_up_form(plan: &Plan, visitor: &Visitor) -> Markup {
    html! {
        form method="post" action="/plans/change" {
            (fields(plan, visitor, Action::Discard))
            input type="hidden" name="give_up" value="yes";
            button id="give-up" class="danger" { "Discard this work" }
        }
    }
}

/// The form that forgets a plan for good.
pub(super) fn forget_form(plan: &Plan, visitor: &Visitor) -> Markup {
    html! {
        form method="post" action="/plans/change" {
            (fields(plan, visitor, Action::Forget))
            button id="forget" class="danger" { "Forget permanently" }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::CheckState;

    use super::super::plan_state::tests::{check, command, plan};
    use super::*;
    use crate::app::tests::detached;

    #[test]
    fn a_plan_has_the_buttons_that_would_do_something() {
        use Action::{Apply, Check, CheckAll, Discard, Refresh, Seal, Undo};
        use PlanState::{Applied, Discarded, Open, Sealed, Undone};
        for (state, checks, expected) in [
            (Open, &[][..], &[Apply, Seal, Refresh, Discard][..]),
            (Open, &[CheckState::Missing], &[Check, Seal, Refresh, Discard]),
            (Sealed, &[], &[Apply, Refresh, Discard]),
            (
                Sealed,
                &[CheckState::Passed],
                &[Apply, CheckAll, Refresh, Discard],
            ),
            (
                Sealed,
                &[CheckState::Passed, CheckState::Outdated],
                &[Check, Refresh, Discard],
            ),
            (Sealed, &[CheckState::Failed], &[Check, Refresh, Discard]),
            (Applied, &[CheckState::Passed], &[Undo]),
            (Undone, &[], &[Apply, Discard]),
            (Discarded, &[], &[]),
        ] {
            let plan = Plan {
                checks: checks.iter().map(|state| check(*state)).collect(),
                ..plan(state)
            };
            assert_eq!(possible(&plan), expected, "{state:?} {checks:?}");
            let busy = Plan {
                running: vec![command("claude")],
                ..plan
            };
            assert_eq!(possible(&busy), [], "{state:?}");
        }
    }

    async fn rendered(plan: &Plan, seen: Seen, commit: Commit) -> (String, Visitor) {
        let app = detached().await;
        let visitor = Visitor::for_tests(&app);
        (actions(plan, &visitor, seen, commit).into_string(), visitor)
    }

    #[tokio::test]
    async fn a_form_names_what_its_reader_saw() {
        let (shown, visitor) = rendered(&plan(PlanState::Sealed), Seen::Current, Commit::Possible).await;
        let token = visitor.session.form_token.reveal();
        let apply = format!(
            "<form method=\"post\" action=\"/plans/change\"><input type=\"hidden\" name=\"form_token\" \
             value=\"{token}\"><input type=\"hidden\" name=\"id\" value=\"plan_01ARZ3NDEKTSV4RRFFQ69G5FAV\">\
             <input type=\"hidden\" name=\"version\" value=\"7\"><input type=\"hidden\" name=\"seen\" \
             value=\"f1a6\"><input type=\"hidden\" name=\"action\" \
             value=\"apply\"><button id=\"apply\" class=\"primary\""
        );
        assert!(shown.contains(&apply), "{shown}");
        assert!(shown.contains("name=\"commit\" value=\"yes\""), "{shown}");
        let (shown, _) = rendered(&plan(PlanState::Sealed), Seen::Current, Commit::Impossible).await;
        assert!(!shown.contains("name=\"commit\""), "{shown}");
    }

    #[tokio::test]
    async fn what_nobody_has_seen_cannot_be_applied() {
        let (shown, _) = rendered(&plan(PlanState::Sealed), Seen::Outdated, Commit::Possible).await;
        assert!(!shown.contains("value=\"apply\""), "{shown}");
        let link = "href=\"/plans/plan_01ARZ3NDEKTSV4RRFFQ69G5FAV\" id=\"look-again\"";
        assert!(shown.contains(link), "{shown}");
        // The other buttons do not depend on it.
        assert!(shown.contains("value=\"refresh\""), "{shown}");
    }

    #[tokio::test]
    async fn work_is_given_up_only_after_a_second_question() {
        for (state, files, asks) in [
            (PlanState::Open, 2, true),
            (PlanState::Sealed, 2, true),
            (PlanState::Sealed, 0, false),
            (PlanState::Undone, 2, false),
        ] {
            let mut plan = plan(state);
            plan.summary.files = files;
            let (shown, visitor) = rendered(&plan, Seen::Current, Commit::Impossible).await;
            let has_link = shown.contains("/plans/plan_01ARZ3NDEKTSV4RRFFQ69G5FAV/discard\"");
            let has_form = shown.contains("name=\"action\" value=\"discard\"");
            assert_eq!((has_link, has_form), (asks, !asks), "{state:?} {files}");
            let form = give_up_form(&plan, &visitor).into_string();
            for part in ["name=\"give_up\" value=\"yes\"", "name=\"version\" value=\"7\""] {
                assert!(form.contains(part), "{part}: {form}");
            }
        }
    }

    #[tokio::test]
    async fn why_there_is_no_apply_is_said() {
        let busy = Plan {
            running: vec![command("claude")],
            ..plan(PlanState::Open)
        };
        let unchecked = Plan {
            checks: vec![check(CheckState::Missing)],
            ..plan(PlanState::Sealed)
        };
        for (plan, expected) in [
            (busy, Some("once nobody is working in it")),
            (unchecked, Some("once all checks have passed")),
            (plan(PlanState::Sealed), None),
            (plan(PlanState::Applied), None),
            (plan(PlanState::Discarded), None),
        ] {
            let (shown, _) = rendered(&plan, Seen::Current, Commit::Impossible).await;
            match expected {
                Some(part) => assert!(shown.contains(part), "{shown}"),
                None => assert!(!shown.contains("class=\"hint\""), "{shown}"),
            }
        }
    }
}
