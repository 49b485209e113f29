//! The query of a request, with explanations of errors in it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Query as AxumQuery};
use http::request::Parts;
use protocol::ErrorCode;
use serde::de::DeserializeOwned;

use super::problem::Problem;
use crate::app::App;

#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match AxumQuery::<T>::from_request_parts(parts, app).await {
            Ok(AxumQuery(parameters)) => Ok(Self(parameters)),
            Err(rejection) => Err(explain(&rejection.body_text())),
        }
    }
}

/// The rejection ends with the parameter and its error.
fn explain(rejection: &str) -> Problem {
    let reason = rejection
        .rsplit_once("query string: ")
        .map_or(rejection, |(_, reason)| reason);
    match reason.split_once(": ") {
        Some((parameter, reason)) => {
            let detail = format!("In `{parameter}`: {reason}.");
            Problem::new(ErrorCode::InvalidQuery, detail).in_field(parameter)
        }
        None => Problem::new(
            ErrorCode::InvalidQuery,
            format!("The query cannot be understood: {reason}."),
        ),
    }
}

/// Checks a limit that a caller asked for.
pub(crate) fn checked_limit(wanted: Option<u32>, usual: u32, most: u32) -> Result<u32, Problem> {
    match wanted {
        None => Ok(usual),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(limit) => {
            let detail = format!("`limit` is {limit}, and must lie between 1 and {most}.");
            Err(Problem::new(ErrorCode::InvalidQuery, detail).in_field("limit"))
        }
    }
}

/// How long one request may wait: a time for which proxies reliably keep a connection open. To wait longer, the caller
/// repeats the request.
const LONGEST_WAIT_MS: u64 = 60_000;

/// Checks a waiting time that a caller asked for.
pub(crate) fn checked_wait(wait_ms: Option<u64>) -> Result<Option<Duration>, Problem> {
    match wait_ms {
        Some(wait_ms) if wait_ms > LONGEST_WAIT_MS => {
            let detail = format!("`wait_ms` is {wait_ms}, and must not be more than {LONGEST_WAIT_MS}.");
            Err(Problem::new(ErrorCode::InvalidQuery, detail).in_field("wait_ms"))
        }
        wait_ms => Ok(wait_ms.map(Duration::from_millis)),
    }
}
