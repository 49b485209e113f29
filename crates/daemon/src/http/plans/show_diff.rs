//! The changes of a plan, as JSON or as a patch.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use protocol::{PlanDiff, PlanId};
use serde::Deserialize;

use super::problems;
use crate::app::App;
use crate::http::ids::{Id, id_of};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::plans::acts;

const PATCH: &str = "text/x-diff";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffParameters {
    changeset: Option<String>,
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Format {
    Json,
    Patch,
}

/// Returns all changes of a plan, or the changes of one changeset.
///
/// The response is JSON or, with `format=patch` or `Accept: text/x-diff`, a patch for `git apply` that
/// includes binary files. Very long diffs are cut in JSON, which is marked there; the patch is always
/// complete.
#[utoipa::path(
    get, path = "/v1/plans/{id}/diff", operation_id = "diff_plan", tag = "plans",
    params(
        ("changeset" = Option<String>, Query, description = "Only what this changeset did."),
        ("format" = Option<String>, Query, description = "`json` or `patch`; as `Accept` says if it is left out."),
    ),
    responses(
        (status = 200, description = "The difference.",
         content((PlanDiff = "application/json"), (String = "text/x-diff"))),
        problems::ReadChangeset,
    ),
)]
pub(crate) async fn diff(
    State(app): State<Arc<App>>,
    Id(plan): Id<PlanId>,
    Query(parameters): Query<DiffParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let changeset = parameters.changeset.as_deref().map(id_of).transpose()?;
    Ok(match parameters.format.unwrap_or_else(|| accepted(&headers)) {
        Format::Json => Json(acts::diff(&app, plan, changeset).await?).into_response(),
        Format::Patch => ([(CONTENT_TYPE, PATCH)], acts::patch(&app, plan, changeset).await?).into_response(),
    })
}

fn accepted(headers: &HeaderMap) -> Format {
    let ranges = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|accept| accept.to_str().ok())
        .flat_map(|accept| accept.split(','));
    let mut essences = ranges.map(|range| range.split(';').next().unwrap_or_default().trim());
    match essences.any(|essence| essence.eq_ignore_ascii_case(PATCH)) {
        true => Format::Patch,
        false => Format::Json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_for_those_who_ask_for_one() {
        for (accept, expected) in [
            (None, Format::Json),
            (Some("*/*"), Format::Json),
            (Some("application/json"), Format::Json),
            (Some("text/x-diff"), Format::Patch),
            (Some("text/html;q=0.5, Text/X-Diff ;q=1"), Format::Patch),
            (Some("text/x-different"), Format::Json),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, accept.parse().unwrap());
            }
            assert_eq!(accepted(&headers), expected, "{accept:?}");
        }
    }
}
