//! Problem details (RFC 9457): the format of every error response.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Breaker, ErrorCode, Job, Plan, Server, Session, Turn};

/// The media type of a [`Problem`].
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// An error response, for programs (`code`) and for people (`detail`, `advice`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A URL reference to the documentation of this code.
    #[serde(rename = "type")]
    #[schema(example = "/docs/errors#breaker_unknown")]
    pub kind: String,
    /// A short summary, the same for every problem with this code.
    pub title: String,
    /// The HTTP status, repeated for readers that only have the body.
    pub status: u16,
    /// What went wrong in this case.
    pub detail: String,
    /// The stable error code. Base program logic on this.
    pub code: ErrorCode,
    /// What to do next.
    pub advice: String,
    /// The id of the request, as in the `x-request-id` header and in the daemon's log.
    pub request_id: String,
    /// The line of malformed JSON, starting at 1. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column of malformed JSON, starting at 1. 0 means the end of the previous line. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// The invalid field, as a path such as `options.0.name`. Absent if the problem isn't about a field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The current state, if it is why a write was refused, so that you can decide again. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Current>,
}

/// The state that the caller of a refused write didn't know about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Current {
    /// The breaker has changed.
    Breaker(Box<Breaker>),
    /// The language server has changed.
    Server(Box<Server>),
    /// The job has changed, or already has the idempotency key.
    Job(Box<Job>),
    /// The plan has changed, or already has the idempotency key.
    Plan(Box<Plan>),
    /// The session has changed. It includes the running turn.
    Session(Box<Session>),
    /// The turn has changed, or already has the idempotency key.
    Turn(Box<Turn>),
}

impl From<Breaker> for Current {
    fn from(breaker: Breaker) -> Self {
        Self::Breaker(Box::new(breaker))
    }
}

impl From<Server> for Current {
    fn from(server: Server) -> Self {
        Self::Server(Box::new(server))
    }
}

impl From<Job> for Current {
    fn from(job: Job) -> Self {
        Self::Job(Box::new(job))
    }
}

impl From<Plan> for Current {
    fn from(plan: Plan) -> Self {
        Self::Plan(Box::new(plan))
    }
}

impl From<Session> for Current {
    fn from(session: Session) -> Self {
        Self::Session(Box::new(session))
    }
}

impl From<Turn> for Current {
    fn from(turn: Turn) -> Self {
        Self::Turn(Box::new(turn))
    }
}

impl Problem {
    /// Creates a problem with the title, status and default advice of its code.
    #[must_use]
    pub fn new(code: ErrorCode, detail: impl Into<String>, request_id: impl Into<String>) -> Self {
        Self {
            kind: code.reference(),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            code,
            advice: code.advice().to_owned(),
            request_id: request_id.into(),
            line: None,
            column: None,
            field: None,
            current: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_problem_has_the_members_of_the_standard_and_ours() {
        let problem = Problem {
            line: Some(2),
            ..Problem::new(ErrorCode::MalformedJson, "line 2", "req_1")
        };
        let expected = json!({
            "type": "/docs/errors#malformed_json",
            "title": "The body is not JSON",
            "status": 400,
            "detail": "line 2",
            "code": "malformed_json",
            "advice": ErrorCode::MalformedJson.advice(),
            "request_id": "req_1",
            "line": 2,
        });
        assert_eq!(serde_json::to_value(&problem).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Problem>(expected).unwrap(), problem);
    }
}
