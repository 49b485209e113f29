//! Forms: how a page renders one, and how a submitted one is read. A form counts only if it carries the token that our
//! own page put into it. A handler calls the act and ends with [`done`]; it decides nothing itself.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

use axum::Form;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::response::{IntoResponse, Redirect, Response};
use http::request::Parts;
use maud::{Markup, PreEscaped, Render, html};
use protocol::ErrorCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::PageError;
use crate::app::App;
use crate::http::read_body;
use crate::page::login::Visitor;

const TOKEN_FIELD: &str = "form_token";

/// The id in a URL. An id that can't be parsed is treated like an unknown one.
#[derive(Debug)]
pub(crate) struct PathId(pub(crate) String);

impl FromRequestParts<Arc<App>> for PathId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        let id = Path::<String>::from_request_parts(parts, app).await;
        Ok(Self(id.map(|Path(id)| id).unwrap_or_default()))
    }
}

/// A form that was submitted from a page of this login.
#[derive(Debug)]
pub(crate) struct OwnForm<T> {
    pub(crate) visitor: Visitor,
    pub(crate) fields: T,
}

#[derive(Deserialize)]
struct TokenField {
    #[serde(default)]
    form_token: String,
}

impl<T: DeserializeOwned> FromRequest<Arc<App>> for OwnForm<T> {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, app)
            .await
            .map_err(IntoResponse::into_response)?;
        let bytes = read_body(app, body).await.map_err(IntoResponse::into_response)?;
        let again = || Request::from_parts(parts.clone(), Body::from(bytes.clone()));

        let token: TokenField = parse(again()).await?;
        if !visitor.login.form_token.matches(&token.form_token) {
            let detail = html! {
                p { "This form wasn't sent from a page of your session. Nothing was changed. Reload the page and try again." }
            };
            return Err(PageError::new(ErrorCode::FormTokenInvalid, detail).into_response());
        }
        let fields = parse(again()).await?;
        Ok(Self { visitor, fields })
    }
}

async fn parse<T: DeserializeOwned>(request: Request) -> Result<T, Response> {
    match Form::<T>::from_request(request, &()).await {
        Ok(Form(fields)) => Ok(fields),
        Err(rejection) => {
            let detail = html! { p { "Can't read the form: " (rejection) "." } };
            Err(PageError::new(ErrorCode::InvalidRequest, detail).into_response())
        }
    }
}

/// Leaves a notice for the page that follows a form, and redirects there.
pub(crate) fn done(app: &App, visitor: &Visitor, notice: Notice, to: &str) -> Redirect {
    tracing::info!(?notice, "a form of the page was handled");
    app.logins.leave_notice(visitor.login.id, notice);
    Redirect::to(to)
}

pub(crate) fn token_field(visitor: &Visitor) -> Markup {
    hidden(TOKEN_FIELD, visitor.login.form_token.reveal())
}

pub(crate) fn hidden(name: &str, value: impl Render) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}

/// A form with hidden fields, followed by its button and other content.
pub(crate) fn button_form(
    visitor: &Visitor,
    action: &str,
    fields: &[(&str, &dyn Display)],
    button: &Markup,
) -> Markup {
    html! {
        form method="post" action=(action) {
            (token_field(visitor))
            @for (name, value) in fields { (hidden(name, value.to_string())) }
            (button)
        }
    }
}

/// A message that the page shows once, after a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    class: &'static str,
    /// Already rendered, because its subject may no longer exist when somebody reads it.
    text: String,
}

impl Notice {
    pub(crate) fn good(text: Markup) -> Self {
        Self {
            class: "good",
            text: text.into_string(),
        }
    }

    /// It wasn't done, or not as the reader expected.
    pub(crate) fn warn(text: Markup) -> Self {
        Self {
            class: "warn",
            text: text.into_string(),
        }
    }

    /// The log didn't accept it.
    pub(crate) fn not_written(reason: &str) -> Self {
        Self::warn(
            html! { "Can't write this to the log (" (reason) "), so nothing was changed. Try again later." },
        )
    }

    /// It has changed since the reader saw it.
    pub(crate) fn moved(name: &str, state: &str, generation: Option<u64>) -> Self {
        Self::warn(html! {
            "“" (name) "” has moved since you looked: it is now " strong { (state.to_lowercase()) }
            @if let Some(generation) = generation {
                " (generation " (generation) "). Nothing was changed. Check its current state below and try again."
            } @else { ". Nothing was changed." }
        })
    }

    pub(crate) fn render(&self) -> Markup {
        html! {
            div class={ "notice " (self.class) } role="status" { p { (PreEscaped(&self.text)) } }
        }
    }
}
