//! The processes page: what the daemon has started, for whom and why.

use std::sync::Arc;
use std::time::Duration;

use maud::{Markup, html};
use protocol::{Confinement, Process, ProcessState};

use crate::app::App;
use crate::page::login::Visitor;
use crate::page::parts::error::PageError;
use crate::page::parts::layout::{Live, Refresh};
use crate::page::parts::list::Column::{Count, Text};
use crate::page::parts::list::{count, empty, table_card};
use crate::page::parts::text::{self, mebibytes, or_dash};
use crate::page::parts::times::human_duration;
use crate::processes;

pub(crate) async fn read(app: Arc<App>, _: Visitor, _: ()) -> Result<Live, PageError> {
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
        @if processes.is_empty() {
            (empty(
                "Nothing is running",
                "A process appears here when the daemon starts one, for example a language server.",
                "tidelock ps",
            ))
        } @else {
            (table_card(
                &[Text("Owner"), Text("State"), Count("Process id"), Count("Running for"), Count("Memory"), Count("Restarts")],
                processes.iter().map(row),
            ))
        }
    };
    Ok(Live::new("Processes", Refresh::Counters, content))
}

fn row(process: &Process) -> Markup {
    let age = human_duration(Duration::from_millis(process.age_ms));
    let memory = html! { (mebibytes(process.rss_bytes)) small { "in " (process.processes) } };
    html! {
        tr {
            th scope="row" {
                (process.owner)
                small { (process.reason) " · generation " (process.generation) }
                small { code { (process.argv.join(" ")) } }
            }
            td class="state" { (badge(process.state)) (confinement(process.confinement)) }
            (count("Process id", or_dash(process.pid.map(|pid| pid.to_string()))))
            (count("Running for", age))
            (count("Memory", memory))
            (count("Restarts", process.restarts))
        }
    }
}

fn badge(state: ProcessState) -> Markup {
    text::badge(match state {
        ProcessState::Starting => ("badge warn", "Starting"),
        ProcessState::Running => ("badge good", "Running"),
        ProcessState::Stopping => ("badge warn", "Stopping"),
    })
}

fn confinement(confinement: Confinement) -> Markup {
    match confinement {
        Confinement::Full => html! { small { "confined" } },
        Confinement::Partial => html! { small { "partly confined" } },
        Confinement::None => html! {},
    }
}
