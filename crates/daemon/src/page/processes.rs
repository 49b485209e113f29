//! The page of owned processes: what the daemon has started, for whom and why.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use maud::{Markup, html};
use protocol::{Confinement, Process, ProcessState};

use super::layout::{Place, human_duration, live_part, page};
use super::sign_in::Visitor;
use crate::app::App;
use crate::processes;

/// Memory and age move slowly.
const REFRESH: Duration = Duration::from_secs(3);

pub(super) async fn show(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    page(&app, &visitor, Place::Processes, &live(&app, &visitor).await)
}

pub(super) async fn show_live(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    live(&app, &visitor).await
}

async fn live(app: &App, visitor: &Visitor) -> Markup {
    let processes = processes::list(&app.processes).await;
    let summary = processes::summary(&app.processes);
    let content = html! {
        div class="heading" {
            div {
                h1 { "Processes" }
                p {
                    "Processes started by this daemon, and their child processes. They end when they are no longer needed, or when "
                    "the daemon exits for any reason."
                }
            }
        }
        @if summary.reclaimed > 0 {
            div class="notice" role="status" {
                p { (summary.reclaimed) " left over from an earlier daemon, ended when this one started." }
            }
        }
        @if summary.unreclaimed > 0 {
            div class="notice warn" role="status" {
                p { (summary.unreclaimed) " left over from an earlier daemon could not be ended; see the log for their ids." }
            }
        }
        @if processes.is_empty() { (empty()) } @else { (table(&processes)) }
    };
    live_part(app, visitor, REFRESH, &content)
}

fn empty() -> Markup {
    html! {
        div class="card empty" {
            h2 { "Nothing is running" }
            p { "A process appears here when the daemon starts one, for example a language server." }
            p { code { "tidelock ps" } }
        }
    }
}

fn table(processes: &[Process]) -> Markup {
    html! {
        div class="card table" {
            table {
                thead {
                    tr {
                        th scope="col" { "Owner" }
                        th scope="col" { "State" }
                        th scope="col" class="count" { "Process id" }
                        th scope="col" class="count" { "Running for" }
                        th scope="col" class="count" { "Memory" }
                        th scope="col" class="count" { "Restarts" }
                    }
                }
                tbody { @for process in processes { (row(process)) } }
            }
        }
    }
}

fn row(process: &Process) -> Markup {
    let pid = process.pid.map_or_else(|| "–".to_owned(), |pid| pid.to_string());
    let memory = format!("{:.1} MiB", process.rss_bytes as f64 / 1_048_576.0);
    html! {
        tr {
            th scope="row" {
                (process.owner)
                small { (process.reason) " · generation " (process.generation) }
                small { code { (process.argv.join(" ")) } }
            }
            td class="state" { (badge(process.state)) (confinement(process.confinement)) }
            td class="count" data-label="Process id" { (pid) }
            td class="count" data-label="Running for" { (human_duration(Duration::from_millis(process.age_ms))) }
            td class="count" data-label="Memory" { (memory) small { "in " (process.processes) } }
            td class="count" data-label="Restarts" { (process.restarts) }
        }
    }
}

fn badge(state: ProcessState) -> Markup {
    match state {
        ProcessState::Starting => html! { span class="badge warn" { "Starting" } },
        ProcessState::Running => html! { span class="badge good" { "Running" } },
        ProcessState::Stopping => html! { span class="badge warn" { "Stopping" } },
    }
}

fn confinement(confinement: Confinement) -> Markup {
    match confinement {
        Confinement::Full => html! { small { "confined" } },
        Confinement::Partial => html! { small { "partly confined" } },
        Confinement::None => html! {},
    }
}
