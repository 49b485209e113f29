//! Resources: the overview, the diff of a plan, the output of a job.

use ::jobs::ListQuery;
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use sessions::tools::Excerpt;

use super::error::ToolError;
use super::overview::{overview, unfinished_plans};
use super::waiting::output_excerpt;
use super::working_plan::id;
use crate::app::App;
use crate::http::Problem;
use crate::jobs::acts as jobs;
use crate::plans::acts as plans;

const OVERVIEW: &str = "tidelock://overview";
const PATCH: &str = "text/x-diff";
const PLAIN: &str = "text/plain";
const MARKDOWN: &str = "text/markdown";
/// How many plans and jobs to list. Others are reached by their id.
const LISTED: u32 = 20;
/// The largest resource. A resource is meant to be complete; larger ones must be read in another way.
const RESOURCE_LIMIT_BYTES: usize = 4 * 1024 * 1024;
/// Where to find the rest of a larger one.
const REST: &str = "too large for a resource; use the command line to read all of it";

/// The overview, and the newest plans and jobs.
pub(super) async fn list(app: &App) -> Result<Vec<Resource>, ErrorData> {
    let plans = unfinished_plans(app, LISTED).await.map_err(refused)?;
    let query = ListQuery {
        state: None,
        before: None,
        limit: LISTED,
    };
    let jobs = jobs::list(app, query).await.map_err(refused)?;
    let mut found = vec![
        Resource::new(OVERVIEW, "overview")
            .with_description("What is running, open plans, overlaps, and what waits for a person.")
            .with_mime_type(MARKDOWN),
    ];
    found.extend(plans.iter().map(|plan| {
        Resource::new(
            format!("tidelock://plans/{}/diff", plan.id),
            format!("diff of {}", plan.id),
        )
        .with_description(format!("What {} changes: {}", plan.opened_by, plan.title))
        .with_mime_type(PATCH)
    }));
    found.extend(jobs.jobs.iter().map(|job| {
        Resource::new(
            format!("tidelock://jobs/{}/logs", job.id),
            format!("output of {}", job.id),
        )
        .with_description(format!("Output of: {}", job.title))
        .with_mime_type(PLAIN)
    }));
    Ok(found)
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("tidelock://plans/{id}/diff", "diff of a plan")
            .with_description("Everything that a plan changes, as a patch that `git apply` takes.")
            .with_mime_type(PATCH),
        ResourceTemplate::new("tidelock://jobs/{id}/logs", "output of a job")
            .with_description("The whole output of a job.")
            .with_mime_type(PLAIN),
    ]
}

pub(super) async fn read(app: &App, actor: &str, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let named = |prefix: &str, suffix: &str| uri.strip_prefix(prefix)?.strip_suffix(suffix);
    if uri == OVERVIEW {
        let text = overview(app, actor).await.map_err(refused)?;
        return Ok(one(uri, MARKDOWN, text));
    }
    if let Some(plan) = named("tidelock://plans/", "/diff") {
        let plan = id("plan", plan).map_err(not_found)?;
        let mut patch = Excerpt::new(RESOURCE_LIMIT_BYTES);
        patch.add(&plans::patch(app, plan, None).await.map_err(refused)?);
        return Ok(one(uri, PATCH, patch.text(REST)));
    }
    if let Some(job) = named("tidelock://jobs/", "/logs") {
        let job = id("job", job).map_err(not_found)?;
        let output = output_excerpt(app, job, RESOURCE_LIMIT_BYTES)
            .await
            .map_err(refused)?;
        return Ok(one(uri, PLAIN, output.text(REST)));
    }
    let why = format!("there is no resource `{uri}`; see resources/list and resources/templates/list");
    Err(ErrorData::resource_not_found(why, None))
}

fn one(uri: &str, media_type: &str, text: String) -> ReadResourceResult {
    ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(media_type)])
}

fn not_found(error: ToolError) -> ErrorData {
    ErrorData::resource_not_found(error.to_string(), None)
}

fn refused(problem: Problem) -> ErrorData {
    let text = format!("{} ({})", problem.detail(), problem.code().as_str());
    match problem.code().status() {
        404 => ErrorData::resource_not_found(text, None),
        _ => ErrorData::internal_error(text, None),
    }
}
