//! The processes that the daemon owns, and what started a process.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use process::Why;
use protocol::{ErrorCode, ProcessExplanation, ProcessList};

use super::problem::Problem;
use super::refusals::families;
use crate::app::App;
use crate::processes::{self, to_wire};

families! {
    FindProcess = [ProcessNotFound];
}

/// Lists all processes that the daemon owns.
#[utoipa::path(
    get, path = "/v1/processes", operation_id = "list_processes", tag = "processes",
    responses((status = 200, description = "The processes.", body = ProcessList)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<ProcessList> {
    let processes = processes::list(&app.processes).await;
    Json(ProcessList { processes })
}

/// Explains why a process is running. It can be an owned process, its keeper, or any descendant.
#[utoipa::path(
    get, path = "/v1/processes/{pid}", operation_id = "explain_process", tag = "processes",
    params(("pid" = u32, Path, description = "The process id.")),
    responses((status = 200, description = "Whose it is.", body = ProcessExplanation), FindProcess),
)]
pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    Path(pid): Path<String>,
) -> Result<Json<ProcessExplanation>, Problem> {
    let not_found = |detail: String| Problem::new(ErrorCode::ProcessNotFound, detail);
    let Ok(pid) = pid.parse::<u32>() else {
        let shown = pid.escape_debug();
        return Err(not_found(format!("`{shown}` is not a process id.")));
    };
    let processes = app.processes.clone();
    let why = tokio::task::spawn_blocking(move || processes.why(pid))
        .await
        .map_err(Problem::internal)?;
    match why {
        Why::Owned { process, role, line } => Ok(Json(ProcessExplanation {
            pid,
            role,
            line,
            process: to_wire(*process),
        })),
        Why::NotOurs { name } => {
            let name = name.escape_debug();
            Err(not_found(format!(
                "The process {pid} (`{name}`) was not started by this daemon."
            )))
        }
        Why::NoSuchProcess => Err(not_found(format!("There is no process {pid}."))),
    }
}
