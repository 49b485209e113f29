//! Ids in requests.

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use protocol::{
    ChangesetId, ErrorCode, JobId, PermissionId, PlanId, RescuedId, SessionId, TurnId, WorkspaceId,
};

use super::problem::Problem;
use crate::app::App;

/// An id of one kind of thing.
pub(crate) trait IdOf: FromStr + Send + 'static {
    /// What it identifies, with an article.
    const KIND: &'static str;
    /// The error code for an unknown id.
    const NOT_FOUND: ErrorCode;
}

macro_rules! ids {
    ($($id:ident, $kind:literal, $code:ident;)*) => {$(
        impl IdOf for $id {
            const KIND: &'static str = $kind;
            const NOT_FOUND: ErrorCode = ErrorCode::$code;
        }
    )*};
}

ids! {
    ChangesetId, "a changeset", ChangesetNotFound;
    JobId, "a job", JobNotFound;
    PermissionId, "a question", PermissionNotFound;
    PlanId, "a plan", PlanNotFound;
    RescuedId, "rescued content", RescuedNotFound;
    SessionId, "a session", SessionNotFound;
    TurnId, "a turn", TurnNotFound;
    WorkspaceId, "a workspace", WorkspaceNotFound;
}

/// Parses an id. A text that isn't an id of this kind names nothing that exists, so it is "not found".
pub(crate) fn id_of<T: IdOf>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| {
        let detail = format!("`{}` is not the id of {}.", text.escape_debug(), T::KIND);
        Problem::new(T::NOT_FOUND, detail)
    })
}

/// Parses the id in a field.
pub(crate) fn id_in<T: IdOf>(field: &str, text: &str) -> Result<T, Problem> {
    id_of(text).map_err(|problem| problem.in_field(field))
}

/// The id in the path of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Id<T>(pub(crate) T);

impl<T: IdOf> FromRequestParts<Arc<App>> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, app).await {
            Ok(Path(text)) => id_of(&text).map(Self),
            Err(_) => Err(not_text::<T>(noun::<T>())),
        }
    }
}

/// The id in the path of a request, and the id of something that belongs to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids<T, U>(pub(crate) T, pub(crate) U);

impl<T: IdOf, U: IdOf> FromRequestParts<Arc<App>> for Ids<T, U> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match Path::<(String, String)>::from_request_parts(parts, app).await {
            Ok(Path((outer, inner))) => Ok(Self(id_of(&outer)?, id_of(&inner)?)),
            Err(_) => Err(not_text::<T>(&format!(
                "{} or of the {}",
                noun::<T>(),
                noun::<U>()
            ))),
        }
    }
}

fn noun<T: IdOf>() -> &'static str {
    T::KIND.trim_start_matches("a ")
}

fn not_text<T: IdOf>(of: &str) -> Problem {
    Problem::new(T::NOT_FOUND, format!("The id of the {of} is not UTF-8."))
}
