//! Forms on their way in. A form counts only if it carries the token that our own page put into it.

use std::sync::Arc;

use axum::Form;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use protocol::ErrorCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::PageError;
use super::sign_in::Visitor;
use crate::app::App;
use crate::http::read_body;

/// The name of the field with the token.
const TOKEN_FIELD: &str = "form_token";

/// A form that was sent from a page of this session.
#[derive(Debug)]
pub(super) struct OwnForm<T> {
    pub(super) visitor: Visitor,
    pub(super) fields: T,
}

#[derive(Deserialize)]
struct TokenField {
    #[serde(default)]
    form_token: String,
}

impl<T: DeserializeOwned> FromRequest<Arc<App>> for OwnForm<T> {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        use axum::extract::FromRequestParts;
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, app)
            .await
            .map_err(IntoResponse::into_response)?;
        let bytes = read_body(app, body).await.map_err(IntoResponse::into_response)?;
        let again = || Request::from_parts(parts.clone(), Body::from(bytes.clone()));

        let token: TokenField = parse(again()).await?;
        if !visitor.session.form_token.matches(&token.form_token) {
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

/// The field that makes a form ours.
pub(super) fn token_field(visitor: &Visitor) -> Markup {
    html! {
        input type="hidden" name=(TOKEN_FIELD) value=(visitor.session.form_token.reveal());
    }
}
