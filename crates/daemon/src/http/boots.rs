//! The lives of the daemons of this home.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::BootList;
use serde::Deserialize;

use super::problem::Problem;
use super::query::{Query, checked_limit};
use crate::app::App;

/// How many are listed, unless the caller says so.
const USUAL_LIMIT: u32 = 20;
/// How many are listed at most; the daemon has no more of them at hand.
const MOST: u32 = 100;

/// What may be asked of the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    limit: Option<u32>,
}

/// The last lives of the daemons of this home, newest first; the first one is the daemon that answers.
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
