//! The boots of the daemons of this home.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::BootList;
use serde::Deserialize;

use super::problem::Problem;
use super::query::{Query, checked_limit};
use crate::app::App;

/// How many boots are listed by default.
const USUAL_LIMIT: u32 = 20;
/// How many boots can be listed; the daemon keeps no more in memory.
const MOST: u32 = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    limit: Option<u32>,
}

/// Lists the latest runs of this home's daemons, newest first. The first one is the daemon that responds.
#[utoipa::path(
    get, path = "/v1/boots", operation_id = "list_boots", tag = "daemon",
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "How many at most; 20 if it is left out."),
    ),
    responses((status = 200, description = "The lives.", body = BootList)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(parameters): Query<Parameters>,
) -> Result<Json<BootList>, Problem> {
    let limit = checked_limit(parameters.limit, USUAL_LIMIT, MOST)?;
    let boots = app.durable.boots.newest(limit as usize).to_vec();
    Ok(Json(BootList { boots }))
}
