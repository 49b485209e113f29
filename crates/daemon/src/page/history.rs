//! The history of one breaker: what people did to it by hand.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use maud::{Markup, html};
use protocol::{BreakerEvent, ErrorCode};
use serde::Deserialize;

use super::breakers::checked_name;
use super::error::PageError;
use super::layout::{Place, still_page};
use super::overview::readable;
use super::sign_in::Visitor;
use crate::app::App;
use crate::durable::BreakerHistory;
use crate::http::log_problem::reason_text;

/// How many events are on a page. Older ones are behind a link.
const SHOWN_EVENTS: u32 = 50;

/// Which part of which history.
#[derive(Debug, Deserialize)]
pub(super) struct Part {
    name: String,
    before: Option<u64>,
}

/// Where the history of a breaker is.
pub(super) fn path(name: &str) -> String {
    format!("/breakers/history?name={}", percent_encode(name))
}

/// A text as a part of an address.
pub(crate) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte))
            }
            // Writing to a string cannot fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Markup, PageError> {
    let Ok(Query(Part { name, before })) = part else {
        let detail = html! { p { "The address doesn't name a breaker." } };
        return Err(PageError::new(ErrorCode::InvalidQuery, detail));
    };
    let name = checked_name(name)?;
    let failed = |reason: String| {
        let detail = html! { p { "Can't read the log: " (reason) "." } };
        PageError::new(ErrorCode::LogFailed, detail)
    };
    let history = BreakerHistory::of(app.durable.holder, &name).map_err(|bad| failed(bad.to_string()))?;
    let past = history
        .before(&app.durable.log, before, SHOWN_EVENTS)
        .await
        .map_err(|error| failed(reason_text(&error)))?;
    let oldest = past.events.first().map_or(0, |event| event.sequence);
    let content = html! {
        div class="heading" {
            div {
                h1 { "History of " (name) }
                p { "Manual changes to this breaker, newest first. Automatic changes aren't recorded." }
            }
        }
        @if past.events.is_empty() {
            div class="card empty" {
                h2 { "No history" }
                p { "Nobody has forced or reset this breaker, or the events have expired." }
            }
        } @else {
            (table(&past.events))
        }
        p {
            a href="/breakers" { "All breakers" }
            @if oldest > past.first.max(1) {
                " · " a href={ (path(&name)) "&before=" (oldest) } { "Older" }
            } @else if past.first > 1 {
                " · events before number " (past.first) " have expired"
            }
        }
    };
    Ok(still_page(
        &app,
        &visitor,
        Place::Breakers,
        &format!("History of {name}"),
        &content,
    ))
}

fn table(events: &[BreakerEvent]) -> Markup {
    html! {
        div class="card table" {
            table {
                thead {
                    tr {
                        th scope="col" { "What" }
                        th scope="col" { "Time" }
                        th scope="col" { "Request" }
                    }
                }
                tbody {
                    @for event in events.iter().rev() {
                        tr {
                            th scope="row" { (words(&event.kind)) small { "number " (event.sequence) } }
                            td class="state" { time datetime=(event.at) { (readable(&event.at)) } }
                            td class="state" {
                                @if let Some(by) = &event.by { code { (by.request_id) } small { "over " (by.transport) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What was done, for people.
fn words(kind: &str) -> &str {
    match kind {
        "forced_open" => "Forced open",
        "forced_closed" => "Forced closed",
        "reset" => "Reset",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_fits_into_the_address() {
        for (name, expected) in [
            ("model-api_1~x.y", "/breakers/history?name=model-api_1~x.y"),
            ("lsp/a b&c=ü", "/breakers/history?name=lsp%2Fa%20b%26c%3D%C3%BC"),
        ] {
            assert_eq!(path(name), expected);
        }
    }
}
