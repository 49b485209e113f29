//! The history of one breaker: manual changes.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use maud::{Markup, html};
use protocol::{BreakerEvent, ErrorCode};
use serde::Deserialize;

use super::breakers::checked_name;
use crate::app::App;
use crate::durable::BreakerHistory;
use crate::http::log_problem::reason_text;
use crate::page::login::Visitor;
use crate::page::parts::error::PageError;
use crate::page::parts::layout::{NavItem, still_page};
use crate::page::parts::list::Column::Text;
use crate::page::parts::list::table_card;
use crate::page::parts::text::percent_encode;
use crate::page::parts::times::time;

/// How many events are on a page. Older ones are behind a link.
const SHOWN_EVENTS: u32 = 50;

#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    name: String,
    before: Option<u64>,
}

pub(crate) fn path(name: &str) -> String {
    format!("/breakers/history?name={}", percent_encode(name))
}

pub(crate) async fn show(
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
            (table_card(&[Text("What"), Text("Time"), Text("Request")], past.events.iter().rev().map(row)))
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
        NavItem::Breakers,
        &format!("History of {name}"),
        &content,
    ))
}

fn row(event: &BreakerEvent) -> Markup {
    html! {
        tr {
            th scope="row" { (words(&event.kind)) small { "number " (event.sequence) } }
            td class="state" { (time(&event.at)) }
            td class="state" {
                @if let Some(by) = &event.by { code { (by.request_id) } small { "over " (by.transport) } }
            }
        }
    }
}

fn words(kind: &str) -> &str {
    match kind {
        "forced_open" => "Forced open",
        "forced_closed" => "Forced closed",
        "reset" => "Reset",
        other => other,
    }
}
