//! How this daemon is set up.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::SettingList;

use crate::app::App;

/// Every setting that is in force, with where it comes from. Secrets are left out.
#[utoipa::path(
    get, path = "/v1/config", operation_id = "show_config", tag = "daemon",
    responses((status = 200, description = "The settings.", body = SettingList)),
)]
pub(crate) async fn show(State(app): State<Arc<App>>) -> Json<SettingList> {
    Json(app.settings.clone())
}
