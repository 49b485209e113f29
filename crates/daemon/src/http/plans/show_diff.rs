//! What a plan changes, as JSON or as a patch.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use protocol::PlanDiff;
use serde::Deserialize;

use super::problems::plan_problem;
use super::{ThePlan, changeset_id};
use crate::app::App;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::plans::{Shown, diff as diff_of, patch};

/// The media type of a patch.
const PATCH: &str = "text/x-diff";

/// What may be asked of a difference.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffParameters {
    changeset: Option<String>,
    format: Option<Format>,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Format {
    Json,
    Patch,
}

/// What a plan changes altogether, or what one changeset of it did.
///
/// It is JSON, or with `format=patch` or `Accept: text/x-diff` a patch that `git apply` takes, binary files included. Very
/// long differences are cut in JSON, which says so; the patch is whole.
#[utoipa::path(
    get, path = "/v1/plans/{id}/diff", operation_id = "diff_plan", tag = "plans",
    params(
        ("id" = String, Path, description = "The id of the plan."),
        ("changeset" = Option<String>, Query, description = "Only what this changeset did."),
        ("format" = Option<String>, Query, description = "`json` or `patch`; as `Accept` says if it is left out."),
    ),
    responses(
        (status = 200, description = "The difference.", content(
            (PlanDiff = "application/json"),
            (String = "text/x-diff"),
        )),
        (status = 400, description = "`invalid_query`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 404, description = "`plan_not_found` or `changeset_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn diff(
    State(app): State<Arc<App>>,
    ThePlan(plan): ThePlan,
    Query(parameters): Query<DiffParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let shown = Shown {
        plan,
        changeset: parameters.changeset.as_deref().map(changeset_id).transpose()?,
    };
    let format = parameters.format.unwrap_or_else(|| accepted(&headers));
    let answer = match format {
        Format::Json => diff_of(&app.plans, shown)
            .await
            .map(|diff| Json(diff).into_response()),
        Format::Patch => patch(&app.plans, shown)
            .await
            .map(|patch| ([(CONTENT_TYPE, PATCH)], patch).into_response()),
    };
    match answer {
        Ok(answer) => Ok(answer),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
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
