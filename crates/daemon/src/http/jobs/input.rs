//! The standard input of a command, sent by its client while it runs.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONNECTION, HeaderValue, UPGRADE};
use jobs::ChangeError;
use kernel::Deadline;
use protocol::{
    ErrorCode, INPUT_DATA, INPUT_END, INPUT_HELLO, INPUT_OVER, INPUT_PIECE_BYTES, INPUT_PROTOCOL,
    INPUT_TAKEN, JobId,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

use super::problems;
use crate::app::App;
use crate::http::ids::Id;
use crate::http::problem::Problem;
use crate::http::sse::take_place;
use crate::jobs::{ClientInput, Input, Taken, acts};
use crate::server::{Switch, Switched};

/// Sends the standard input of a command that was submitted with `attach_stdin`.
///
/// The connection is upgraded to `tidelock-input`. The client then sends frames with the input, and receives
/// how much of it the command has read. If the connection closes before the end frame, that also ends the
/// input, and the job reports that it was cut off.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/input", operation_id = "feed_job", tag = "jobs",
    responses((status = 101, description = "The connection goes on as `tidelock-input`."), problems::Feed),
)]
pub(crate) async fn connect(
    State(app): State<Arc<App>>,
    Id(id): Id<JobId>,
    request: Request,
) -> Result<Response, Problem> {
    let asks = request
        .headers()
        .get(UPGRADE)
        .is_some_and(|wanted| wanted.as_bytes().eq_ignore_ascii_case(INPUT_PROTOCOL.as_bytes()));
    if !asks {
        let detail = format!("This path takes requests with `Upgrade: {INPUT_PROTOCOL}`.");
        return Err(Problem::new(ErrorCode::InvalidRequest, detail));
    }
    let job = acts::find(&app, id).await?;
    if job.record.state.is_terminal() {
        return Err(ChangeError::Ended { job: Box::new(job) }.into());
    }
    let Some(input) = app.job_inputs.client(id) else {
        let detail = "Somebody sends input to this job already.";
        return Err(Problem::new(ErrorCode::InvalidRequest, detail));
    };
    let place = take_place(&app)?;
    let switch = Switch::new(move |switched| async move {
        serve(&app, id, input, switched).await;
        drop(place);
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(INPUT_PROTOCOL));
    response.extensions_mut().insert(switch);
    Ok(response)
}

/// Carries frames both ways until the command stops reading, or one side disconnects.
async fn serve(app: &App, id: JobId, input: ClientInput, switched: Switched) {
    let Switched {
        mut reader,
        writer,
        stop: _,
        cut,
    } = switched;
    // The daemon waits for the client's first frame.
    match header(&mut reader).await {
        Some((INPUT_HELLO, 0)) => {}
        _ => return,
    }
    let ClientInput { pieces, taken, .. } = &input;
    let mut told = std::pin::pin!(tell(taken.clone(), writer));
    let heard = async {
        match hear(pieces, reader).await {
            // The client has sent everything; now it only listens.
            Heard::All => std::future::pending().await,
            // Dropping the sender tells the command.
            Heard::Cut => {}
        }
    };
    // A job that is cancelled before it starts never takes its end of the input.
    let (never, scope) = (Deadline::never(), app.life.scope());
    let over = app.jobs.wait(id, &never, &scope);
    tokio::select! {
        biased;
        () = &mut told => {}
        () = heard => {}
        _ = cut.wait() => {}
        _ = over => {
            let has_run = taken.borrow().is_over;
            if has_run {
                told.await;
            }
        }
    }
}

/// How the client's input ended.
enum Heard {
    All,
    Cut,
}

/// Forwards what the client sends.
async fn hear(pieces: &mpsc::Sender<Input>, mut reader: impl AsyncRead + Unpin) -> Heard {
    let mut next = Input::Hello;
    loop {
        let is_last = matches!(next, Input::End);
        // If the command stopped reading, the other direction reports it.
        if pieces.send(next).await.is_err() || is_last {
            return Heard::All;
        }
        next = match header(&mut reader).await {
            Some((INPUT_DATA, length)) if length <= INPUT_PIECE_BYTES => {
                let mut piece = vec![0; length];
                if reader.read_exact(&mut piece).await.is_err() {
                    return Heard::Cut;
                }
                Input::Data(Bytes::from(piece))
            }
            Some((INPUT_END, 0)) => Input::End,
            _ => return Heard::Cut,
        };
    }
}

/// The kind and length of the next frame; `None` at the end.
async fn header(reader: &mut (impl AsyncRead + Unpin)) -> Option<(u8, usize)> {
    let kind = reader.read_u8().await.ok()?;
    let length = reader.read_u32().await.ok()?;
    Some((kind, usize::try_from(length).ok()?))
}

/// Tells the client how much was read, until the command stops reading.
async fn tell(mut taken: watch::Receiver<Taken>, mut writer: impl AsyncWrite + Unpin) {
    while taken.changed().await.is_ok() {
        let Taken { bytes, is_over } = *taken.borrow_and_update();
        let mut frame = [0; 9];
        frame[0] = if is_over { INPUT_OVER } else { INPUT_TAKEN };
        frame[1..].copy_from_slice(&bytes.to_be_bytes());
        let is_told = writer.write_all(&frame).await.is_ok() && writer.flush().await.is_ok();
        if !is_told || is_over {
            return;
        }
    }
}
