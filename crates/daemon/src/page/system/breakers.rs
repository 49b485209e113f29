//! The circuit breakers page, and its forms.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Redirect;
use kernel::Generation;
use maud::{Markup, html};
use protocol::{Breaker, BreakerState, ErrorCode, ForcedState};
use serde::Deserialize;

use super::breaker_history as history;
use crate::app::App;
use crate::durable::{Change, OverrideError, Who};
use crate::http::breakers::{BreakerName, all, to_wire};
use crate::http::log_problem::reason_text;
use crate::page::login::Visitor;
use crate::page::parts::error::PageError;
use crate::page::parts::form::{Notice, OwnForm, button_form, done};
use crate::page::parts::layout::{Live, Refresh};
use crate::page::parts::list::Column::{Actions, Count, Text};
use crate::page::parts::list::{count, empty, table_card};
use crate::page::parts::text;
use crate::page::parts::times::human_duration;

pub(crate) async fn read(app: Arc<App>, visitor: Visitor, _: ()) -> Result<Live, PageError> {
    let breakers = all(&app).breakers;
    let counts_down = breakers.iter().any(|breaker| breaker.retry_after_ms.is_some());
    let refresh = match counts_down {
        true => Refresh::Moving,
        false => Refresh::Counters,
    };
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
                (button_form(&visitor, "/breakers/reset-all", &[], &html! {
                    button data-key="reset-all" { "Reset all" }
                }))
            }
        }
        @if breakers.is_empty() {
            (empty(
                "No breakers yet",
                "A breaker appears here when an agent reports the result of a call, for example to a language server or a \
                 model. After a few failures in a row it opens, and calls are refused until the cooldown ends.",
                "POST /v1/breakers/NAME/record",
            ))
        } @else {
            (table_card(
                &[Text("Name"), Text("State"), Count("Failures"), Count("Refused"), Count("Opened"), Count("Late"), Actions],
                breakers.iter().map(|breaker| row(breaker, &visitor)),
            ))
        }
    };
    Ok(Live::new("Breakers", refresh, content))
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
            @for (name, value) in counts { (count(name, value)) }
            td class="act" { div class="actions" { (actions(breaker, visitor)) } }
        }
    }
}

fn actions(breaker: &Breaker, visitor: &Visitor) -> Markup {
    let name = &breaker.id;
    let reset = html! { button data-key={ "reset " (name) } aria-label={ "Reset " (name) } { "Reset" } };
    html! {
        (button_form(
            visitor,
            "/breakers/reset",
            &[("name", name), ("generation", &breaker.generation)],
            &reset,
        ))
        @for (state, word, held) in [
            ("open", "Force open", BreakerState::ForcedOpen),
            ("closed", "Force closed", BreakerState::ForcedClosed),
        ] {
            @if breaker.state != held {
                (button_form(visitor, "/breakers/force", &[("name", name), ("state", &state)], &html! {
                    button data-key={ (state) " " (name) } aria-label={ (word) ": " (name) } { (word) }
                }))
            }
        }
    }
}

pub(crate) fn badge(breaker: &Breaker) -> Markup {
    text::badge(look(breaker.state))
}

pub(crate) fn label(state: BreakerState) -> &'static str {
    look(state).1
}

fn look(state: BreakerState) -> (&'static str, &'static str) {
    match state {
        BreakerState::Closed => ("badge good", "Closed"),
        BreakerState::Open => ("badge bad", "Open"),
        BreakerState::HalfOpen => ("badge warn", "Half open"),
        BreakerState::ForcedOpen => ("badge bad forced", "Forced open"),
        BreakerState::ForcedClosed => ("badge good forced", "Forced closed"),
    }
}

/// The text below the badge: when it retries, or how the last calls ended.
pub(crate) fn explanation(breaker: &Breaker) -> Markup {
    html! {
        @match (breaker.state, breaker.retry_after_ms) {
            (BreakerState::Open, Some(ms)) => {
                // Rounded up, so that it never shows zero while calls are still refused.
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
pub(crate) struct ResetForm {
    name: String,
    generation: u64,
}

pub(crate) async fn reset(
    State(app): State<Arc<App>>,
    who: Who,
    OwnForm { visitor, fields }: OwnForm<ResetForm>,
) -> Result<Redirect, PageError> {
    let name = checked_name(fields.name)?;
    let change = Change::ResetIf(Generation::from_u64(fields.generation));
    let notice = match app.durable.overrides.change(&name, change, who).await {
        Ok(_) => Notice::good(html! { "“" (name) "” was reset." }),
        Err(error) => refused(error, &name),
    };
    Ok(done(&app, &visitor, notice, "/breakers"))
}

/// A form without fields of its own.
#[derive(Debug, Deserialize)]
pub(crate) struct EmptyForm {}

pub(crate) async fn reset_all(
    State(app): State<Arc<App>>,
    who: Who,
    OwnForm { visitor, .. }: OwnForm<EmptyForm>,
) -> Redirect {
    let notice = match app.durable.overrides.reset_all(who).await {
        Ok(1) => Notice::good(html! { "1 breaker was reset." }),
        Ok(count) => Notice::good(html! { "All " (count) " breakers were reset." }),
        Err(error) => refused(error, ""),
    };
    done(&app, &visitor, notice, "/breakers")
}

#[derive(Debug, Deserialize)]
pub(crate) struct ForceForm {
    name: String,
    state: ForcedState,
}

pub(crate) async fn force(
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
        Ok(_) => Notice::good(html! { "“" (name) "” is now forced " (state) " until you reset it." }),
        Err(error) => refused(error, &name),
    };
    Ok(done(&app, &visitor, notice, "/breakers"))
}

fn refused(error: OverrideError, name: &str) -> Notice {
    match error {
        OverrideError::Unknown => Notice::warn(
            html! { "“" (name) "” no longer exists, so it counts as closed. Nothing was changed." },
        ),
        OverrideError::Moved(current) => {
            let current = to_wire(&current);
            Notice::moved(&current.id, label(current.state), Some(current.generation))
        }
        OverrideError::Full => {
            Notice::warn(html! { "The limit of tracked breakers is reached. Nothing was changed." })
        }
        OverrideError::Log(reason) => Notice::not_written(&reason_text(&reason)),
        OverrideError::Commit(_) | OverrideError::Closed => Notice::not_written(&error.to_string()),
    }
}

pub(crate) fn checked_name(name: String) -> Result<String, PageError> {
    match BreakerName::parse(name) {
        Ok(name) => Ok(name.as_str().to_owned()),
        Err(_) => {
            let detail = html! { p { "This isn't a valid breaker name. Nothing was changed." } };
            Err(PageError::new(ErrorCode::InvalidName, detail))
        }
    }
}
