//! Problem details (RFC 9457): the one shape of every error answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Breaker, ErrorCode, Job, Plan, Server, Session, Turn};

/// The media type of a [`Problem`].
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// What went wrong, for programs (`code`) and for people (`detail`, `advice`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A reference to the section about this code.
    #[serde(rename = "type")]
    #[schema(example = "/docs/errors#breaker_unknown")]
    pub kind: String,
    /// The code in words; the same for every problem with this code.
    pub title: String,
    /// The HTTP status, repeated for readers who only have the body.
    pub status: u16,
    /// What happened this time.
    pub detail: String,
    /// The stable name to decide on.
    pub code: ErrorCode,
    /// What to do next.
    pub advice: String,
    /// The id of the request, as in the header `x-request-id` and in the log of the daemon.
    pub request_id: String,
    /// The line of malformed JSON, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column of malformed JSON, from 1; 0 is the end of the line before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// The field that does not have the right shape, as a path such as `options.0.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// When a write was refused because of what is there: that, to decide on again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Current>,
}

/// The state that a refused write did not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Current {
    /// A breaker had moved.
    Breaker(Box<Breaker>),
    /// A language server had.
    Server(Box<Server>),
    /// A job had, or has the idempotency key already.
    Job(Box<Job>),
    /// A plan had, or has the idempotency key already.
    Plan(Box<Plan>),
    /// A session had. The turn that runs stands in it.
    Session(Box<Session>),
    /// A turn had, or has the idempotency key already.
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
    /// A problem with the title, status and usual advice of its code.
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
