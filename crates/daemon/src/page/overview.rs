//! The first page: what this daemon is, and whether anything needs a look.

use std::sync::Arc;
use std::time::Duration;

use api::{BreakerState, Status};
use axum::extract::State;
use maud::{Markup, html};

use super::breakers::{all, badge};
use super::context;
use super::context_indexes;
use super::jobs_card;
use super::layout::{Place, human_duration, live_part, page};
use super::log_card;
use super::plans_card;
use super::servers;
use super::sessions_card;
use super::sign_in::Visitor;
use crate::app::App;
use crate::http::health::current_status;

/// The uptime is shown to the second at first, and nobody watches it for long.
const REFRESH: Duration = Duration::from_secs(5);

/// How many breakers are named here; the page of breakers has them all.
const NAMED_BREAKERS: usize = 8;

pub(super) async fn show(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    page(&app, &visitor, Place::Overview, &live(&app).await)
}

pub(super) async fn show_live(State(app): State<Arc<App>>, _visitor: Visitor) -> Markup {
    live(&app).await
}

async fn live(app: &App) -> Markup {
    let status = current_status(app);
    let content = html! {
        div class="heading" {
            div {
                h1 { "Overview" }
                p { "One daemon on which your agents share this machine." }
            }
        }
        (tiles(&status))
        (sessions_card::show(app).await)
        (plans_card::show(app).await)
        (jobs_card::show(app).await)
        (context_indexes::card(&context::indexes(app)))
        (servers::card(&app.language_servers.list()))
        (attention(app))
        (log_card::log(app).await)
        section class="card" aria-labelledby="daemon" {
            h2 id="daemon" { "This daemon" }
            dl class="facts" {
                dt { "Address" } dd { code { (status.address) } }
                dt { "Socket" } dd { code { (status.socket) } }
                dt { "Process id" } dd class="number" { (status.pid) }
                dt { "Started" } dd { time datetime=(status.started_at) { (readable(&status.started_at)) } }
                dt { "Boot id" } dd { code { (status.boot_id) } }
            }
        }
        (log_card::boots(app))
    };
    live_part(app, REFRESH, &content)
}

fn tiles(status: &Status) -> Markup {
    let uptime = human_duration(Duration::from_millis(status.uptime_ms));
    let total = status.breakers.total;
    html! {
        dl class="tiles" {
            div class="tile" { dt { "Version" } dd { (status.version) } }
            div class="tile" { dt { "Running for" } dd { (uptime) } }
            @if let Some(bytes) = status.rss_bytes {
                div class="tile" { dt { "Memory" } dd { (format!("{:.1}", bytes as f64 / 1_048_576.0)) " MiB" } }
            }
            div class="tile" {
                dt { "Open breakers" }
                dd { (status.breakers.open) " " small { "of " (total) } }
            }
        }
    }
}

/// The breakers that are not simply closed, because they are why somebody looks here.
fn attention(app: &App) -> Markup {
    let breakers = all(app);
    let (total, noteworthy): (usize, Vec<_>) = (
        breakers.len(),
        breakers
            .into_iter()
            .filter(|breaker| breaker.state != BreakerState::Closed)
            .collect(),
    );
    html! {
        section class="card" aria-labelledby="attention" {
            div class="card-heading" {
                h2 id="attention" { "Circuit breakers" }
                a href="/breakers" data-key="breakers" { "See all" }
            }
            @if total == 0 {
                p { "None has been used yet. They appear as soon as an agent reports a call." }
            } @else if noteworthy.is_empty() {
                p { "All closed: nothing that agents depend on keeps failing." }
            } @else {
                dl class="facts" {
                    @for breaker in noteworthy.iter().take(NAMED_BREAKERS) {
                        dt { (badge(breaker)) } dd { (breaker.id) }
                    }
                }
                @if noteworthy.len() > NAMED_BREAKERS {
                    p class="more" { "and " (noteworthy.len() - NAMED_BREAKERS) " more" }
                }
            }
        }
    }
}

/// `2026-01-31T09:30:00Z` for people.
pub(super) fn readable(rfc3339: &str) -> String {
    rfc3339.replace('T', " ").replace('Z', " UTC")
}
