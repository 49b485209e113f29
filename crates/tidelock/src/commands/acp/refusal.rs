//! Refused requests, in terms of the protocol.

use serde_json::{Value, json};

use crate::client::ClientError;
use crate::error::Failure;

/// A request that was refused.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refused {
    /// The error code defined by the protocol.
    pub(super) code: i64,
    message: String,
    /// Our own stable name for it, and what to do next.
    name: String,
    advice: Option<String>,
    request_id: Option<String>,
}

impl Refused {
    pub(super) const PARSE_ERROR: i64 = -32700;
    pub(super) const INVALID_REQUEST: i64 = -32600;
    pub(super) const METHOD_NOT_FOUND: i64 = -32601;
    pub(super) const INVALID_PARAMS: i64 = -32602;
    pub(super) const INTERNAL_ERROR: i64 = -32603;
    pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;

    fn new(code: i64, name: &str, message: impl Into<String>) -> Refused {
        Refused {
            code,
            message: message.into(),
            name: name.to_owned(),
            advice: None,
            request_id: None,
        }
    }

    pub(super) fn advise(mut self, advice: impl Into<String>) -> Refused {
        self.advice = Some(advice.into());
        self
    }

    /// A line that is not JSON.
    pub(super) fn no_json(message: impl Into<String>) -> Refused {
        Refused::new(Refused::PARSE_ERROR, "acp_line", message)
    }

    /// Something that is not a message, or that comes at the wrong time.
    pub(super) fn no_request(message: impl Into<String>) -> Refused {
        Refused::new(Refused::INVALID_REQUEST, "acp_message", message)
    }

    pub(super) fn no_method(method: &str) -> Refused {
        let method: String = method.chars().take(100).collect();
        let message = format!("there is no method `{method}`");
        Refused::new(Refused::METHOD_NOT_FOUND, "acp_method", message)
    }

    /// A request with invalid parameters.
    pub(super) fn params(message: impl Into<String>) -> Refused {
        Refused::new(Refused::INVALID_PARAMS, "acp_params", message)
    }

    pub(super) fn too_many(message: impl Into<String>) -> Refused {
        Refused::new(Refused::INTERNAL_ERROR, "acp_limit", message)
    }

    /// A session that this editor has not opened.
    pub(super) fn not_open(id: &str) -> Refused {
        let id: String = id.chars().take(100).collect();
        Refused::new(
            Refused::RESOURCE_NOT_FOUND,
            "session_not_open",
            format!("`{id}` is not open here"),
        )
        .advise("open it with session/load or session/resume")
    }

    /// A turn failed.
    pub(super) fn turn(code: &str, text: &str) -> Refused {
        Refused::new(Refused::INTERNAL_ERROR, code, format!("The turn failed: {text}"))
    }

    pub(super) fn in_words(&self) -> String {
        match &self.advice {
            Some(advice) => format!("{} ({advice})", self.message),
            None => self.message.clone(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut data = json!({ "code": self.name });
        if let Some(advice) = &self.advice {
            data["advice"] = json!(advice);
        }
        if let Some(request_id) = &self.request_id {
            data["requestId"] = json!(request_id);
        }
        json!({ "code": self.code, "message": self.message, "data": data })
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        let code = match failure.code.as_str() {
            "session_not_found" | "turn_not_found" | "workspace_gone" => Refused::RESOURCE_NOT_FOUND,
            "agent_not_found" | "agent_not_ready" | "invalid_prompt" | "invalid_body" | "body_too_large"
            | "path_unusable" | "usage" | "directory_unusable" => Refused::INVALID_PARAMS,
            _ => Refused::INTERNAL_ERROR,
        };
        Refused {
            code,
            message: failure.message,
            name: failure.code,
            advice: failure.advice,
            request_id: failure.request_id,
        }
    }
}

impl From<ClientError> for Refused {
    fn from(error: ClientError) -> Refused {
        Failure::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Exit;

    #[test]
    fn failures_have_our_own_code_in_their_data() {
        let failure = |code: &str| Failure::new(Exit::Refused, code, "no such thing").advise("look");
        for (name, code) in [
            ("session_not_found", Refused::RESOURCE_NOT_FOUND),
            ("agent_not_found", Refused::INVALID_PARAMS),
            ("log_refusing", Refused::INTERNAL_ERROR),
        ] {
            assert_eq!(
                Refused::from(failure(name)).to_json(),
                json!({
                    "code": code,
                    "message": "no such thing",
                    "data": { "code": name, "advice": "look" },
                })
            );
        }
        assert_eq!(
            Refused::no_method("x/y").to_json(),
            json!({
                "code": -32601,
                "message": "there is no method `x/y`",
                "data": { "code": "acp_method" },
            })
        );
    }
}
