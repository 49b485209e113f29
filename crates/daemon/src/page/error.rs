//! Errors for people: the same codes and statuses as on the wire, on a page of their own.

use axum::response::{IntoResponse, Response};
use http::header::WWW_AUTHENTICATE;
use http::{StatusCode, Uri};
use maud::{Markup, html};
use protocol::ErrorCode;

use super::layout::plain_page;
use crate::http::problem::CHALLENGE;

/// Why a page, or a form, was refused.
#[derive(Debug)]
pub(super) struct PageError {
    code: ErrorCode,
    detail: Markup,
}

impl PageError {
    pub(super) fn new(code: ErrorCode, detail: Markup) -> Self {
        Self { code, detail }
    }

    /// Somebody is not signed in.
    pub(super) fn signed_out(reason: &str) -> Self {
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

/// The answer to a browser that asks for a page that is not there.
pub(crate) fn not_found(uri: &Uri) -> Response {
    let path = uri.path();
    PageError::new(
        ErrorCode::NotFound,
        html! { p { "There is no page at " code { (path) } "." } },
    )
    .into_response()
}
