//! What can be read whole: the overview, the diff of a plan, the output of a job.

use protocol::{JobList, PlanList};
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use super::bounds::{Excerpt, RESOURCE_LIMIT_BYTES};
use super::current::segment;
use super::inside::{Inside, Refused};
use super::overview::overview;
use crate::app::App;

const OVERVIEW: &str = "tidelock://overview";
const PATCH: &str = "text/x-diff";
const PLAIN: &str = "text/plain";
const MARKDOWN: &str = "text/markdown";
/// How many plans and jobs are listed. Others are reached by their id.
const LISTED: usize = 20;

/// What there is, the newest first.
pub(super) async fn list(inside: &Inside, actor: &str) -> Result<Vec<Resource>, ErrorData> {
    let plans: PlanList = inside
        .get(actor, &format!("/v1/plans?state=open,sealed&limit={LISTED}"))
        .await
        .map_err(refused)?;
    let jobs: JobList = inside
        .get(actor, &format!("/v1/jobs?limit={LISTED}"))
        .await
        .map_err(refused)?;
    let mut found = vec![
        Resource::new(OVERVIEW, "overview")
            .with_description("What runs now, open plans, overlaps, and what waits for a person.")
            .with_mime_type(MARKDOWN),
    ];
    found.extend(plans.plans.iter().map(|plan| {
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
        .with_description(format!("What was written by: {}", job.title))
        .with_mime_type(PLAIN)
    }));
    Ok(found)
}

/// What can be read by its id.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("tidelock://plans/{id}/diff", "diff of a plan")
            .with_description("Everything that a plan changes, as a patch that `git apply` takes.")
            .with_mime_type(PATCH),
        ResourceTemplate::new("tidelock://jobs/{id}/logs", "output of a job")
            .with_description("Everything that a job has written.")
            .with_mime_type(PLAIN),
    ]
}

/// Reads one.
pub(super) async fn read(
    app: &App,
    inside: &Inside,
    actor: &str,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    if uri == OVERVIEW {
        let text = overview(app, inside, actor).await.map_err(refused)?;
        return Ok(one(uri, MARKDOWN, text));
    }
    let id = |prefix: &str, suffix: &str| {
        let id = uri.strip_prefix(prefix)?.strip_suffix(suffix)?;
        segment(id).ok()
    };
    let (path, media_type) = if let Some(plan) = id("tidelock://plans/", "/diff") {
        (format!("/v1/plans/{plan}/diff?format=patch"), PATCH)
    } else if let Some(job) = id("tidelock://jobs/", "/logs") {
        (format!("/v1/jobs/{job}/output"), PLAIN)
    } else {
        let why = format!("there is no resource `{uri}`; see resources/list and resources/templates/list");
        return Err(ErrorData::resource_not_found(why, None));
    };
    let excerpt = Excerpt::new(RESOURCE_LIMIT_BYTES);
    let excerpt = inside.excerpt(actor, &path, excerpt).await.map_err(refused)?;
    let text = excerpt.text("too large for a resource; use the command line to read all of it");
    Ok(one(uri, media_type, text))
}

fn one(uri: &str, media_type: &str, text: String) -> ReadResourceResult {
    ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(media_type)])
}

/// A refusal as an error of the protocol.
fn refused(refused: Refused) -> ErrorData {
    match refused {
        Refused::Problem(problem) if problem.status == 404 => {
            ErrorData::resource_not_found(format!("{} ({})", problem.detail, problem.code.as_str()), None)
        }
        other => ErrorData::internal_error(other.to_string(), None),
    }
}
