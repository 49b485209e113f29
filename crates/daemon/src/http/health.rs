//! The daemon itself: its health and readiness, its activity and resource use, its clients, and how to stop it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use kernel::{Cause, CircuitState};
use protocol::{
    BreakerSummary, ClientList, ErrorCode, Health, HealthStatus, LogState, NeedList, PageLink, Readiness,
    ReadinessStatus, SettingList, ShutdownAccepted, Status,
};

use super::log_problem::refusing;
use super::problem::Problem;
use super::refusals::families;
use crate::access::CODE_LIFETIME;
use crate::app::{App, whole_ms};
use crate::durable::machine_to_wire;
use crate::jobs::wire::counts_to_wire;
use crate::life::Phase;
use crate::{plans, processes, system, times};

families! {
    Ready = [NotReady, LogRefusing];
}

/// Checks whether the process is alive.
#[utoipa::path(
    get, path = "/healthz", operation_id = "health", tag = "daemon", security(()),
    responses((status = 200, description = "It is alive.", body = Health)),
)]
pub(crate) async fn health() -> Json<Health> {
    Json(Health {
        status: HealthStatus::Ok,
    })
}

/// Checks whether the daemon accepts work.
#[utoipa::path(
    get, path = "/readyz", operation_id = "readiness", tag = "daemon", security(()),
    responses((status = 200, description = "It takes work.", body = Readiness), Ready),
)]
pub(crate) async fn readiness(State(app): State<Arc<App>>) -> Result<Json<Readiness>, Problem> {
    let detail = match &*app.life.phase() {
        Phase::Ready => {
            return match app.durable.health.refusal_now().await {
                None => Ok(Json(Readiness {
                    status: ReadinessStatus::Ready,
                })),
                Some(reason) => Err(refusing(&reason)),
            };
        }
        Phase::Starting => "The daemon is starting.".to_owned(),
        Phase::Draining { cause } => format!("The daemon is shutting down ({cause})."),
        Phase::Stopped => "The daemon has shut down.".to_owned(),
    };
    Err(Problem::new(ErrorCode::NotReady, detail))
}

/// Returns the status of the daemon.
#[utoipa::path(
    get, path = "/v1/status", operation_id = "status", tag = "daemon",
    responses((status = 200, description = "The state of the daemon.", body = Status)),
)]
pub(crate) async fn status(State(app): State<Arc<App>>) -> Json<Status> {
    Json(current_status(&app))
}

/// The state of the daemon, for the API and the page.
pub(crate) fn current_status(app: &App) -> Status {
    let circuits = app.breakers.snapshot().circuits;
    let open = circuits
        .iter()
        .filter(|circuit| {
            matches!(
                circuit.state,
                CircuitState::Open { .. } | CircuitState::ForcedOpen
            )
        })
        .count();
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        boot_id: app.boot_id.to_string(),
        pid: std::process::id(),
        started_at: times::rfc3339(app.started_at),
        uptime_ms: whole_ms(app.uptime()),
        phase: (&*app.life.phase()).into(),
        address: app.address.to_string(),
        socket: app.socket.display().to_string(),
        machine: Some(machine_to_wire(app.durable.machines.own())),
        other_machines: app.durable.machines.others().map(machine_to_wire).collect(),
        breakers: BreakerSummary {
            total: circuits.len() as u64,
            open: open as u64,
        },
        log: Some(log_state(app)),
        last_crash: app.durable.boots.last_crash().cloned(),
        processes: Some(processes::summary(&app.processes)),
        jobs: Some(counts_to_wire(&app.jobs.counts())),
        plans: Some(app.plans.counts()),
        recovering: plans::wire::recovering_to_wire(&app.plans),
        sessions: Some(app.sessions.counts()),
        context: Some(app.contexts.counts()),
        rss_bytes: system::resident_bytes(),
    }
}

/// Whether the log accepts writes, for the API and the page.
pub(crate) fn log_state(app: &App) -> LogState {
    match app.durable.health.refusal() {
        None => LogState::Writable,
        Some(_) => LogState::Refusing,
    }
}

/// Stops the daemon: it finishes work in flight and exits.
#[utoipa::path(
    post, path = "/v1/shutdown", operation_id = "shutdown", tag = "daemon",
    responses((status = 202, description = "It has begun to drain.", body = ShutdownAccepted)),
)]
pub(crate) async fn shutdown(State(app): State<Arc<App>>) -> (StatusCode, Json<ShutdownAccepted>) {
    app.life
        .stop(Cause::new("POST /v1/shutdown", "a client asked for it"));
    let accepted = ShutdownAccepted {
        boot_id: app.boot_id.to_string(),
    };
    (StatusCode::ACCEPTED, Json(accepted))
}

/// Creates a link that signs a browser in to the page. The link works once.
#[utoipa::path(
    post, path = "/v1/page-links", operation_id = "make_page_link", tag = "page",
    responses((status = 201, description = "A link that works once.", body = PageLink)),
)]
pub(crate) async fn make_page_link(
    State(app): State<Arc<App>>,
) -> Result<(StatusCode, Json<PageLink>), Problem> {
    let code = app.logins.make_code(app.clock.now()).map_err(Problem::internal)?;
    let link = PageLink {
        url: format!("{}/open?code={}", app.hosts.page_origin(), code.reveal()),
        expires_in_ms: whole_ms(CODE_LIFETIME),
    };
    Ok((StatusCode::CREATED, Json(link)))
}

/// Lists the clients connected over the Model Context Protocol, newest first.
#[utoipa::path(
    get, path = "/v1/clients", operation_id = "list_clients", tag = "daemon",
    responses((status = 200, description = "The clients.", body = ClientList)),
)]
pub(crate) async fn clients(State(app): State<Arc<App>>) -> Json<ClientList> {
    Json(ClientList {
        clients: app.mcp.clients.list(),
    })
}

/// Lists all settings in force and the source of each value. Secrets are omitted.
#[utoipa::path(
    get, path = "/v1/config", operation_id = "show_config", tag = "daemon",
    responses((status = 200, description = "The settings.", body = SettingList)),
)]
pub(crate) async fn config(State(app): State<Arc<App>>) -> Json<SettingList> {
    Json(app.settings.clone())
}

/// Lists what needs a person's attention, most urgent first: permission requests, plans to review, and
/// failures.
///
/// The list is computed for each request. To find out when it changes, follow `/v1/activity/events` and
/// request it again.
#[utoipa::path(
    get, path = "/v1/needs", operation_id = "list_needs", tag = "daemon",
    responses((status = 200, description = "What waits.", body = NeedList)),
)]
pub(crate) async fn needs(State(app): State<Arc<App>>) -> Json<NeedList> {
    Json(crate::needs::read(&app).await.to_wire())
}
