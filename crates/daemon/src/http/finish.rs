//! The outermost layer: every request gets an id here, and every response its last headers, whatever happened
//! in between. A handler that panics ends its own request and nothing else.

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

/// The header with the id of the request.
pub(crate) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// What a page of ours may load: our own files, and nothing that is written into the page.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                              connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What keeps other pages at a distance: none can hold a window of ours, or load anything of ours as its own.
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

/// What is asked with a body and changes nothing. What a client over `/mcp` changes is logged with the call of its tool.
const QUESTIONS: [&str; 2] = ["/mcp", "/v1/context"];

/// What a caller reads about a panic.
pub(crate) const STUMBLED: &str = "The daemon stumbled over this request and went on. Its log says why.";

/// How much of a path is in the log. Ours are shorter; somebody else's may have 16 KiB.
const LOGGED_PATH_BYTES: usize = 256;

/// The route of a request that matched none, so that the number of routes in the metrics stays small.
const UNMATCHED_ROUTE: &str = "unmatched";

/// Wraps one request from its first line to its last header.
pub(crate) async fn finish(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let request_id = RequestId::generate();
    // For those who write down who asked.
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

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// To learn something.
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

/// Whether somebody without the token could have been answered so.
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

/// A path as the log has it.
fn logged(path: &str) -> String {
    match path.floor_char_boundary(LOGGED_PATH_BYTES) {
        end if end < path.len() => format!("{}… ({} bytes)", &path[..end], path.len()),
        _ => path.to_owned(),
    }
}

/// Says what was asked and answered. The query is left out: it can carry a code that opens the page.
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
        // Pages that refresh themselves, and agents that ask thousands of questions, would fill the log.
        tracing::debug!(%request_id, %method, path, status, elapsed_us, "request");
    } else {
        tracing::info!(%request_id, %method, path, status, elapsed_us, "request");
    }
}

fn set_headers(headers: &mut HeaderMap, request_id: RequestId) {
    if let Ok(value) = HeaderValue::from_str(&request_id.to_string()) {
        headers.insert(REQUEST_ID_HEADER, value);
    }
    // `no-referrer` would make browsers send `Origin: null` with our own forms. This one tells other sites as
    // little, and lets the check of the origin do its work.
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
    // The future is not polled again after a panic, so nothing can look at what it left half done.
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
