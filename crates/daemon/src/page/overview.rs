//! The first page: what needs a person, what runs now, and below that what this daemon is.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use maud::{Markup, html};
use protocol::{ServerState, Status};

use super::ansi::one_line;
use super::layout::{Place, human_duration, live_part, page};
use super::log_card;
use super::needs_card;
use super::running::{self, Running};
use super::sign_in::Visitor;
use crate::app::App;
use crate::http::health::current_status;

/// A stream says when something has changed; this is for ages.
const REFRESH: Duration = Duration::from_secs(5);
/// A run time counts up before the eyes of whoever watches.
const REFRESH_WHILE_MOVING: Duration = Duration::from_secs(1);

pub(super) async fn show(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    page(&app, &visitor, Place::Overview, &live(&app, &visitor).await)
}

pub(super) async fn show_live(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    live(&app, &visitor).await
}

async fn live(app: &App, visitor: &Visitor) -> Markup {
    let (running, log) = tokio::join!(running::read(app), log_card::log(app));
    let status = current_status(app);
    let tiles = Tiles::read(app, &status);
    let content = html! {
        div class="heading" data-part="heading" {
            div {
                h1 { "Overview" }
                p { "The daemon your agents share on this machine." }
            }
        }
        div data-part="needs" { (needs_card::card(visitor)) }
        div data-part="running" { (running::card(&running)) }
        div data-part="first" { @if is_new(&tiles, visitor, &running) { (first_steps()) } }
        (tiles.show())
        div data-part="log" { (log) }
        section class="card" aria-labelledby="daemon" data-part="daemon" {
            h2 id="daemon" { "This daemon" }
            dl class="facts" {
                @if let Some(machine) = &status.machine && !status.other_machines.is_empty() {
                    dt { "Machine" } dd { (one_line(&machine.name)) }
                }
                dt { "Version" } dd { (status.version) }
                dt { "Address" } dd { code { (status.address) } }
                dt { "Socket" } dd { code { (status.socket) } }
                dt { "Process id" } dd class="number" { (status.pid) }
                dt { "Started" } dd { time datetime=(status.started_at) { (readable(&status.started_at)) } }
                dt { "Boot id" } dd { code { (status.boot_id) } }
            }
        }
        div data-part="boots" { (log_card::boots(app)) }
    };
    let refresh = if running.is_moving() {
        REFRESH_WHILE_MOVING
    } else {
        REFRESH
    };
    live_part(app, visitor, refresh, &content)
}

/// The numbers, each a way to the page that has the rest. All of them are in memory.
struct Tiles {
    /// Title, where it leads, the number, and what it is of.
    links: [(&'static str, &'static str, String, String); 5],
    uptime: String,
    memory: Option<String>,
    is_unused: bool,
}

impl Tiles {
    fn read(app: &App, status: &Status) -> Self {
        let sessions = app.conversations.counts();
        let plans = app.plans.counts();
        let jobs = app.jobs.counts();
        let servers = app.language_servers.states();
        let ready = servers
            .iter()
            .filter(|server| server.state == ServerState::Ready)
            .count();
        let ended = jobs.succeeded + jobs.failed + jobs.cancelled;
        let of = |number: u64, word: &str| format!("{number} {word}");
        Self {
            links: [
                (
                    "Turns",
                    "/sessions",
                    sessions.running.to_string(),
                    of(sessions.waiting, "waiting"),
                ),
                (
                    "Open plans",
                    "/plans",
                    plans.open.to_string(),
                    of(plans.sealed, "sealed"),
                ),
                (
                    "Running jobs",
                    "/jobs",
                    jobs.running.to_string(),
                    of(jobs.queued, "queued"),
                ),
                (
                    "Ready servers",
                    "/servers",
                    ready.to_string(),
                    of(servers.len() as u64, "used"),
                ),
                (
                    "Open breakers",
                    "/breakers",
                    status.breakers.open.to_string(),
                    format!("of {}", status.breakers.total),
                ),
            ],
            uptime: human_duration(Duration::from_millis(status.uptime_ms)),
            memory: status
                .rss_bytes
                .map(|bytes| format!("{:.1} MiB", bytes as f64 / 1_048_576.0)),
            is_unused: plans.open + plans.sealed + ended == 0 && servers.is_empty(),
        }
    }

    fn show(&self) -> Markup {
        html! {
            dl class="tiles" data-part="tiles" {
                @for (title, href, number, more) in &self.links {
                    div class="tile" {
                        dt { a href=(href) data-key={ "tile " (title) } { (title) } }
                        dd { (number) " " small { (more) } }
                    }
                }
                div class="tile" { dt { "Running for" } dd { (self.uptime) } }
                @if let Some(memory) = &self.memory { div class="tile" { dt { "Memory" } dd { (memory) } } }
            }
        }
    }
}

fn is_new(tiles: &Tiles, visitor: &Visitor, running: &Running) -> bool {
    tiles.is_unused && visitor.needs.list.is_empty() && running.is_empty()
}

/// What to type, for somebody who has just come.
fn first_steps() -> Markup {
    html! {
        section class="card" aria-labelledby="first" {
            h2 id="first" { "Get started" }
            dl class="facts" {
                dt { code { "tidelock run \"…\"" } }
                dd { "asks an agent to do something in its own sandbox" }
                dt { code { "tidelock exec -- claude" } }
                dd { "runs any command in a sandbox; you review its changes before you apply them" }
                dt { code { "tidelock join claude" } }
                dd { "connects an agent that you already use" }
                dt { code { "tidelock job run -- cargo test" } }
                dd { "runs a command that keeps running when you disconnect" }
                dt { code { "tidelock lsp hover FILE:LINE:COL" } }
                dd { "queries a warm language server" }
            }
        }
    }
}

/// `2026-01-31T09:30:00Z` for people.
pub(super) fn readable(rfc3339: &str) -> String {
    rfc3339.replace('T', " ").replace('Z', " UTC")
}
