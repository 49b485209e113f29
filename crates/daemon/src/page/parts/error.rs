//! Errors for people: the same codes and statuses as on the wire, as a page.

use axum::response::{IntoResponse, Response};
use eventlog::LogError;
use http::header::WWW_AUTHENTICATE;
use http::{StatusCode, Uri};
use maud::{Markup, html};
use protocol::ErrorCode;

use super::layout::plain_page;
use crate::http::Problem;
use crate::http::log_problem::reason_text;
use crate::http::problem::CHALLENGE;

#[derive(Debug)]
pub(crate) struct PageError {
    code: ErrorCode,
    detail: Markup,
}

impl PageError {
    pub(crate) fn new(code: ErrorCode, detail: Markup) -> Self {
        Self { code, detail }
    }

    /// The same problem as on the wire, with a link back to the list.
    pub(crate) fn of(problem: &Problem, listed: &str) -> Self {
        Self::new(problem.code(), html! { p { (problem.detail()) } (all(listed)) })
    }

    pub(crate) fn not_there(code: ErrorCode, one: &str, listed: &str, id: &str, why: &str) -> Self {
        let detail = html! {
            p { "There is no " (one) " with the id " code { (id) } ". " (why) }
            (all(listed))
        };
        Self::new(code, detail)
    }

    pub(crate) fn unreadable(error: &LogError) -> Self {
        let detail = html! { p { "Can't read the log: " (reason_text(error)) "." } };
        Self::new(ErrorCode::LogFailed, detail)
    }

    /// The URL asks for a part of a list that doesn't exist.
    pub(crate) fn bad_address(listed: &str) -> Self {
        let detail = html! { p { "The address doesn't say which " (listed) " to show." } (all(listed)) };
        Self::new(ErrorCode::InvalidQuery, detail)
    }

    /// The browser is not signed in.
    pub(crate) fn signed_out(reason: &str) -> Self {
        let detail = html! {
            p { (reason) }
            p { "Run this on the daemon's machine and open the link it prints:" }
            pre { code { "tidelock up" } }
            p { "The link works once, within five minutes. It signs this browser in until you close it, for at most 30 days." }
            p { "The page has its own address, which ends in " code { ".localhost" } ". You are signed in only there, not at the daemon's other addresses." }
        };
        Self::new(ErrorCode::Unauthorized, detail)
    }
}

fn all(listed: &str) -> Markup {
    html! { p { a href={ "/" (listed) } { "All " (listed) } } }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let title = match self.code {
            ErrorCode::Unauthorized => "You are not signed in",
            code => code.title(),
        };
        let content = html! {
            div class="card narrow" {
                h1 { (title) }
                (self.detail)
                @if self.code != ErrorCode::Unauthorized {
                    p { a href="/" { "Back to the overview" } }
                }
            }
        };
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, plain_page(title, &content)).into_response();
        if self.code == ErrorCode::Unauthorized {
            response.headers_mut().insert(WWW_AUTHENTICATE, CHALLENGE);
        }
        response
    }
}

pub(crate) fn not_found(uri: &Uri) -> Response {
    let path = uri.path();
    PageError::new(
        ErrorCode::NotFound,
        html! { p { "There is no page at " code { (path) } "." } },
    )
    .into_response()
}
