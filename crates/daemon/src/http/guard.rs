//! The checks before the handlers: is the request meant for us, does it come from our page, does the daemon accept
//! work, and who is the caller? All checks use headers only, before any of the body is read.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, COOKIE, HOST, HeaderName, ORIGIN};
use http::{HeaderMap, Method};
use protocol::ErrorCode;

use super::problem::Problem;
use crate::access::{SignedIn, Transport};
use crate::app::App;
use crate::life::Phase;

/// Carries the form token of a changing request from a script of our page.
const FORM_TOKEN_HEADER: HeaderName = HeaderName::from_static("x-form-token");

/// The name of the page's cookie. Its host belongs to one daemon, whatever the port.
pub(crate) const PAGE_COOKIE: &str = "tidelock_page";

/// Rejects requests that aren't meant for us, come from another site, or arrive too late. Runs before every route.
pub(crate) async fn admit(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let checked = check_host(&app, &request)
        .and_then(|()| check_origin(&app, request.headers()))
        .and_then(|()| check_phase(&app, request.uri().path()))
        .and_then(|()| check_length(&app, request.headers()));
    match checked {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Requires the token or a login of the page.
pub(crate) async fn authenticate(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match check_caller(&app, request.method(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check_host(app: &App, request: &Request) -> Result<(), Problem> {
    // If it's missing, the server forgot to record the transport; apply the stricter rule.
    let transport = request.extensions().get().copied().unwrap_or(Transport::Tcp);
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = match (hosts.next().map(|host| host.to_str()), hosts.next()) {
        (Some(Ok(host)), None) => host,
        _ => {
            let detail = "The request has no Host header, more than one, or an unreadable one.";
            return Err(Problem::new(ErrorCode::HostNotAllowed, detail));
        }
    };
    // A request to a proxy has a second host name in its first line. That must be ours, too.
    let names = [
        Some(host),
        request.uri().authority().map(|authority| authority.as_str()),
    ];
    match names
        .into_iter()
        .flatten()
        .find(|name| !app.hosts.allow_host(transport, name))
    {
        None => Ok(()),
        Some(name) => Err(Problem::new(
            ErrorCode::HostNotAllowed,
            format!("`{}` is not a name of this daemon.", name.escape_debug()),
        )),
    }
}

fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    match headers
        .get_all(ORIGIN)
        .iter()
        .find(|origin| !origin.to_str().is_ok_and(|text| app.hosts.allow_origin(text)))
    {
        None => Ok(()),
        Some(origin) => Err(Problem::new(
            ErrorCode::OriginNotAllowed,
            format!("The page {origin:?} does not belong to this daemon."),
        )),
    }
}

fn check_phase(app: &App, path: &str) -> Result<(), Problem> {
    // These two exist to report this state.
    if matches!(path, "/healthz" | "/readyz") {
        return Ok(());
    }
    match &*app.life.phase() {
        Phase::Starting | Phase::Ready => Ok(()),
        Phase::Draining { cause } => Err(Problem::new(
            ErrorCode::ShuttingDown,
            format!("The daemon is shutting down ({cause})."),
        )),
        Phase::Stopped => Err(Problem::new(ErrorCode::ShuttingDown, "The daemon has shut down.")),
    }
}

/// Rejects a body that declares a size above the limit. One without a declared size is cut off while it is read.
fn check_length(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse::<u64>().ok());
    match announced {
        Some(length) if length > app.body_limit_bytes as u64 => Err(body_too_large(app)),
        _ => Ok(()),
    }
}

/// The response to a body above the limit, whether its size was declared or not.
pub(crate) fn body_too_large(app: &App) -> Problem {
    Problem::new(
        ErrorCode::BodyTooLarge,
        format!("A body may have at most {} bytes.", app.body_limit_bytes),
    )
}

fn check_caller(app: &App, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if let Some(authorization) = headers.get(AUTHORIZATION) {
        let token = authorization.to_str().ok().and_then(bearer_token);
        return match token {
            Some(token) if app.token.matches(token) => Ok(()),
            _ => Err(Problem::new(
                ErrorCode::Unauthorized,
                "The token is not the one of this daemon.",
            )),
        };
    }
    let Some(session) = login_of(app, headers) else {
        return Err(Problem::new(
            ErrorCode::Unauthorized,
            "The request carries no token.",
        ));
    };
    // The browser sends the cookie whether or not our page made the request; the form token comes only from
    // our page.
    let token = headers
        .get(FORM_TOKEN_HEADER)
        .and_then(|token| token.to_str().ok())
        .unwrap_or_default();
    if method.is_safe() || session.form_token.matches(token) {
        Ok(())
    } else {
        Err(Problem::new(
            ErrorCode::FormTokenInvalid,
            "A changing request with the page's cookie needs the session's form token.",
        ))
    }
}

fn bearer_token(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether a request uses a host with valid cookies.
pub(crate) fn keeps_cookies(app: &App, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    host.is_some_and(|host| app.hosts.keeps_cookies(host))
}

/// The login of a request's cookie.
pub(crate) fn login_of(app: &App, headers: &HeaderMap) -> Option<SignedIn> {
    if !keeps_cookies(app, headers) {
        return None;
    }
    let today = SystemTime::now();
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|cookies| cookies.to_str().ok())
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .filter(|(key, _)| *key == PAGE_COOKIE)
        .find_map(|(_, value)| app.logins.find(value, today))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_found_behind_its_scheme() {
        for (authorization, expected) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Basic abc", None),
            ("abc", None),
            ("", None),
        ] {
            assert_eq!(bearer_token(authorization), expected, "{authorization}");
        }
    }
}
