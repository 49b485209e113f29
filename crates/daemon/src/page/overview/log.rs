//! The part of the front page about what outlives this daemon: the log, and earlier starts.

use std::time::Duration;

use maud::{Markup, html};
use protocol::{Boot, BootState, LogEngine, LogState};

use crate::app::App;
use crate::durable::sizes_to_wire;
use crate::http::health::log_state;
use crate::http::log_problem::reason_text;
use crate::page::parts::text::{badge, mebibytes};
use crate::page::parts::times::{readable, time};

/// How old the sizes may be. Measuring a large log takes a while, and the page asks every few seconds.
const MAX_AGE: Duration = Duration::from_secs(30);

const SHOWN_BOOTS: usize = 8;

/// The log: whether it accepts writes, and how large it is.
pub(crate) async fn log(app: &App) -> Markup {
    let sizes = app.durable.health.sizes(MAX_AGE).await;
    let engine = match app.durable.engine {
        LogEngine::Sqlite => "a file in the state directory",
        LogEngine::Postgres => "a PostgreSQL database",
    };
    html! {
        section class="card" aria-labelledby="log" {
            div class="card-heading" {
                h2 id="log" { "Log" }
                (state_badge(log_state(app)))
            }
            @if let Some(reason) = app.durable.health.refusal() {
                p {
                    "Changes that must be saved are refused: " (reason_text(&reason)) ". Everything else keeps working. Changes "
                    "are accepted again as soon as a write succeeds."
                }
            }
            dl class="facts" {
                dt { "Stored in" } dd { (engine) }
                @match sizes.as_ref().map(sizes_to_wire) {
                    Ok(sizes) => {
                        dt { "Size" } dd class="number" { (mebibytes(sizes.total_bytes)) }
                        dt { "Streams" } dd class="number" { (sizes.streams) }
                        dt { "Events" } dd class="number" { (sizes.events) }
                    }
                    Err(error) => { dt { "Size" } dd { "can't be read: " (reason_text(error)) } }
                }
            }
        }
    }
}

fn state_badge(state: LogState) -> Markup {
    badge(match state {
        LogState::Writable => ("badge good", "Writable"),
        LogState::Refusing => ("badge bad", "Refusing writes"),
    })
}

pub(crate) fn boots(app: &App) -> Markup {
    let boots = app.durable.boots.newest(SHOWN_BOOTS);
    html! {
        section class="card" aria-labelledby="boots" {
            h2 id="boots" { "Last starts" }
            dl class="facts" {
                @for boot in boots {
                    dt { (boot_badge(boot.state)) }
                    dd {
                        (time(&boot.started_at))
                        (ending(boot))
                    }
                }
            }
        }
    }
}

fn boot_badge(state: BootState) -> Markup {
    badge(match state {
        BootState::Running => ("badge good", "Running"),
        BootState::Stopped => ("badge", "Stopped"),
        BootState::Crashed => ("badge bad", "Crashed"),
    })
}

fn ending(boot: &Boot) -> Markup {
    html! {
        @match boot.state {
            BootState::Running => {}
            BootState::Stopped => {
                @if let Some(ended_at) = &boot.ended_at { small { " until " (readable(ended_at)) } }
                @if let Some(cause) = &boot.cause { small { " (" (cause) ")" } }
            }
            BootState::Crashed => small { " exited unexpectedly, process " (boot.pid) }
        }
    }
}
