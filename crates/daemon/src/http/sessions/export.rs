//! Exports a session as a document, piece by piece.

use std::io;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use protocol::SessionId;
use serde::Deserialize;
use sessions::{Export, ExportFormat};

use super::problems;
use crate::app::App;
use crate::http::ids::Id;
use crate::http::pieces::{Piece, Source, body_of};
use crate::http::problem::Problem;
use crate::http::query::Query;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportParameters {
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[default]
    Json,
    Markdown,
}

/// Exports a session with all of its turns, oldest first, as one JSON object or as Markdown.
///
/// The response is sent turn by turn, so long sessions don't need much memory. If the export fails, the
/// connection is closed.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/export", operation_id = "export_session", tag = "sessions",
    params(
        ("format" = Option<String>, Query, example = "markdown", description = "`json` (if it is left out) or `markdown`."),
    ),
    responses(
        (status = 200, description = "The document.",
         content((serde_json::Value = "application/json"), (String = "text/markdown"))),
        problems::Read,
    ),
)]
pub(crate) async fn export(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    Query(parameters): Query<ExportParameters>,
) -> Result<Response, Problem> {
    let (format, media_type, extension) = match parameters.format.unwrap_or_default() {
        Format::Json => (ExportFormat::Json, "application/json", "json"),
        Format::Markdown => (ExportFormat::Markdown, "text/markdown; charset=utf-8", "md"),
    };
    let export = app.sessions.export(id, format).await?;
    let headers = [
        (CONTENT_TYPE, media_type.to_owned()),
        (
            CONTENT_DISPOSITION,
            format!("inline; filename=\"{id}.{extension}\""),
        ),
    ];
    Ok((headers, body_of(Document(export))).into_response())
}

/// The source of the document.
struct Document(Export);

impl Source for Document {
    async fn next(mut self) -> Piece<Self> {
        match self.0.next_piece().await {
            Ok(Some(piece)) => Some((self, Ok(Bytes::from(piece)))),
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(%error, "an export was broken off");
                Some((self, Err(io::Error::other(error))))
            }
        }
    }
}
