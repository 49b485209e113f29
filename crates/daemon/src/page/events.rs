//! The page of events: what happened lately, to whatever it happened, newest first.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use maud::{Markup, html};
use protocol::{Activity, ActivityKind};
use serde::Deserialize;

use super::ansi::one_line;
use super::error::PageError;
use super::job_time::ago;
use super::jobs::unreadable;
use super::layout::{Place, live_part, page_below};
use super::list_parts::{Asked, Choice, ListFilter, choices, query};
use super::overview::readable;
use super::sign_in::Visitor;
use super::{history, job_state, plan_state, server_log, session_state};
use crate::activity::newest;
use crate::app::App;
use crate::times::now_ms;

/// A stream says when something has changed; this is for ages.
const REFRESH: Duration = Duration::from_secs(5);
/// How many events are shown. Who wants more opens the page of what they are about.
const SHOWN_EVENTS: u32 = 50;

/// Which events are shown. It stands in the address, so that it can be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Filter {
    kind: Option<ActivityKind>,
}

impl ListFilter for Filter {
    const LISTED: &'static str = "events";
}

impl Filter {
    fn path(self) -> String {
        format!("/events{}", query(&[("kind", self.kind.map(kind_name))]))
    }
}

/// The kinds, as they stand in addresses, and for people.
const KINDS: [(ActivityKind, &str); 6] = [
    (ActivityKind::Session, "Sessions"),
    (ActivityKind::Plan, "Plans"),
    (ActivityKind::Job, "Jobs"),
    (ActivityKind::Server, "Servers"),
    (ActivityKind::Breaker, "Breakers"),
    (ActivityKind::Daemon, "Daemon"),
];

fn kind_name(kind: ActivityKind) -> &'static str {
    match kind {
        ActivityKind::Session => "session",
        ActivityKind::Plan => "plan",
        ActivityKind::Job => "job",
        ActivityKind::Server => "server",
        ActivityKind::Breaker => "breaker",
        ActivityKind::Daemon => "daemon",
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(filter): Asked<Filter>,
) -> Result<Markup, PageError> {
    let live_path = format!("/live{}", filter.path());
    let live = live(&app, &visitor, filter).await?;
    Ok(page_below(
        &app,
        &visitor,
        Place::Events,
        ("Events", &live_path),
        &live,
    ))
}

pub(super) async fn show_live(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(filter): Asked<Filter>,
) -> Result<Markup, PageError> {
    live(&app, &visitor, filter).await
}

async fn live(app: &App, visitor: &Visitor, filter: Filter) -> Result<Markup, PageError> {
    let events = newest(app, filter.kind, SHOWN_EVENTS)
        .await
        .map_err(|error| unreadable(&error))?;
    Ok(live_part(
        app,
        visitor,
        REFRESH,
        &content(&events, filter, now_ms()),
    ))
}

fn content(events: &[Activity], filter: Filter, now_ms: u64) -> Markup {
    let all = Choice {
        word: "All",
        href: Filter { kind: None }.path(),
        is_chosen: filter.kind.is_none(),
    };
    let kinds = KINDS.map(|(kind, word)| Choice {
        word,
        href: Filter { kind: Some(kind) }.path(),
        is_chosen: filter.kind == Some(kind),
    });
    let shown: Vec<Choice<'_>> = std::iter::once(all).chain(kinds).collect();
    html! {
        div class="heading" data-part="heading" {
            div {
                h1 { "Events" }
                p { "Recent events, newest first. Each one links to the page with the full history." }
            }
        }
        (choices("Filter by kind", &shown, &html! {}))
        div data-part="events" {
            @if events.is_empty() {
                div class="card empty" {
                    h2 { "No events yet" }
                    p { "What agents, jobs and people do shows up here as it happens." }
                    p { code { "tidelock activity" } }
                }
            } @else {
                div class="card" {
                    ol class="rows events" data-list="events" { @for event in events { (row(event, now_ms)) } }
                }
            }
        }
    }
}

fn row(event: &Activity, now_ms: u64) -> Markup {
    let passed = ago(&event.at, now_ms).map_or_else(|| "–".to_owned(), |ago| format!("{ago} ago"));
    let title = one_line(&event.title);
    let title = if title.trim().is_empty() {
        &event.id
    } else {
        &title
    };
    html! {
        li data-event=(one_line(&event.event)) {
            div class="row-state" { span class=(class(&event.event)) { (words(&event.event)) } }
            div class="row-what" {
                span class="row-kind" { (kind_word(event.kind)) } " "
                @match path(event) {
                    Some(path) => a class="row-title" href=(path) data-key={ "event " (one_line(&event.id)) " " (event.at) } { (title) },
                    None => span class="row-title" { (title) },
                }
                @if event.count > 1 { span class="times" { (event.count) " times" } }
                @if !event.actor.is_empty() || !event.text.is_empty() {
                    small {
                        @if !event.actor.is_empty() { "by " (one_line(&event.actor)) }
                        @if !event.actor.is_empty() && !event.text.is_empty() { " · " }
                        (one_line(&event.text))
                    }
                }
            }
            time class="row-time" datetime=(event.at) title=(readable(&event.at)) { (passed) }
        }
    }
}

fn kind_word(kind: ActivityKind) -> &'static str {
    match kind {
        ActivityKind::Session => "Session",
        ActivityKind::Plan => "Plan",
        ActivityKind::Job => "Job",
        ActivityKind::Server => "Server",
        ActivityKind::Breaker => "Breaker",
        ActivityKind::Daemon => "Daemon",
    }
}

fn path(event: &Activity) -> Option<String> {
    match event.kind {
        ActivityKind::Session => Some(session_state::path(&event.id)),
        ActivityKind::Plan => Some(plan_state::path(&event.id)),
        ActivityKind::Job => Some(job_state::path(&event.id)),
        ActivityKind::Server => Some(server_log::path(&event.id)),
        ActivityKind::Breaker => Some(history::path(&event.id)),
        ActivityKind::Daemon => None,
    }
}

/// A name of the interface for people: `turn_started` is `Turn started`.
fn words(event: &str) -> String {
    let text = one_line(event).replace('_', " ");
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}", letters.as_str())
}

fn class(event: &str) -> &'static str {
    match event {
        "failed" | "crashed" | "refused" | "interrupted" | "turn_failed" | "turn_interrupted"
        | "forced_open" => "badge bad",
        "applied" | "succeeded" | "ready" | "child_merged" | "turn_done" => "badge good",
        "sealed" | "overlapped" | "asked" | "undone" | "retrying" | "restarting" | "stopping" => "badge warn",
        "turn_started" | "claimed" | "command_started" | "check_started" | "starting" | "changed" => {
            "badge active"
        }
        _ => "badge",
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_state::tests::{HOSTILE, NOW, assert_harmless};
    use super::*;
    use crate::times::parse;

    fn event(kind: ActivityKind, text: &str) -> Activity {
        Activity {
            at: "2026-01-31T09:30:00.000Z".to_owned(),
            kind,
            id: "plan_1".to_owned(),
            title: text.to_owned(),
            event: "command_started".to_owned(),
            actor: text.to_owned(),
            text: text.to_owned(),
            count: 1,
        }
    }

    fn rendered(events: &[Activity], filter: Filter) -> String {
        content(events, filter, parse(NOW).unwrap()).into_string()
    }

    #[test]
    fn an_event_says_what_happened_to_what_and_who_did_it() {
        let twice = Activity {
            count: 2,
            ..event(ActivityKind::Plan, "claude")
        };
        let page = rendered(&[twice], Filter::default());
        for part in [
            "<li data-event=\"command_started\">",
            "<span class=\"badge active\">Command started</span>",
            "href=\"/plans/plan_1\"",
            "<span class=\"times\">2 times</span>",
            "<small>by claude · claude</small>",
            ">1 min 0 s ago</time>",
            "aria-current=\"true\">All</a><a href=\"/events?kind=session\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn each_kind_can_be_shown_alone() {
        for (kind, _) in KINDS {
            let filter = Filter { kind: Some(kind) };
            let name = serde_json::to_value(kind).unwrap();
            assert_eq!(filter.path(), format!("/events?kind={}", name.as_str().unwrap()));
            let page = rendered(&[event(kind, "a")], filter);
            assert_eq!(page.matches("aria-current").count(), 1, "{page}");
        }
        assert!(rendered(&[], Filter::default()).contains("No events yet"));
    }

    #[test]
    fn what_others_say_is_shown_as_text() {
        let hostile = Activity {
            event: HOSTILE.to_owned(),
            ..event(ActivityKind::Session, HOSTILE)
        };
        assert_harmless(&rendered(&[hostile], Filter::default()));
    }
}
