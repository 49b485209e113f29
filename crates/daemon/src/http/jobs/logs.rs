//! The output of a job: live, or later.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use eventlog::Sequence;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use jobs::FollowEnd;
use protocol::{JobChannel, JobId};
use serde::Deserialize;

use super::output::{FollowedOutput, OutputForm};
use super::problems::{self, not_found};

use crate::app::App;
use crate::http::events::{bookmark, last_event_id, wants_stream};
use crate::http::ids::Id;
use crate::http::pieces::body_of;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::sse::{OpenStream, stream_of, take_place};
use crate::jobs::acts;

/// The media type of newline-delimited JSON.
const LINES: &str = "application/x-ndjson";
/// The media type of arbitrary bytes.
const BYTES: &str = "application/octet-stream";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogParameters {
    after: Option<String>,
    follow: Option<bool>,
    channel: Option<JobChannel>,
}

/// Returns the output of a job: one JSON object per line, or a stream that continues until the job has ended.
///
/// Without `follow`, each line is a `JobOutput`, or `{"resync": {"after": N}}` where output has expired.
///
/// With `follow`, the response is a stream of server-sent events: `output` with a `JobOutput`, `progress`
/// with a `JobProgress`, `waiting` with a `JobWaiting` if the job can't run yet, `resync` where output was
/// dropped, and finally `end` with the complete `Job`. After a `resync`, discard everything after its
/// position: a database server that crashed had returned it and then lost it. The id of an event is its
/// position and when it was written. Reconnect with `Last-Event-ID` to continue without missing or repeating
/// events. A stream that ends without `end` ended because the daemon stopped. With `channel`, there are no
/// `progress` events.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/logs", operation_id = "read_job_logs", tag = "jobs",
    params(
        ("after" = Option<String>, Query,
         description = "Only what came after this place, a number or the id of an event; from the start if it is left out."),
        ("follow" = Option<bool>, Query,
         description = "Go on until the job has ended; if it is left out, so with `Accept: text/event-stream`."),
        ("channel" = Option<JobChannel>, Query, description = "Only what came this way."),
        ("Last-Event-ID" = Option<String>, Header, description = "With `follow`: goes before `after`."),
    ),
    responses(
        (status = 200, description = "The output.",
         content((String = "application/x-ndjson"), (String = "text/event-stream"))),
        problems::Read,
        OpenStream,
    ),
)]
pub(crate) async fn logs(
    State(app): State<Arc<App>>,
    Id(id): Id<JobId>,
    Query(parameters): Query<LogParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let channel = parameters.channel;
    let after = parameters
        .after
        .map(|after| bookmark("after", &after))
        .transpose()?;
    let after = after.unwrap_or_default();
    if parameters.follow.unwrap_or_else(|| wants_stream(&headers)) {
        let after = last_event_id(&headers)?.unwrap_or(after);
        let mut tail = app.jobs.follow(id, after, &app.life.scope());
        match tail.begin().await {
            // A stream that ends at once makes the reader reconnect to the next daemon.
            Ok(()) | Err(FollowEnd::Cancelled(_)) => {}
            Err(FollowEnd::NotFound) => return Err(not_found(id)),
            Err(FollowEnd::Log(error)) => return Err(Problem::from(error)),
        }
        let place = take_place(&app)?;
        return Ok(stream_of(place, FollowedOutput::new(app, id, tail, channel)));
    }
    let form = match channel {
        None => OutputForm::Lines(JobChannel::ALL.to_vec()),
        Some(channel) => OutputForm::Lines(vec![channel]),
    };
    let output = acts::output(&app, id, after.sequence, form).await?;
    Ok(([(CONTENT_TYPE, LINES)], body_of(output)).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputParameters {
    channel: Option<JobChannel>,
}

/// Returns the raw output of the command so far, byte for byte, as far as it was kept.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/output", operation_id = "read_job_output", tag = "jobs",
    params(
        ("channel" = Option<JobChannel>, Query,
         description = "Only what came this way; standard output and standard error as they came if it is left out."),
    ),
    responses((status = 200, description = "The bytes.", content_type = "application/octet-stream"), problems::Read),
)]
pub(crate) async fn output(
    State(app): State<Arc<App>>,
    Id(id): Id<JobId>,
    Query(parameters): Query<OutputParameters>,
) -> Result<Response, Problem> {
    let form = match parameters.channel {
        None => OutputForm::Bytes(vec![JobChannel::Stdout, JobChannel::Stderr]),
        Some(channel) => OutputForm::Bytes(vec![channel]),
    };
    let output = acts::output(&app, id, Sequence::START, form).await?;
    Ok(([(CONTENT_TYPE, BYTES)], body_of(output)).into_response())
}
