//! Every error with its status, code, headers and words.

use http::Method;
use protocol::{ErrorCode, Problem};

use crate::client::Answer;
use crate::running::Running;

/// What a request of [`the_errors`] is made of.
struct Case {
    method: Method,
    path: &'static str,
    media_type: Option<&'static str>,
    body: String,
}

fn case(
    method: Method,
    path: &'static str,
    media_type: Option<&'static str>,
    body: impl Into<String>,
) -> Case {
    Case {
        method,
        path,
        media_type,
        body: body.into(),
    }
}

fn json(path: &'static str, body: impl Into<String>) -> Case {
    case(Method::POST, path, Some("application/json"), body)
}

/// A problem whose id is filled in when the answer is there.
fn problem(code: ErrorCode, detail: &str) -> Problem {
    Problem::new(code, detail, "")
}

fn check(answer: &Answer, expected: Problem) {
    let found = answer.problem();
    let request_id = found.request_id.clone();
    assert_eq!(
        found,
        Problem {
            request_id,
            ..expected
        }
    );
}

#[tokio::test]
async fn the_errors_say_what_is_wrong_and_where() {
    const FORCE: &str = "/v1/breakers/a/force";
    const RESET: &str = "/v1/breakers/a/reset";
    const RECORD: &str = "/v1/breakers/a/record";
    let running = Running::start().await;
    let in_field = |field: &str, detail: &str| Problem {
        field: Some(field.to_owned()),
        ..problem(ErrorCode::InvalidRequest, detail)
    };
    let in_query = |field: &str, detail: &str| Problem {
        field: Some(field.to_owned()),
        ..problem(ErrorCode::InvalidQuery, detail)
    };
    let at = |line, column, detail: &str| Problem {
        line: Some(line),
        column: Some(column),
        ..problem(ErrorCode::MalformedJson, detail)
    };
    let cases = [
        (
            case(Method::GET, "/nowhere", None, ""),
            problem(ErrorCode::NotFound, "There is nothing at `/nowhere`."),
        ),
        (
            case(Method::DELETE, "/v1/status", None, ""),
            problem(ErrorCode::MethodNotAllowed, "`/v1/status` does not take DELETE."),
        ),
        (
            case(Method::GET, "/v1/breakers/a%2Fb", None, ""),
            problem(ErrorCode::BreakerUnknown, "No breaker is named `a/b`."),
        ),
        (
            case(Method::POST, RESET, None, ""),
            problem(ErrorCode::BreakerUnknown, "No breaker is named `a`."),
        ),
        (
            json(RESET, "{\"generation\": 1}"),
            problem(ErrorCode::BreakerUnknown, "No breaker is named `a`."),
        ),
        (
            case(Method::GET, "/v1/breakers/a%0Ab", None, ""),
            problem(ErrorCode::InvalidName, "The name has control characters in it."),
        ),
        (
            case(Method::GET, "/v1/breakers/%FF", None, ""),
            problem(ErrorCode::InvalidName, "The name is not UTF-8."),
        ),
        (
            case(Method::GET, "/v1/boots?limit=0", None, ""),
            in_query("limit", "`limit` is 0, and must lie between 1 and 100."),
        ),
        (
            case(Method::GET, "/v1/breakers/a/events?limit=1001", None, ""),
            in_query("limit", "`limit` is 1001, and must lie between 1 and 1000."),
        ),
        (
            case(Method::GET, "/v1/breakers/a/events?after=x", None, ""),
            in_query("after", "In `after`: invalid digit found in string."),
        ),
        (
            case(Method::GET, "/v1/boots?colour=red", None, ""),
            in_query("colour", "In `colour`: unknown field `colour`, expected `limit`."),
        ),
        (
            json("/v1/log/backup", r#"{"path":"copy"}"#),
            in_field(
                "path",
                "In `path`: an absolute path is needed, since the daemon works in another directory.",
            ),
        ),
        (
            json(FORCE, "{\n  \"state\": open\n}"),
            at(2, 12, "Not JSON at line 2, column 12: expected value."),
        ),
        (
            json(FORCE, "{\"state\""),
            at(1, 8, "Not JSON at line 1, column 8: EOF while parsing an object."),
        ),
        (
            json(FORCE, "{\"state\": \"open\"} trailing"),
            at(1, 19, "Not JSON at line 1, column 19: trailing characters."),
        ),
        (
            json(FORCE, ""),
            at(1, 0, "Not JSON at line 1, column 0: EOF while parsing a value."),
        ),
        (
            json(FORCE, "{}"),
            in_field("state", "In `state`: missing field `state`."),
        ),
        (
            json(FORCE, "{\"state\": \"ajar\"}"),
            in_field(
                "state",
                "In `state`: unknown variant `ajar`, expected `open` or `closed`.",
            ),
        ),
        (
            json(RECORD, "{\"outcome\": \"failure\", \"retry_after_ms\": -1}"),
            in_field(
                "retry_after_ms",
                "In `retry_after_ms`: invalid value: integer `-1`, expected u64.",
            ),
        ),
        (
            json(RECORD, "{\"outcome\": \"success\", \"retry_after_ms\": 1}"),
            in_field(
                "retry_after_ms",
                "In `retry_after_ms`: only a failure can ask for a pause.",
            ),
        ),
        (
            json(RESET, "{\"generations\": 1}"),
            in_field(
                "generations",
                "In `generations`: unknown field `generations`, expected `generation`.",
            ),
        ),
        (
            json(FORCE, "7"),
            problem(
                ErrorCode::InvalidRequest,
                "The body as a whole: invalid type: integer `7`, expected struct ForceBreaker.",
            ),
        ),
        (
            case(Method::POST, FORCE, Some("text/plain"), "{}"),
            problem(
                ErrorCode::UnsupportedMediaType,
                "The body is of type `text/plain`, and JSON is expected.",
            ),
        ),
        (
            case(Method::POST, FORCE, None, "{}"),
            problem(
                ErrorCode::UnsupportedMediaType,
                "The request does not say of which type its body is.",
            ),
        ),
        (
            case(Method::POST, RESET, Some("text/plain"), "{}"),
            problem(
                ErrorCode::UnsupportedMediaType,
                "The body is of type `text/plain`, and JSON is expected.",
            ),
        ),
        (
            json(FORCE, " ".repeat(1024 * 1024 + 1)),
            problem(ErrorCode::BodyTooLarge, "A body may have at most 1048576 bytes."),
        ),
    ];
    for client in [running.tcp(), running.unix()] {
        for (case, expected) in &cases {
            let mut call = client.call(case.method.clone(), case.path);
            call = match case.media_type {
                Some(media_type) => call.body(media_type, case.body.clone()),
                None => call.body("x/y", case.body.clone()).without("content-type"),
            };
            check(&call.send().await, expected.clone());
        }
    }
}

#[tokio::test]
async fn a_body_of_just_the_limit_is_read() {
    let running = Running::start().await;
    let mut body = "{\"state\": \"open\"}".to_owned();
    body.push_str(&" ".repeat(1024 * 1024 - body.len()));
    let answer = running
        .tcp()
        .post("/v1/breakers/a/force")
        .json(&body)
        .send()
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn the_allowed_methods_are_named() {
    let running = Running::start().await;
    for (path, expected) in [
        ("/v1/status", "GET,HEAD"),
        ("/v1/shutdown", "POST"),
        ("/v1/breakers/reset", "GET,HEAD,POST"),
    ] {
        let answer = running.tcp().call(Method::PUT, path).send().await;
        assert_eq!(answer.problem().code, ErrorCode::MethodNotAllowed);
        let mut allowed: Vec<&str> = answer.header("allow").unwrap().split(',').collect();
        allowed.sort_unstable();
        assert_eq!(allowed.join(","), expected, "{path}");
    }
}

#[tokio::test]
async fn only_the_token_opens_the_interface() {
    let running = Running::start().await;
    let good = format!("Bearer {}", running.token);
    let wrong = format!("Bearer {}", "0".repeat(64));
    let cut_short = &good[..good.len() - 1];
    let no_token = "The request carries no token.";
    let not_ours = "The token is not the one of this daemon.";
    let cases = [
        (None, Some(no_token)),
        (Some(good.as_str()), None),
        (Some(wrong.as_str()), Some(not_ours)),
        (Some(cut_short), Some(not_ours)),
        (Some("Bearer"), Some(not_ours)),
        (Some(""), Some(not_ours)),
        (Some("Basic dXNlcjpwYXNz"), Some(not_ours)),
    ];
    for client in [running.tcp(), running.unix()] {
        for path in ["/v1/status", "/metrics", "/v1/breakers", "/v1/breakers/a"] {
            for (authorization, refused) in &cases {
                let call = match authorization {
                    Some(value) => client.get(path).header("authorization", value),
                    None => client.get(path).without("authorization"),
                };
                let answer = call.send().await;
                match refused {
                    Some(detail) => {
                        check(&answer, problem(ErrorCode::Unauthorized, detail));
                        assert_eq!(
                            answer.header("www-authenticate"),
                            Some("Bearer realm=\"tidelock\"")
                        );
                    }
                    None => assert_ne!(answer.status, 401),
                }
            }
        }
    }
}

#[tokio::test]
async fn some_paths_are_open_to_all() {
    let running = Running::start().await;
    for (path, expected) in [
        ("/healthz", r#"{"status":"ok"}"#),
        ("/readyz", r#"{"status":"ready"}"#),
        ("/openapi.json", &daemon::openapi_json().unwrap()),
    ] {
        let answer = running.tcp().get(path).without("authorization").send().await;
        assert_eq!((answer.status, answer.body.as_str()), (200, expected), "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(answer.header("x-request-id").is_some());
    }
}

#[tokio::test]
async fn what_is_described_is_there_and_has_a_name_of_its_own() {
    let running = Running::start().await;
    let description: serde_json::Value = running.tcp().get("/openapi.json").send().await.json();
    let mut names = Vec::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            names.push(operation["operationId"].as_str().unwrap().to_owned());
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            // One ends the daemon, the others never end.
            if [
                "/v1/shutdown",
                "/v1/activity/events",
                "/v1/lsp/events",
                "/v1/jobs/events",
                "/v1/plans/events",
                "/v1/sessions/events",
            ]
            .contains(&path.as_str())
            {
                continue;
            }
            let answer = running
                .tcp()
                .call(
                    method,
                    &path
                        .replace("{name}", "a")
                        .replace("{id}", "a")
                        .replace("{changeset}", "a")
                        .replace("{turn}", "a")
                        .replace("{permission}", "a"),
                )
                .send()
                .await;
            let missing = [ErrorCode::NotFound, ErrorCode::MethodNotAllowed];
            let code = serde_json::from_str::<Problem>(&answer.body).map(|problem| problem.code);
            assert!(
                !code.is_ok_and(|code| missing.contains(&code)),
                "{path}: {answer:?}"
            );
        }
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "two operations share a name");
    assert!(count >= 13, "{names:?}");
}
