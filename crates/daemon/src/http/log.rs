//! The durable log over HTTP: its state, its integrity, and copies of it.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use eventlog::{ExportError, ServerInfo};
use http::header::CONTENT_TYPE;
use protocol::{
    ARCHIVE_MEDIA_TYPE, BackupLog, ErrorCode, LogBackup, LogCheck, LogIntegrity, LogServer, LogState,
    LogStatus,
};
use tokio::sync::mpsc;

use super::blocking;
use super::body;
use super::log_problem::{BackUpLog, ReadLog, not_backed_up, reason_text};
use super::pieces::{Piece, Source, body_of};
use super::problem::Problem;
use crate::app::App;
use crate::durable::{quarantine::unreadable, sizes_to_wire};

/// How many pieces of an archive, of about 128 KiB each, may wait for the connection. The writer waits if there is no
/// room.
const QUEUE_PIECES: usize = 4;

/// Returns the state of the log and its current size.
#[utoipa::path(
    get, path = "/v1/log", operation_id = "show_log", tag = "log",
    responses((status = 200, description = "The state of the log.", body = LogStatus), ReadLog),
)]
pub(crate) async fn show(State(app): State<Arc<App>>) -> Result<Json<LogStatus>, Problem> {
    let durable = &app.durable;
    let sizes = durable.health.measure().await?;
    let refusal = durable.health.refusal();
    Ok(Json(LogStatus {
        engine: durable.engine,
        state: refusal
            .as_ref()
            .map_or(LogState::Writable, |_| LogState::Refusing),
        reason: refusal.as_ref().map(reason_text),
        lost_writes: durable.log.lost_writes().map(|path| path.display().to_string()),
        server: durable.log.server().map(server_to_wire),
        sizes: sizes_to_wire(&sizes),
    }))
}

fn server_to_wire(server: &ServerInfo) -> LogServer {
    let ServerInfo {
        place,
        version,
        encryption,
    } = server.clone();
    LogServer {
        place,
        version,
        encryption,
    }
}

/// Reads the whole log and lists what is damaged. The time it takes depends on the size of the log.
#[utoipa::path(
    post, path = "/v1/log/check", operation_id = "check_log", tag = "log",
    responses((status = 200, description = "What was found.", body = LogCheck), ReadLog),
)]
pub(crate) async fn check(State(app): State<Arc<App>>) -> Result<Json<LogCheck>, Problem> {
    let checked = app.durable.log.check_with(unreadable).await;
    let problems = checked?;
    let state = if problems.is_empty() {
        LogIntegrity::Whole
    } else {
        tracing::error!(?problems, "the log is damaged");
        LogIntegrity::Damaged
    };
    Ok(Json(LogCheck { state, problems }))
}

/// Writes a copy of the log to a new file on the daemon's machine, while the log is in use.
///
/// The copy is a complete log that a daemon can start with.
#[utoipa::path(
    post, path = "/v1/log/backup", operation_id = "back_up_log", tag = "log", request_body = BackupLog,
    responses((status = 200, description = "The copy is on disk.", body = LogBackup), BackUpLog),
)]
pub(crate) async fn back_up(
    State(app): State<Arc<App>>,
    body::Json(request): body::Json<BackupLog>,
) -> Result<Json<LogBackup>, Problem> {
    let path = Path::new(&request.path);
    if !path.is_absolute() {
        let detail = "In `path`: an absolute path is needed, since the daemon works in another directory.";
        return Err(Problem::new(ErrorCode::InvalidRequest, detail).in_field("path"));
    }
    let left_out = app.durable.log.backup(path).await.map_err(not_backed_up)?;
    let written = path.to_owned();
    let size_bytes = blocking(move || written.metadata().map(|found| found.len())).await?;
    let size_bytes = size_bytes.map_err(Problem::internal)?;
    tracing::info!(path = request.path, size_bytes, "a backup of the log was written");
    Ok(Json(LogBackup {
        path: request.path,
        size_bytes,
        left_out,
    }))
}

/// Exports everything in the log at one point in time, as an archive that doesn't depend on the engine.
///
/// If the response ends early, the received data isn't a valid archive.
#[utoipa::path(
    get, path = "/v1/log/export", operation_id = "export_log", tag = "log",
    responses((status = 200, description = "The archive.", content_type = "application/vnd.tidelock.archive")),
)]
pub(crate) async fn export(State(app): State<Arc<App>>) -> Response {
    let (sender, pieces) = mpsc::channel(QUEUE_PIECES);
    let log = app.durable.log.clone();
    let archive = Archive {
        pieces,
        export: Some(Box::pin(async move {
            // The compressor writes large pieces, so no buffer is needed in between.
            eventlog::export(&log, PieceWriter { sender }).await.map(drop)
        })),
    };
    ([(CONTENT_TYPE, ARCHIVE_MEDIA_TYPE)], body_of(archive)).into_response()
}

/// Passes what is written to the connection. Used on a thread that may block.
struct PieceWriter {
    sender: mpsc::Sender<Bytes>,
}

impl io::Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sender
            .blocking_send(Bytes::copy_from_slice(bytes))
            .map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "nobody reads the archive any more"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An archive that is being written. The work advances only as the client reads.
struct Archive {
    pieces: mpsc::Receiver<Bytes>,
    export: Option<Export>,
}

type Export = Pin<Box<dyn Future<Output = Result<(), ExportError>> + Send>>;

impl Source for Archive {
    async fn next(mut self) -> Piece<Self> {
        loop {
            let Some(export) = &mut self.export else {
                let piece = self.pieces.recv().await?;
                return Some((self, Ok(piece)));
            };
            tokio::select! {
                biased;
                done = export => match done {
                    Ok(()) => self.export = None,
                    Err(error) => {
                        tracing::warn!(%error, "an export was broken off");
                        return Some((self, Err(io::Error::other(error))));
                    }
                },
                Some(piece) = self.pieces.recv() => return Some((self, Ok(piece))),
            }
        }
    }
}
