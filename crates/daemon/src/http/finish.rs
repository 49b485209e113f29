//! The outermost layer: assigns an id to every request and adds the last headers to every response, whatever happened
//! in between. A handler that panics ends only its own request.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, Method, StatusCode};
use protocol::{ErrorCode, RequestId};

use super::problem::{Problem, add_current, write_problem};
use super::refusals::declares;
use crate::app::App;
use crate::metrics::RequestLabels;

pub(crate) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// What our pages may load: our own files, and nothing inline.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                              connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Keeps other sites away: they can't hold a reference to our windows, or load our resources as their own.
const DISTANCE: [(HeaderName, HeaderValue); 2] = [
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Routes that take a body but change nothing. What a client changes over `/mcp` is logged with its tool call.
const QUESTIONS: [&str; 2] = ["/mcp", "/v1/context"];

/// The message to a caller after a panic.
pub(crate) const STUMBLED: &str = "The daemon stumbled over this request and went on. Its log says why.";

/// How much of a path is logged. Ours are shorter; a stray request's path may have 16 KiB.
const LOGGED_PATH_BYTES: usize = 256;

/// The route label of unmatched requests, so that the number of routes in the metrics stays small.
const UNMATCHED_ROUTE: &str = "unmatched";

/// Wraps one request from its first line to its last header.
pub(crate) async fn finish(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let request_id = RequestId::generate();
    // For handlers that record who asked.
    request.extensions_mut().insert(request_id);
    let began = app.clock.now();
    let method = request.method().clone();
    let path = logged(request.uri().path());
    let route = request.extensions().get::<MatchedPath>().map_or_else(
        || UNMATCHED_ROUTE.to_owned(),
        |matched| matched.as_str().to_owned(),
    );

    let asked = Asked::of(&method, &route);
    let in_flight = app.metrics.request_begins();
    let answer = async {
        let mut response = next.run(request).await;
        debug_assert!(
            declares(&method, &route, &response),
            "{method} {route} does not declare what it answers with: {:?}",
            response.extensions().get::<Problem>()
        );
        add_current(&app, &mut response).await;
        response
    };
    let mut response = match catch_panic(answer).await {
        Ok(response) => response,
        Err(panic) => {
            tracing::error!(%request_id, %method, path, panic, "a handler panicked");
            Problem::new(ErrorCode::Internal, STUMBLED).into_response()
        }
    };
    drop(in_flight);

    write_problem(&mut response, request_id);
    set_headers(response.headers_mut(), request_id);
    let now = app.clock.now();
    let elapsed = now.saturating_duration_since(began);
    if let Some(requests) = app.refused_lines.left_out(now) {
        tracing::info!(requests, "more requests were refused and not logged one by one");
    }
    let is_refused = is_refused(&route, response.status());
    app.metrics
        .request_ended(RequestLabels::new(&method, route, response.status()), elapsed);
    if asked == Asked::ToRead || !is_refused || app.refused_lines.take(now) {
        log(
            request_id,
            (&method, &path, asked),
            response.status(),
            elapsed.as_micros(),
        );
    }
    response
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// To read something.
    ToRead,
    /// To change something.
    ToChange,
}

impl Asked {
    fn of(method: &Method, route: &str) -> Self {
        if method.is_safe() || super::lsp::is_question(route) || QUESTIONS.contains(&route) {
            Self::ToRead
        } else {
            Self::ToChange
        }
    }
}

/// Whether a caller without the token could have received this response.
fn is_refused(route: &str, status: StatusCode) -> bool {
    let before_handlers = matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::MISDIRECTED_REQUEST
    );
    before_handlers || (route == UNMATCHED_ROUTE && status.is_client_error())
}

/// The path as it is logged.
fn logged(path: &str) -> String {
    match path.floor_char_boundary(LOGGED_PATH_BYTES) {
        end if end < path.len() => format!("{}… ({} bytes)", &path[..end], path.len()),
        _ => path.to_owned(),
    }
}

/// Logs the request and its response. The query is left out: it can contain a code that opens the page.
fn log(
    request_id: RequestId,
    (method, path, asked): (&Method, &str, Asked),
    status: StatusCode,
    elapsed_us: u128,
) {
    let status = status.as_u16();
    if status >= 500 {
        tracing::warn!(%request_id, %method, path, status, elapsed_us, "request");
    } else if asked == Asked::ToRead {
        // Pages that refresh themselves, and agents that send thousands of requests, would flood the log.
        tracing::debug!(%request_id, %method, path, status, elapsed_us, "request");
    } else {
        tracing::info!(%request_id, %method, path, status, elapsed_us, "request");
    }
}

fn set_headers(headers: &mut HeaderMap, request_id: RequestId) {
    if let Ok(value) = HeaderValue::from_str(&request_id.to_string()) {
        headers.insert(REQUEST_ID_HEADER, value);
    }
    // `no-referrer` would make browsers send `Origin: null` with our own forms. This policy tells other sites
    // just as little, and the origin check still works.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    headers.extend(DISTANCE);
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

/// Runs a future, and turns a panic in it into the panic's message.
pub(crate) async fn catch_panic<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    // The future isn't polled again after a panic, so nothing can observe its inconsistent state.
    poll_fn(
        |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic_message(panic.as_ref()))),
        },
    )
    .await
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_cut_to_what_the_log_has_room_for() {
        let long = "/".to_owned() + &"é".repeat(1000);
        for (path, expected) in [
            ("/v1/status", "/v1/status".to_owned()),
            (&long[..=254], long[..=254].to_owned()),
            (&long, format!("{}… (2001 bytes)", &long[..255])),
        ] {
            assert_eq!(logged(path), expected);
        }
    }

    #[test]
    fn only_what_may_change_something_is_always_in_the_log() {
        for (method, route, expected) in [
            (Method::GET, "/v1/lsp/servers", Asked::ToRead),
            (Method::POST, "/v1/lsp/servers", Asked::ToChange),
            (Method::POST, "/v1/lsp/servers/{id}/restart", Asked::ToChange),
            (Method::POST, "/v1/lsp/servers/{id}/request", Asked::ToRead),
            (Method::POST, "/v1/lsp/stop", Asked::ToChange),
            (Method::POST, "/v1/lsp/config/trust", Asked::ToChange),
            (Method::POST, "/v1/lsp/hover", Asked::ToRead),
            (Method::POST, "/v1/lsp/workspace-symbols", Asked::ToRead),
            (Method::POST, "/v1/context", Asked::ToRead),
            (Method::POST, "/mcp", Asked::ToRead),
            (Method::POST, "/v1/plans/{id}/changes", Asked::ToChange),
            (Method::POST, "/v1/breakers/reset", Asked::ToChange),
            (Method::POST, UNMATCHED_ROUTE, Asked::ToChange),
        ] {
            assert_eq!(Asked::of(&method, route), expected, "{method} {route}");
        }
    }
}
