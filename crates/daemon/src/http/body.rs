//! Request bodies: limits their size and time, and explains errors in them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kernel::Deadline;
use protocol::ErrorCode;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::guard::body_too_large;
use super::problem::{Position, Problem};
use crate::app::App;

/// How long a body may take. The largest one needs 35 KB/s.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A JSON body.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        check_media_type(request.headers())?;
        let bytes = read_body(app, request.into_body()).await?;
        parse(&bytes).map(Self)
    }
}

/// A JSON body that may be omitted.
#[derive(Debug)]
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<Arc<App>> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let media_type = check_media_type(request.headers());
        let bytes = read_body(app, request.into_body()).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        media_type?;
        parse(&bytes).map(Self)
    }
}

/// Reads a whole body, up to the limits of size and time.
pub(crate) async fn read_body(app: &App, body: Body) -> Result<Bytes, Problem> {
    let limited = Limited::new(body, app.body_limit_bytes).collect();
    let patience = Deadline::after(&app.clock, BODY_TIMEOUT).passed();
    let collected = tokio::select! {
        biased;
        collected = limited => collected,
        () = patience => {
            let detail = format!("The body did not arrive within {} seconds.", BODY_TIMEOUT.as_secs());
            return Err(Problem::new(ErrorCode::RequestTimeout, detail));
        }
    };
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(body_too_large(app)),
        // The caller disconnected or broke the framing, so it is unlikely to read the answer.
        Err(error) => Err(Problem::new(
            ErrorCode::MalformedJson,
            format!("The body could not be read: {error}."),
        )),
    }
}

fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers
        .get(CONTENT_TYPE)
        .map(|value| value.to_str().unwrap_or_default());
    match given {
        Some(given) if is_json(given) => Ok(()),
        Some(given) => Err(Problem::new(
            ErrorCode::UnsupportedMediaType,
            format!(
                "The body is of type `{}`, and JSON is expected.",
                given.escape_debug()
            ),
        )),
        None => Err(Problem::new(
            ErrorCode::UnsupportedMediaType,
            "The request does not say of which type its body is.",
        )),
    }
}

fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        explain(&path, &error.into_inner())
    })?;
    deserializer.end().map_err(|error| explain(".", &error))?;
    Ok(value)
}

/// Explains an invalid body: the position if it isn't JSON, the field if it has the wrong shape.
fn explain(path: &str, error: &serde_json::Error) -> Problem {
    let position = Position {
        line: error.line() as u64,
        column: error.column() as u64,
    };
    let text = error.to_string();
    // The message ends with the position, which has its own fields.
    let message = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(message, _)| message);
    match error.classify() {
        Category::Data => {
            let missing = message
                .strip_prefix("missing field `")
                .and_then(|rest| rest.split('`').next());
            let field = match (path, missing) {
                (".", Some(missing)) => Some(missing.to_owned()),
                (".", None) => None,
                (path, Some(missing)) => Some(format!("{path}.{missing}")),
                (path, None) => Some(path.to_owned()),
            };
            let problem = match &field {
                Some(field) => Problem::new(ErrorCode::InvalidRequest, format!("In `{field}`: {message}.")),
                None => Problem::new(
                    ErrorCode::InvalidRequest,
                    format!("The body as a whole: {message}."),
                ),
            };
            match field {
                Some(field) => problem.in_field(field),
                None => problem,
            }
        }
        Category::Syntax | Category::Eof | Category::Io => {
            let Position { line, column } = position;
            let detail = format!("Not JSON at line {line}, column {column}: {message}.");
            Problem::new(ErrorCode::MalformedJson, detail).at(position)
        }
    }
}
