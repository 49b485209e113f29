//! What every route answers before its handler is asked, for the description.
//!
//! A handler describes its own answers. What stands before all of them (`guard`, `body`, `query`) is added here, in one
//! place, so that no handler has to repeat it and none can forget it.

use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder};

/// Answers to a request that does not come from a caller of ours, or comes too late.
const TO_ALL: &[(&str, &str)] = &[
    (
        "403",
        "`origin_not_allowed`: the request comes from a foreign page",
    ),
    ("421", "`host_not_allowed`: the request is for another host"),
];

/// Answers to a caller who does not prove who it is.
const TO_CALLERS: &[(&str, &str)] = &[("401", "`unauthorized`")];

/// Answers while the daemon stops. `/healthz` and `/readyz` say so in their own words.
const WHEN_STOPPING: &[(&str, &str)] = &[("503", "`shutting_down`")];

/// Answers to a body that is wrong.
const TO_BODIES: &[(&str, &str)] = &[
    ("400", "`malformed_json`"),
    ("408", "`request_timeout`: the body did not arrive in time"),
    ("413", "`body_too_large`"),
    ("415", "`unsupported_media_type`"),
    ("422", "`invalid_request`"),
];

/// Answers to a query that is wrong.
const TO_QUERIES: &[(&str, &str)] = &[("400", "`invalid_query`")];

/// Adds the answers that stand before every handler. What a handler says itself about a status stays.
pub(super) fn describe(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let is_asked_while_stopping = matches!(path.as_str(), "/healthz" | "/readyz");
        for operation in operations(item) {
            add(operation, TO_ALL);
            if !is_asked_while_stopping {
                add(operation, WHEN_STOPPING);
            }
            // An operation that says nothing about security has that of the whole document.
            if operation.security.is_none() {
                add(operation, TO_CALLERS);
            }
            if operation.request_body.is_some() {
                add(operation, TO_BODIES);
            }
            if has_query(operation) {
                add(operation, TO_QUERIES);
            }
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete]
        .into_iter()
        .flatten()
}

fn has_query(operation: &Operation) -> bool {
    let mut parameters = operation.parameters.iter().flatten();
    parameters.any(|parameter| match parameter {
        RefOr::T(parameter) => parameter.parameter_in == ParameterIn::Query,
        RefOr::Ref(_) => false,
    })
}

fn add(operation: &mut Operation, answers: &[(&str, &str)]) {
    for (status, description) in answers {
        let problem = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name("Problem")))
            .build();
        let response = ResponseBuilder::new()
            .description(*description)
            .content(protocol::PROBLEM_MEDIA_TYPE, problem)
            .build();
        operation
            .responses
            .responses
            .entry((*status).to_owned())
            .or_insert(RefOr::T(response));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::openapi_json;

    /// The statuses that the description has for a route.
    fn statuses(document: &Value, path: &str, method: &str) -> Vec<String> {
        let responses = document["paths"][path][method]["responses"].as_object().unwrap();
        responses.keys().cloned().collect()
    }

    #[test]
    fn what_stands_before_a_handler_is_described_with_it() {
        let document: Value = serde_json::from_str(&openapi_json().unwrap()).unwrap();
        for (path, method, expected) in [
            ("/healthz", "get", "200 403 421"),
            ("/openapi.json", "get", "200 403 421 503"),
            ("/v1/status", "get", "200 401 403 421 503"),
            ("/v1/boots", "get", "200 400 401 403 421 503"),
            (
                "/v1/breakers/{name}/force",
                "post",
                "200 400 401 403 408 413 415 421 422 503",
            ),
        ] {
            assert_eq!(statuses(&document, path, method).join(" "), expected, "{path}");
        }
    }
}
