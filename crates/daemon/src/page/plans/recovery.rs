//! The page of failures that need a person: plans being recovered, stuck applies, rescued content, and unreadable
//! records.

use std::fmt::Display;
use std::sync::Arc;

use ::plans::{Occupied, Repair, RepairEnd, RestoreRequest};
use axum::extract::State;
use axum::response::Redirect;
use eventlog::Quarantined;
use maud::{Markup, html};
use protocol::{Rescued, Workspace};
use serde::Deserialize;

use super::act::refused;
use super::detail::unreadable;
use super::notice;
use crate::app::App;
use crate::durable::quarantine;
use crate::page::login::Visitor;
use crate::page::parts::error::PageError;
use crate::page::parts::form::{Notice, OwnForm, button_form, done};
use crate::page::parts::layout::{Live, Refresh};
use crate::page::parts::list::heading;
use crate::page::parts::text::{exact, exact_words};
use crate::page::parts::times::time;
use crate::plans::wire::{recovering_to_wire, rescued_list_to_wire, workspace_to_wire};

struct Shown {
    recovering: Vec<String>,
    stuck: Vec<Workspace>,
    rescued: Vec<Rescued>,
    /// Directories of rescued content without a readable description.
    undescribed: Vec<String>,
    quarantined: Vec<Quarantined>,
}

pub(crate) async fn read(app: Arc<App>, visitor: Visitor, _: ()) -> Result<Live, PageError> {
    let quarantined = match quarantine::list(&app.durable.log).await {
        Ok(list) => list.into_iter().map(|(quarantined, _)| quarantined).collect(),
        Err(error) => return Err(unreadable(error.into())),
    };
    let (workspaces, rescued) = tokio::join!(app.plans.workspaces(), app.plans.rescued());
    let (workspaces, rescued) = match (workspaces, rescued) {
        (Ok(workspaces), Ok(rescued)) => (workspaces, rescued_list_to_wire(&rescued)),
        (Err(error), _) | (_, Err(error)) => return Err(unreadable(error)),
    };
    let workspaces = workspaces.iter().map(workspace_to_wire);
    let shown = Shown {
        recovering: recovering_to_wire(&app.plans),
        stuck: workspaces.filter(|workspace| workspace.stuck.is_some()).collect(),
        rescued: rescued.rescued,
        undescribed: rescued.unreadable,
        quarantined,
    };
    Ok(Live::new("Recovery", Refresh::Still, content(&shown, &visitor)))
}

fn content(shown: &Shown, visitor: &Visitor) -> Markup {
    let is_empty = shown.recovering.is_empty()
        && shown.stuck.is_empty()
        && shown.rescued.is_empty()
        && shown.undescribed.is_empty()
        && shown.quarantined.is_empty();
    html! {
        (heading("Recovery", "What a crash or a damaged file left behind. Nothing here is removed unless you remove it."))
        div data-part="recovery" {
            @if is_empty {
                div class="card empty" {
                    h2 { "Nothing to recover" }
                    p { "To check all stored data, run " code { "tidelock doctor --deep" } "." }
                }
            }
            @if !shown.recovering.is_empty() {
                (card("Recovering", &html! {
                    ul class="plain-list" { @for what in &shown.recovering { li { (exact(what)) } } }
                }))
            }
            @if !shown.stuck.is_empty() {
                (card("Stuck applies", &html! { @for workspace in &shown.stuck { (stuck(workspace, visitor)) } }))
            }
            @if !shown.rescued.is_empty() || !shown.undescribed.is_empty() {
                (card("Rescued content", &html! {
                    @for rescued in &shown.rescued { (kept(rescued, visitor)) }
                    @for directory in &shown.undescribed {
                        p { code { (exact(directory)) } small { " Can't read its description." } }
                    }
                }))
            }
            @if !shown.quarantined.is_empty() {
                (card("Quarantined records", &html! {
                    p { "These records can't be read. Everything else works without them." }
                    @for quarantined in &shown.quarantined {
                        p data-quarantined=(quarantined.stream) {
                            code { (exact(&quarantined.stream)) } small { " " (exact(&quarantined.reason)) }
                        }
                    }
                    p { "View one with " code { "tidelock quarantine show" } ", remove it with " code { "tidelock quarantine drop" } "." }
                }))
            }
        }
    }
}

fn card(title: &str, content: &Markup) -> Markup {
    html! { section class="card" aria-label=(title) { h2 { (title) } (content) } }
}

fn stuck(workspace: &Workspace, visitor: &Visitor) -> Markup {
    let why = workspace.stuck.as_ref().map_or("", |stuck| stuck.why.as_str());
    let what = workspace.stuck.as_ref().and_then(|stuck| stuck.what.as_deref());
    let button = |abort: bool, label: &str, title: &str| {
        let fields: [(&str, &dyn Display); 2] = [("id", &workspace.id), ("abort", &abort)];
        button_form(
            visitor,
            "/recovery/repair",
            &fields,
            &html! {
                button data-key={ (label) " " (workspace.id) } title=(title)
                    aria-label={ (label) ": " (exact_words(&workspace.root)) } { (label) }
            },
        )
    };
    html! {
        div data-stuck=(workspace.id) {
            p {
                code { (exact(&workspace.root)) } ": " (what.unwrap_or("a change")) " is stuck halfway. " (exact(why))
            }
            div class="actions" {
                (button(false, "Try again", "Finishes or undoes it, if nothing blocks it anymore"))
                (button(true, "Set aside", "Stops trying; everything it holds is kept below"))
            }
        }
    }
}

fn kept(rescued: &Rescued, visitor: &Visitor) -> Markup {
    let button = |action: &str, label: &str, title: &str| {
        button_form(
            visitor,
            action,
            &[("id", &rescued.id)],
            &html! {
                button data-key={ (label) " " (rescued.id) } title=(title)
                    aria-label={ (label) " " (exact_words(&rescued.path)) } { (label) }
            },
        )
    };
    html! {
        div data-rescued=(rescued.id) {
            p {
                code { (exact(&rescued.path)) } " of " code { (exact(&rescued.root)) } ", "
                (rescued.kind) " since " (time(&rescued.since)) ". " (exact(&rescued.why))
                small { "Kept at " code { (exact(&rescued.kept_at)) } }
            }
            div class="actions" {
                (button("/recovery/restore", "Restore", "Puts it back; never overwrites what is at its path"))
                (button("/recovery/drop", "Drop", "Deletes it permanently"))
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct RescuedForm {
    id: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RepairForm {
    id: String,
    abort: bool,
}

pub(crate) async fn restore(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<RescuedForm>,
) -> Redirect {
    let notice = match fields.id.parse() {
        Err(_) => notice::refused(&fields.id, "There is no such rescued content."),
        Ok(id) => {
            let order = RestoreRequest {
                id,
                to: None,
                occupied: Occupied::Refuse,
            };
            match app.plans.restore_rescued(order).await {
                Ok(restored) => notice::done(&restored.path.to_string(), "was restored.", &[]),
                Err(error) => refused(&fields.id, error),
            }
        }
    };
    done(&app, &visitor, notice, "/recovery")
}

pub(crate) async fn drop_it(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<RescuedForm>,
) -> Redirect {
    let notice = match fields.id.parse() {
        Err(_) => notice::refused(&fields.id, "There is no such rescued content."),
        Ok(id) => match app.plans.drop_rescued(id).await {
            Ok(_) => notice::done(&fields.id, "was dropped.", &[]),
            Err(error) => refused(&fields.id, error),
        },
    };
    done(&app, &visitor, notice, "/recovery")
}

pub(crate) async fn repair(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<RepairForm>,
) -> Redirect {
    let how = match fields.abort {
        true => Repair::Abort,
        false => Repair::Recover,
    };
    let notice = match fields.id.parse() {
        Err(_) => notice::refused(&fields.id, "There is no such workspace."),
        Ok(id) => match app.plans.repair_workspace(id, how).await {
            Ok(repaired) => repair_notice(&fields.id, &repaired.end),
            Err(error) => refused(&fields.id, error),
        },
    };
    done(&app, &visitor, notice, "/recovery")
}

fn repair_notice(id: &str, end: &RepairEnd) -> Notice {
    let outcome = match end {
        RepairEnd::Nothing => "had nothing to repair.",
        RepairEnd::Finished => "is repaired: the change was finished.",
        RepairEnd::TakenBack => "is repaired: the change was undone.",
        RepairEnd::SetAside(_) => "can be used again. What the change held is kept below.",
        RepairEnd::Stuck(stuck) => return notice::refused(id, &stuck.why),
    };
    notice::done(id, outcome, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::parts::text::tests::assert_parts;

    #[test]
    fn everything_that_waits_is_shown_with_its_buttons_and_escaped() {
        let visitor = Visitor::example();
        let nothing = Shown {
            recovering: Vec::new(),
            stuck: Vec::new(),
            rescued: Vec::new(),
            undescribed: Vec::new(),
            quarantined: Vec::new(),
        };
        let empty = content(&nothing, &visitor).into_string();
        assert!(empty.contains("Nothing to recover"), "{empty}");
        let shown = Shown {
            recovering: vec!["an apply on /w/<a>".to_owned()],
            stuck: vec![Workspace {
                id: "workspace_1".to_owned(),
                state: protocol::WorkspaceState::Present,
                root: "/w/<b>".to_owned(),
                git: false,
                checks: Vec::new(),
                registered_at: "2026-01-31T09:30:00Z".to_owned(),
                open_plans: 1,
                stuck: Some(protocol::StuckLanding {
                    what: Some("apply".to_owned()),
                    plans: Vec::new(),
                    since: None,
                    why: "`<c>` is in the way".to_owned(),
                }),
                notice: None,
            }],
            rescued: vec![Rescued {
                id: "rescued_1".to_owned(),
                workspace: "workspace_1".to_owned(),
                root: "/w".to_owned(),
                path: "<d>".to_owned(),
                kind: "symlink".to_owned(),
                bytes: None,
                what: "apply".to_owned(),
                plans: Vec::new(),
                since: "2026-01-31T09:30:00Z".to_owned(),
                why: "Its path was taken.".to_owned(),
                kept_at: "/kept".to_owned(),
            }],
            undescribed: vec!["/kept/other".to_owned()],
            quarantined: vec![Quarantined {
                stream: "plan/<e>".to_owned(),
                kind: "plan".into(),
                reason: "no JSON".to_owned(),
            }],
        };
        let page = content(&shown, &visitor).into_string();
        assert_parts(
            &page,
            &[
                "an apply on /w/&lt;a&gt;",
                "data-stuck=\"workspace_1\"",
                "`&lt;c&gt;` is in the way",
                "aria-label=\"Set aside: /w/&lt;b&gt;\"",
                "data-rescued=\"rescued_1\"",
                "aria-label=\"Restore &lt;d&gt;\"",
                "aria-label=\"Drop &lt;d&gt;\"",
                "/kept/other",
                "plan/&lt;e&gt;",
                "name=\"form_token\"",
            ],
        );
    }
}
