//! Error responses.
//!
//! A handler returns a [`Problem`]. It keeps what the caller may read (`detail` and the members) apart from what only
//! the log may have (`internal`). Only the outermost layer knows the request id, so the response carries the problem
//! unserialized until it gets there; see `finish`.

use std::error::Error;
use std::iter;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use protocol::{Current, ErrorCode, JobId, PlanId, RequestId, SessionId, TurnId};

use crate::app::App;
use crate::{jobs, plans, sessions};

/// An error response without its request id.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    code: ErrorCode,
    detail: String,
    position: Option<Position>,
    field: Option<String>,
    current: Option<Current>,
    subject: Option<Box<Subject>>,
    internal: Option<Arc<dyn Error + Send + Sync>>,
}

/// What a caller has to look at before it tries again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    Job(JobId),
    Plan(PlanId),
    Session(SessionId),
    Turn(TurnId),
}

/// The challenge of a response with the status 401. Browsers don't know the scheme, so they don't ask the user for a
/// password.
pub(crate) const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"tidelock\"");

/// A position in a text, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl Problem {
    pub(crate) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            position: None,
            field: None,
            current: None,
            subject: None,
            internal: None,
        }
    }

    /// A bug or a failure inside the daemon. The cause goes to the log only.
    pub(crate) fn internal(cause: impl Error + Send + Sync + 'static) -> Self {
        let problem = Self::new(
            ErrorCode::Internal,
            "The daemon could not finish this request. Its log says why.",
        );
        Self {
            internal: Some(Arc::new(cause)),
            ..problem
        }
    }

    /// Keeps the cause for the daemon's log.
    pub(crate) fn because(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        self.internal = Some(Arc::new(cause));
        self
    }

    pub(crate) fn at(mut self, position: Position) -> Self {
        self.position = Some(position);
        self
    }

    pub(crate) fn in_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Marks the problem as being about a member of this field.
    pub(crate) fn below(mut self, field: &str) -> Self {
        self.field = self.field.map(|below| format!("{field}.{below}"));
        self
    }

    /// Appends a sentence to the detail.
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.detail = format!("{} {more}", self.detail);
        self
    }

    pub(crate) fn with_current(mut self, current: impl Into<Current>) -> Self {
        self.current = Some(current.into());
        self
    }

    /// Sets the subject. Its current state is read and sent as `current`.
    pub(crate) fn about(mut self, subject: Subject) -> Self {
        self.subject = Some(Box::new(subject));
        self
    }

    pub(crate) fn code(&self) -> ErrorCode {
        self.code
    }

    /// What happened this time.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// The current state, for a caller that saw another one.
    pub(crate) fn current(&self) -> Option<&Current> {
        self.current.as_ref()
    }

    /// The body for the caller.
    pub(crate) fn into_body(self, request_id: RequestId) -> protocol::Problem {
        protocol::Problem {
            line: self.position.map(|position| position.line),
            column: self.position.map(|position| position.column),
            field: self.field,
            current: self.current,
            ..protocol::Problem::new(self.code, self.detail, request_id.to_string())
        }
    }

    /// The cause for the log, which the caller must not see.
    pub(crate) fn internal_cause(&self) -> Option<&(dyn Error + Send + Sync)> {
        self.internal.as_deref()
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status();
        if self.code == ErrorCode::Unauthorized {
            response.headers_mut().insert(WWW_AUTHENTICATE, CHALLENGE);
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Adds the current state of a problem's subject, if it can be read.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn add_current(app: &App, response: &mut Response) {
    if let Some(problem) = response.extensions_mut().get_mut::<Problem>()
        && let Some(subject) = problem.subject.take()
        && let Some(current) = read(app, *subject).await
    {
        problem.current = Some(current);
    }
}

async fn read(app: &App, subject: Subject) -> Option<Current> {
    let machines = &app.durable.machines;
    Some(match subject {
        Subject::Job(id) => {
            let job = app.jobs.get(id).await.ok()??;
            jobs::wire::view(&app.jobs, machines, &job).await.ok()?.into()
        }
        Subject::Plan(id) => plans::wire::current(&app.plans, id).await?.into(),
        Subject::Session(id) => {
            let session = app.sessions.get(id).await.ok()?;
            sessions::wire::shown(&app.sessions, machines, &session).into()
        }
        Subject::Turn(id) => {
            let turn = app.sessions.turn(id).await.ok()?;
            sessions::wire::turn_to_wire(&turn).into()
        }
    })
}

/// Serializes a problem that the response still carries.
pub(crate) fn write_problem(response: &mut Response, request_id: RequestId) {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else {
        return;
    };
    if let Some(cause) = problem.internal_cause() {
        tracing::error!(%request_id, cause = describe(cause), "a request failed inside the daemon");
    }
    // A struct of strings and numbers always serializes; if it didn't, an empty body would be the lesser
    // evil.
    let body = serde_json::to_vec(&problem.into_body(request_id)).unwrap_or_default();
    *response.body_mut() = Body::from(body);
    set_media_type(response.headers_mut());
}

/// Sets the media type of a problem.
fn set_media_type(headers: &mut HeaderMap) {
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static(protocol::PROBLEM_MEDIA_TYPE),
    );
}

/// Runs a blocking operation on a thread for such work.
///
/// *Cancel safety*: if dropped, the operation still runs to its end, and its result is lost.
pub(crate) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, Problem> {
    // This fails only if the operation panicked or the runtime shuts down.
    tokio::task::spawn_blocking(work).await.map_err(Problem::internal)
}

/// An error with all its causes, in one line.
pub(crate) fn describe(error: &dyn Error) -> String {
    let causes = iter::successors(Some(error), |&error| error.source());
    Vec::from_iter(causes.map(ToString::to_string)).join(": ")
}

/// An error as a sentence.
pub(super) fn sentence(error: &str) -> String {
    let mut characters = error.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(characters).chain(['.']).collect()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_internal_cause_is_described_for_the_log_and_not_for_the_caller() {
        let cause = io::Error::other(io::Error::other("the disk is full of secrets"));
        let problem = Problem::internal(cause);
        let described = problem.internal_cause().map(|cause| describe(cause)).unwrap();
        assert!(described.contains("secrets"), "{described}");
        let body = serde_json::to_string(&problem.into_body(RequestId::generate())).unwrap();
        assert!(!body.contains("secrets"), "{body}");
    }
}
