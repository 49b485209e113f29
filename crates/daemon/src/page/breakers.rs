//! The page of circuit breakers, and its forms.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Redirect;
use kernel::Generation;
use maud::{Markup, html};
use protocol::{Breaker, BreakerState, ErrorCode, ForcedState};
use serde::Deserialize;

use super::error::PageError;
use super::form::{OwnForm, token_field};
use super::history;
use super::layout::{Place, human_duration, live_part, page};
use super::notice::Notice;
use super::sign_in::Visitor;
use crate::app::App;
use crate::durable::{Change, OverrideError, Who};
use crate::http::breakers::{BreakerName, all, to_wire};
use crate::http::log_problem::reason_text;

/// While something counts down, people watch it.
const REFRESH_WHILE_OPEN: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_secs(3);

pub(super) async fn show(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    page(&app, &visitor, Place::Breakers, &live(&app, &visitor))
}

pub(super) async fn show_live(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    live(&app, &visitor)
}

fn live(app: &App, visitor: &Visitor) -> Markup {
    let breakers = all(app).breakers;
    let counts_down = breakers.iter().any(|breaker| breaker.retry_after_ms.is_some());
    let refresh = if counts_down { REFRESH_WHILE_OPEN } else { REFRESH };
    let content = html! {
        div class="heading" {
            div {
                h1 { "Circuit breakers" }
                p {
                    "A breaker tracks what keeps failing. While it is open, agents skip the failing call; after a cooldown, one of "
                    "them tries again. All agents on this machine share the breakers."
                }
            }
            @if !breakers.is_empty() {
                form method="post" action="/breakers/reset-all" {
                    (token_field(visitor))
                    button data-key="reset-all" { "Reset all" }
                }
            }
        }
        @if breakers.is_empty() { (empty()) } @else { (table(&breakers, visitor)) }
    };
    live_part(app, visitor, refresh, &content)
}

fn empty() -> Markup {
    html! {
        div class="card empty" {
            h2 { "No breakers yet" }
            p {
                "A breaker appears here when an agent reports the result of a call, for example to a language server or a "
                "model. After a few failures in a row it opens, and calls are refused until the cooldown ends."
            }
            p { code { "POST /v1/breakers/NAME/record" } }
        }
    }
}

fn table(breakers: &[Breaker], visitor: &Visitor) -> Markup {
    html! {
        div class="card table" {
            table {
                thead {
                    tr {
                        th scope="col" { "Name" }
                        th scope="col" { "State" }
                        th scope="col" class="count" { "Failures" }
                        th scope="col" class="count" { "Refused" }
                        th scope="col" class="count" { "Opened" }
                        th scope="col" class="count" { "Late" }
                        th scope="col" { span class="skip" { "Actions" } }
                    }
                }
                tbody { @for breaker in breakers { (row(breaker, visitor)) } }
            }
        }
    }
}

fn row(breaker: &Breaker, visitor: &Visitor) -> Markup {
    let counts = [
        ("Failures", breaker.failures),
        ("Refused", breaker.refused),
        ("Opened", breaker.times_opened),
        ("Late", breaker.late_reports),
    ];
    html! {
        tr {
            th scope="row" {
                (breaker.id)
                small {
                    "generation " (breaker.generation) " · "
                    a href=(history::path(&breaker.id)) data-key={ "history " (breaker.id) }
                        aria-label={ "History of " (breaker.id) } { "history" }
                }
            }
            td class="state" { (badge(breaker)) (explanation(breaker)) }
            @for (name, count) in counts {
                td class="count" data-label=(name) { (count) }
            }
            td class="act" { div class="actions" { (actions(breaker, visitor)) } }
        }
    }
}

fn actions(breaker: &Breaker, visitor: &Visitor) -> Markup {
    let name = &breaker.id;
    html! {
        form method="post" action="/breakers/reset" {
            (token_field(visitor))
            input type="hidden" name="name" value=(name);
            input type="hidden" name="generation" value=(breaker.generation);
            button data-key={ "reset " (name) } aria-label={ "Reset " (name) } { "Reset" }
        }
        @for (state, word, held) in [
            ("open", "Force open", BreakerState::ForcedOpen),
            ("closed", "Force closed", BreakerState::ForcedClosed),
        ] {
            @if breaker.state != held {
                form method="post" action="/breakers/force" {
                    (token_field(visitor))
                    input type="hidden" name="name" value=(name);
                    input type="hidden" name="state" value=(state);
                    button data-key={ (state) " " (name) } aria-label={ (word) ": " (name) } { (word) }
                }
            }
        }
    }
}

/// The state of a breaker, as a coloured word.
pub(super) fn badge(breaker: &Breaker) -> Markup {
    let class = match breaker.state {
        BreakerState::Closed => "badge good",
        BreakerState::Open => "badge bad",
        BreakerState::HalfOpen => "badge warn",
        BreakerState::ForcedOpen => "badge bad forced",
        BreakerState::ForcedClosed => "badge good forced",
    };
    html! { span class=(class) { (label(breaker.state)) } }
}

/// The name of a state, for people.
pub(super) fn label(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Closed => "Closed",
        BreakerState::Open => "Open",
        BreakerState::HalfOpen => "Half open",
        BreakerState::ForcedOpen => "Forced open",
        BreakerState::ForcedClosed => "Forced closed",
    }
}

/// What stands below the badge: when it is tried again, or what the last calls came to.
pub(super) fn explanation(breaker: &Breaker) -> Markup {
    html! {
        @match (breaker.state, breaker.retry_after_ms) {
            (BreakerState::Open, Some(ms)) => {
                // Rounded up, so that it never says zero while calls are still refused.
                small { "retries in " (human_duration(Duration::from_secs(ms.div_ceil(1000)))) }
            }
            (BreakerState::HalfOpen, _) if breaker.probing => small { "probing now" },
            (BreakerState::HalfOpen, _) => small { "the next call is a probe" },
            (BreakerState::ForcedOpen | BreakerState::ForcedClosed, _) => small { "until it is reset" },
            (BreakerState::Closed, _) if breaker.consecutive_failures == 1 => small { "the last call failed" },
            (BreakerState::Closed, _) if breaker.consecutive_failures > 1 => {
                small { "the last " (breaker.consecutive_failures) " calls failed" }
            }
            _ => {}
        }
    }
}

/// The form behind a Reset button: it names what its reader saw.
#[derive(Debug, Deserialize)]
pub(super) struct ResetForm {
    name: String,
    generation: u64,
}

pub(super) async fn reset(
    State(app): State<Arc<App>>,
    who: Who,
    OwnForm { visitor, fields }: OwnForm<ResetForm>,
) -> Result<Redirect, PageError> {
    let name = checked_name(fields.name)?;
    let change = Change::ResetIf(Generation::from_u64(fields.generation));
    let notice = match app.durable.overrides.change(&name, change, who).await {
        Ok(_) => Notice::Reset { name },
        Err(error) => refused(error, name),
    };
    Ok(done(&app, &visitor, notice))
}

/// A form without fields of its own.
#[derive(Debug, Deserialize)]
pub(super) struct EmptyForm {}

pub(super) async fn reset_all(
    State(app): State<Arc<App>>,
    who: Who,
    OwnForm { visitor, .. }: OwnForm<EmptyForm>,
) -> Redirect {
    let notice = match app.durable.overrides.reset_all(who).await {
        Ok(count) => Notice::ResetAll { count: count as u64 },
        Err(error) => refused(error, String::new()),
    };
    done(&app, &visitor, notice)
}

/// The form behind the Force buttons.
#[derive(Debug, Deserialize)]
pub(super) struct ForceForm {
    name: String,
    state: ForcedState,
}

pub(super) async fn force(
    State(app): State<Arc<App>>,
    who: Who,
    OwnForm { visitor, fields }: OwnForm<ForceForm>,
) -> Result<Redirect, PageError> {
    let name = checked_name(fields.name)?;
    let (change, state) = match fields.state {
        ForcedState::Open => (Change::ForceOpen, "open"),
        ForcedState::Closed => (Change::ForceClosed, "closed"),
    };
    let notice = match app.durable.overrides.change(&name, change, who).await {
        Ok(_) => Notice::Forced { name, state },
        Err(error) => refused(error, name),
    };
    Ok(done(&app, &visitor, notice))
}

fn refused(error: OverrideError, name: String) -> Notice {
    match error {
        OverrideError::Unknown => Notice::Gone { name },
        OverrideError::Moved(current) => Notice::Moved {
            current: Box::new(to_wire(&current)),
        },
        OverrideError::Full => Notice::Full,
        OverrideError::Log(reason) => Notice::NotWritten {
            reason: reason_text(&reason),
        },
        OverrideError::Commit(_) | OverrideError::Closed => Notice::NotWritten {
            reason: error.to_string(),
        },
    }
}

pub(super) fn checked_name(name: String) -> Result<String, PageError> {
    match BreakerName::parse(name) {
        Ok(name) => Ok(name.as_str().to_owned()),
        Err(_) => {
            let detail = html! { p { "This isn't a valid breaker name. Nothing was changed." } };
            Err(PageError::new(ErrorCode::InvalidName, detail))
        }
    }
}

fn done(app: &App, visitor: &Visitor, notice: Notice) -> Redirect {
    tracing::info!(?notice, "a form of the page was handled");
    app.sessions.leave_notice(visitor.session.id, notice);
    Redirect::to("/breakers")
}
