//! The query of a request, explained when it is wrong.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Query as AxumQuery};
use http::request::Parts;
use protocol::ErrorCode;
use serde::de::DeserializeOwned;

use super::problem::Problem;
use crate::app::App;

/// The parameters of a query.
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

/// The rejection ends with the parameter and what is wrong with it.
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

/// A limit that a caller asked for, if it is within bounds.
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
