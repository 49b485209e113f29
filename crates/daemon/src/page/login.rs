//! Who may load the page: a browser that opened a one-time link.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::HeaderMap;
use http::header::SET_COOKIE;
use http::request::Parts;
use serde::Deserialize;

use crate::access::SignedIn;
use crate::app::App;
use crate::http::Problem;
use crate::http::guard::{PAGE_COOKIE, keeps_cookies, login_of};
use crate::needs::{self, Needs};
use crate::page::parts::error::PageError;

/// A signed-in visitor. A handler that takes one rejects everybody else.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) login: SignedIn,
    /// What needs the visitor's attention. Every page shows the count.
    pub(super) needs: Arc<Needs>,
}

impl FromRequestParts<Arc<App>> for Visitor {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, PageError> {
        match login_of(app, &parts.headers) {
            Some(login) => Ok(Self {
                login,
                needs: Arc::new(needs::read(app).await),
            }),
            None => Err(PageError::signed_out("Sign in to see this Tidelock daemon.")),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Link {
    #[serde(default)]
    code: String,
}

pub(super) async fn open(
    State(app): State<Arc<App>>,
    link: Result<Query<Link>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Response> {
    // A query that can't be parsed has no code.
    let code = link.map(|Query(link)| link.code).unwrap_or_default();
    if !keeps_cookies(&app, &headers) {
        return Ok(elsewhere(&app, &code));
    }
    let cookie = app
        .logins
        .redeem(&code, app.clock.now(), SystemTime::now())
        .map_err(|error| Problem::internal(error).into_response())?;
    match cookie {
        Some(secret) => {
            tracing::info!("a browser has signed in");
            // Without a lifetime, the cookie ends with the browser.
            let cookie = format!(
                "{PAGE_COOKIE}={}; Path=/; HttpOnly; SameSite=Strict",
                secret.reveal()
            );
            Ok(([(SET_COOKIE, cookie)], Redirect::to("/")).into_response())
        }
        // A signed-in visitor may open the link again, for example by going back.
        None if login_of(&app, &headers).is_some() => Ok(Redirect::to("/").into_response()),
        None => Err(PageError::signed_out("This link was already used or has expired.").into_response()),
    }
}

/// Redirects a browser with a valid link to the page's own host. Other browsers don't learn that host.
fn elsewhere(app: &App, code: &str) -> Response {
    if app.logins.knows_code(code, app.clock.now()) {
        let page = app.hosts.page_origin();
        Redirect::to(&format!("{page}/open?code={code}")).into_response()
    } else {
        PageError::signed_out("This link was already used or has expired.").into_response()
    }
}

#[cfg(test)]
impl Visitor {
    pub(super) fn example() -> Self {
        use crate::access::{Logins, Secret};
        let logins = Logins::new(&Secret::generate().unwrap());
        let (now, today) = (std::time::Instant::now(), SystemTime::now());
        let code = logins.make_code(now).unwrap();
        let cookie = logins.redeem(code.reveal(), now, today).unwrap().unwrap();
        Self {
            login: logins.find(cookie.reveal(), today).unwrap(),
            needs: Arc::default(),
        }
    }
}
