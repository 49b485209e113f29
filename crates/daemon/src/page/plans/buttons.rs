//! The buttons of a plan: what you can do in its current state.
//!
//! Each form names the version that its reader saw. An apply also names the changes, because the reader approved
//! exactly those.

use std::fmt::Display;

use maud::{Markup, html};
use protocol::{Plan, PlanState};
use serde::Deserialize;

use super::state::{checks_passed, path};
use crate::page::login::Visitor;
use crate::page::parts::form::{button_form, hidden};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
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
    /// Its name in a form, its label, and its tooltip.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Apply => (
                "apply",
                "Apply",
                "Apply all changes to the workspace, or none if there is a conflict",
            ),
            Self::Undo => (
                "undo",
                "Undo",
                "Undo its changes and keep what others have changed since",
            ),
            Self::Check => (
                "check",
                "Run checks",
                "Run the checks that haven't passed for its current content",
            ),
            Self::CheckAll => ("check_all", "Run checks again", "Run all checks again"),
            Self::Seal => ("seal", "Seal", "Mark the work as done"),
            Self::Refresh => (
                "refresh",
                "Refresh",
                "Update it to the current state of the workspace",
            ),
            Self::Discard => ("discard", "Discard", "Close it without applying its changes"),
            Self::Forget => (
                "forget",
                "Forget",
                "Permanently delete its changes and their contents",
            ),
        }
    }

    fn word(self, plan: &Plan) -> &'static str {
        match self {
            Self::Apply if plan.state == PlanState::Undone => "Apply again",
            Self::Apply if plan.parent.is_some() => "Merge into parent",
            _ => self.words().1,
        }
    }
}

/// Whether the changes on the page match those in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Current,
    Outdated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    Possible,
    Impossible,
}

pub(crate) fn possible(plan: &Plan) -> Vec<Action> {
    if !plan.running.is_empty() {
        return Vec::new();
    }
    let check = match (plan.checks.is_empty(), checks_passed(plan)) {
        (true, _) => None,
        (false, true) => Some(Action::CheckAll),
        (false, false) => Some(Action::Check),
    };
    let apply = checks_passed(plan).then_some(Action::Apply);
    let actions: &[Option<Action>] = match plan.state {
        PlanState::Open => &[
            apply,
            check,
            Some(Action::Seal),
            Some(Action::Refresh),
            Some(Action::Discard),
        ],
        PlanState::Sealed => &[apply, check, Some(Action::Refresh), Some(Action::Discard)],
        PlanState::Undone => &[apply, check, Some(Action::Discard)],
        PlanState::Applied => &[Some(Action::Undo)],
        PlanState::Discarded => &[],
    };
    actions.iter().copied().flatten().collect()
}

pub(crate) fn has_work(plan: &Plan) -> bool {
    plan.summary.files > 0 && matches!(plan.state, PlanState::Open | PlanState::Sealed)
}

/// The buttons, and if Apply is missing, why.
pub(crate) fn actions(plan: &Plan, visitor: &Visitor, seen: Seen, commit: Commit) -> Markup {
    let actions = possible(plan);
    html! {
        @for action in actions {
            @match action {
                Action::Apply if seen == Seen::Outdated => {
                    // With a fragment in the URL, a browser wouldn't reload the page.
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
                title=(Action::Forget.words().2) { "Forget…" }
        }
        @if let Some(why) = why_not_applied(plan) { p class="hint" { (why) } }
    }
}

pub(crate) fn can_be_forgotten(plan: &Plan) -> bool {
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

fn button(plan: &Plan, visitor: &Visitor, action: Action, more: &Markup) -> Markup {
    let class = matches!(action, Action::Apply).then_some("primary");
    let (value, _, explained) = action.words();
    form(
        plan,
        visitor,
        action,
        &html! {
            button id=(value) class=[class] title=(explained) data-key=(value) { (action.word(plan)) }
            (more)
        },
    )
}

fn form(plan: &Plan, visitor: &Visitor, action: Action, button: &Markup) -> Markup {
    let rest = html! {
        // Offered only while these are the changes on the page.
        @if action == Action::Apply { (hidden("seen", &plan.fingerprint)) }
        (hidden("action", action.words().0))
        (button)
    };
    let seen: [(&str, &dyn Display); 2] = [("id", &plan.id), ("version", &plan.version)];
    button_form(visitor, "/plans/change", &seen, &rest)
}

pub(crate) fn undo_changeset(plan: &Plan, changeset: &str, visitor: &Visitor) -> Markup {
    form(
        plan,
        visitor,
        Action::Undo,
        &html! {
            (hidden("changeset", changeset))
            button data-key={ "undo " (changeset) } title="Undo only this changeset" { (Action::Undo.word(plan)) }
        },
    )
}

pub(crate) fn give_up_form(plan: &Plan, visitor: &Visitor) -> Markup {
    form(
        plan,
        visitor,
        Action::Discard,
        &html! {
            (hidden("give_up", "yes"))
            button id="give-up" class="danger" { "Discard this work" }
        },
    )
}

pub(crate) fn forget_form(plan: &Plan, visitor: &Visitor) -> Markup {
    form(
        plan,
        visitor,
        Action::Forget,
        &html! {
            button id="forget" class="danger" { "Forget permanently" }
        },
    )
}

#[cfg(test)]
mod tests {
    use protocol::CheckState;

    use super::*;
    use crate::page::parts::text::tests::assert_parts;
    use crate::page::plans::state::tests::{check, command, plan};

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

    fn rendered(plan: &Plan, seen: Seen, commit: Commit) -> (String, Visitor) {
        let visitor = Visitor::example();
        (actions(plan, &visitor, seen, commit).into_string(), visitor)
    }

    #[test]
    fn a_form_names_what_its_reader_saw() {
        let (shown, visitor) = rendered(&plan(PlanState::Sealed), Seen::Current, Commit::Possible);
        let token = visitor.login.form_token.reveal();
        let apply = format!(
            "<form method=\"post\" action=\"/plans/change\"><input type=\"hidden\" name=\"form_token\" \
             value=\"{token}\"><input type=\"hidden\" name=\"id\" value=\"plan_01ARZ3NDEKTSV4RRFFQ69G5FAV\">\
             <input type=\"hidden\" name=\"version\" value=\"7\"><input type=\"hidden\" name=\"seen\" \
             value=\"f1a6\"><input type=\"hidden\" name=\"action\" \
             value=\"apply\"><button id=\"apply\" class=\"primary\""
        );
        assert!(shown.contains(&apply), "{shown}");
        assert!(shown.contains("name=\"commit\" value=\"yes\""), "{shown}");
        let (shown, _) = rendered(&plan(PlanState::Sealed), Seen::Current, Commit::Impossible);
        assert!(!shown.contains("name=\"commit\""), "{shown}");
    }

    #[test]
    fn what_nobody_has_seen_cannot_be_applied() {
        let (shown, _) = rendered(&plan(PlanState::Sealed), Seen::Outdated, Commit::Possible);
        assert!(!shown.contains("value=\"apply\""), "{shown}");
        let link = "href=\"/plans/plan_01ARZ3NDEKTSV4RRFFQ69G5FAV\" id=\"look-again\"";
        assert!(shown.contains(link), "{shown}");
        // The other buttons don't depend on it.
        assert!(shown.contains("value=\"refresh\""), "{shown}");
    }

    #[test]
    fn work_is_given_up_only_after_a_second_question() {
        for (state, files, asks) in [
            (PlanState::Open, 2, true),
            (PlanState::Sealed, 2, true),
            (PlanState::Sealed, 0, false),
            (PlanState::Undone, 2, false),
        ] {
            let mut plan = plan(state);
            plan.summary.files = files;
            let (shown, visitor) = rendered(&plan, Seen::Current, Commit::Impossible);
            let has_link = shown.contains("/plans/plan_01ARZ3NDEKTSV4RRFFQ69G5FAV/discard\"");
            let has_form = shown.contains("name=\"action\" value=\"discard\"");
            assert_eq!((has_link, has_form), (asks, !asks), "{state:?} {files}");
            let form = give_up_form(&plan, &visitor).into_string();
            assert_parts(
                &form,
                &["name=\"give_up\" value=\"yes\"", "name=\"version\" value=\"7\""],
            );
        }
    }

    #[test]
    fn why_there_is_no_apply_is_said() {
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
            let (shown, _) = rendered(&plan, Seen::Current, Commit::Impossible);
            match expected {
                Some(part) => assert!(shown.contains(part), "{shown}"),
                None => assert!(!shown.contains("class=\"hint\""), "{shown}"),
            }
        }
    }
}
