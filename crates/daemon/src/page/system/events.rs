//! The events page: what happened recently, newest first.

use std::sync::Arc;

use maud::{Markup, html};
use protocol::{Activity, ActivityKind};

use super::breaker_history as history;
use crate::activity::newest;
use crate::app::App;
use crate::page::jobs::state as job_state;
use crate::page::login::Visitor;
use crate::page::parts::ansi::one_line;
use crate::page::parts::error::PageError;
use crate::page::parts::layout::{Live, Refresh};
use crate::page::parts::list::{Choice, Filter, empty, heading};
use crate::page::parts::text::{capitalized, titled};
use crate::page::parts::times::{readable, words_ago};
use crate::page::plans::state as plan_state;
use crate::page::servers::detail as server_log;
use crate::page::sessions::state as session_state;
use crate::times::now_ms;

/// How many events are shown. For more, open the page of the subject.
const SHOWN_EVENTS: u32 = 50;

/// The filters of the list.
const KINDS: [Choice<Option<ActivityKind>>; 7] = [
    Choice::new("", "All", None),
    Choice::new("session", "Sessions", Some(ActivityKind::Session)),
    Choice::new("plan", "Plans", Some(ActivityKind::Plan)),
    Choice::new("job", "Jobs", Some(ActivityKind::Job)),
    Choice::new("server", "Servers", Some(ActivityKind::Server)),
    Choice::new("breaker", "Breakers", Some(ActivityKind::Breaker)),
    Choice::new("daemon", "Daemon", Some(ActivityKind::Daemon)),
];

pub(crate) async fn read(app: Arc<App>, _: Visitor, filter: Filter) -> Result<Live, PageError> {
    let kind = filter.chosen(filter.kind.as_deref(), &KINDS)?;
    let events = newest(&app, kind, SHOWN_EVENTS)
        .await
        .map_err(|error| PageError::unreadable(&error))?;
    let content = content(&events, &filter, now_ms());
    Ok(Live::new("Events", Refresh::Still, content))
}

fn content(events: &[Activity], filter: &Filter, now_ms: u64) -> Markup {
    html! {
        (heading("Events", "Recent events, newest first. Each one links to the page with the full history."))
        (filter.kind_links("Filter by kind", &KINDS))
        div data-part="events" {
            @if events.is_empty() {
                (empty(
                    "No events yet",
                    "What agents, jobs and people do shows up here as it happens.",
                    "tidelock activity",
                ))
            } @else {
                div class="card" {
                    ol class="rows events" data-list="events" { @for event in events { (row(event, now_ms)) } }
                }
            }
        }
    }
}

fn row(event: &Activity, now_ms: u64) -> Markup {
    let title = titled(&event.title, &event.id);
    html! {
        li data-event=(one_line(&event.event)) {
            div class="row-state" { span class=(class(&event.event)) { (capitalized(&event.event.replace('_', " "))) } }
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
            time class="row-time" datetime=(event.at) title=(readable(&event.at)) { (words_ago(&event.at, now_ms)) }
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
    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, NOW, assert_harmless, assert_parts};
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

    fn rendered(events: &[Activity], filter: &Filter) -> String {
        content(events, filter, parse(NOW).unwrap()).into_string()
    }

    #[test]
    fn an_event_says_what_happened_to_what_and_who_did_it() {
        let twice = Activity {
            count: 2,
            ..event(ActivityKind::Plan, "claude")
        };
        let page = rendered(&[twice], &Filter::all("events"));
        assert_parts(
            &page,
            &[
                "<li data-event=\"command_started\">",
                "<span class=\"badge active\">Command started</span>",
                "href=\"/plans/plan_1\"",
                "<span class=\"times\">2 times</span>",
                "<small>by claude · claude</small>",
                ">1 min 0 s ago</time>",
                "aria-current=\"true\">All</a><a href=\"/events?kind=session\"",
            ],
        );
    }

    #[test]
    fn each_kind_can_be_shown_alone() {
        for choice in &KINDS[1..] {
            let kind = choice.value.unwrap();
            assert_eq!(serde_json::to_value(kind).unwrap(), choice.word);
            let filter = Filter {
                kind: Some(choice.word.to_owned()),
                ..Filter::all("events")
            };
            assert_eq!(filter.path(), format!("/events?kind={}", choice.word));
            let page = rendered(&[event(kind, "a")], &filter);
            assert_eq!(page.matches("aria-current").count(), 1, "{page}");
        }
        assert!(rendered(&[], &Filter::all("events")).contains("No events yet"));
    }

    #[test]
    fn what_others_say_is_shown_as_text() {
        let hostile = Activity {
            event: HOSTILE.to_owned(),
            ..event(ActivityKind::Session, HOSTILE)
        };
        assert_harmless(&rendered(&[hostile], &Filter::all("events")));
    }
}
