//! The front page: what needs a person, what is running now, and facts about this daemon.

use std::sync::Arc;
use std::time::Duration;

use maud::{Markup, html};
use protocol::{ServerState, Status};

use super::running::{self, Running};
use super::{log, needs};
use crate::app::App;
use crate::http::health::current_status;
use crate::page::login::Visitor;
use crate::page::parts::ansi::one_line;
use crate::page::parts::error::PageError;
use crate::page::parts::layout::{Live, Refresh};
use crate::page::parts::list::heading;
use crate::page::parts::text::mebibytes;
use crate::page::parts::times::{human_duration, time};

pub(crate) async fn read(app: Arc<App>, visitor: Visitor, _: ()) -> Result<Live, PageError> {
    let (running, log) = tokio::join!(running::read(&app), log::log(&app));
    let status = current_status(&app);
    let tiles = Tiles::read(&app, &status);
    let content = html! {
        (heading("Overview", "The daemon your agents share on this machine."))
        div data-part="needs" { (needs::card(&visitor)) }
        div data-part="running" { (running::card(&running)) }
        div data-part="first" { @if is_new(&tiles, &visitor, &running) { (first_steps()) } }
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
                dt { "Started" } dd { (time(&status.started_at)) }
                dt { "Boot id" } dd { code { (status.boot_id) } }
            }
        }
        div data-part="boots" { (log::boots(&app)) }
    };
    let refresh = Refresh::while_moving(running.is_moving());
    Ok(Live::new("Overview", refresh, content))
}

/// The numbers, each with a link to the page behind it. All of them are in memory.
struct Tiles {
    /// Title, link, number, and unit.
    links: [(&'static str, &'static str, String, String); 5],
    uptime: String,
    memory: Option<String>,
    is_unused: bool,
}

impl Tiles {
    fn read(app: &App, status: &Status) -> Self {
        let sessions = app.sessions.counts();
        let plans = app.plans.counts();
        let jobs = app.jobs.counts();
        let servers = app.language_servers.states();
        let ready = servers
            .iter()
            .filter(|server| server.state == ServerState::Ready)
            .count();
        let ended = jobs.succeeded + jobs.failed + jobs.cancelled;
        let of = |number: u64, word: &str| format!("{number} {word}");
        let tile = |title, href, number: u64, more| (title, href, number.to_string(), more);
        Self {
            links: [
                tile(
                    "Turns",
                    "/sessions",
                    sessions.running,
                    of(sessions.waiting, "waiting"),
                ),
                tile("Open plans", "/plans", plans.open, of(plans.sealed, "sealed")),
                tile("Running jobs", "/jobs", jobs.running, of(jobs.queued, "queued")),
                tile(
                    "Ready servers",
                    "/servers",
                    ready as u64,
                    of(servers.len() as u64, "used"),
                ),
                tile(
                    "Open breakers",
                    "/breakers",
                    status.breakers.open,
                    format!("of {}", status.breakers.total),
                ),
            ],
            uptime: human_duration(Duration::from_millis(status.uptime_ms)),
            memory: status.rss_bytes.map(mebibytes),
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
