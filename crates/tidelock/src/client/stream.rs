//! Responses that are read chunk by chunk, and may never end.

use std::io;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::HeaderName;
use hyper::{Request, Response};

use super::{
    Client, ClientError, Interrupts, LOG_PATIENCE, LOOK_AGAIN_AFTER, Paused, Refusal, broken, converse,
    read_whole, within,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Downloaded {
    /// To its end.
    Whole,
    /// Until the user pressed Ctrl-C.
    UntilInterrupted,
}

impl Client {
    /// Requests something and passes each chunk on as it arrives. Returns at the end of the response, or when nothing
    /// has arrived for `silence`.
    pub(crate) fn download(
        &self,
        path: &str,
        headers: &[(HeaderName, String)],
        silence: Duration,
        take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), ClientError> {
        self.download_until(path, headers, silence, &mut Interrupts::default(), take)
            .map(drop)
    }

    /// Like `download`, for something slow to compute: the response itself may also take up to `silence` to begin.
    pub(crate) fn download_patiently(
        &self,
        path: &str,
        headers: &[(HeaderName, String)],
        silence: Duration,
        take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), ClientError> {
        self.read_pieces(path, headers, silence, silence, &mut Interrupts::default(), take)
            .map(drop)
    }

    /// Like `download`, but also returns when the user presses Ctrl-C, after passing on what has arrived by then. The
    /// client [stays](Self::stay).
    pub(crate) fn download_until(
        &self,
        path: &str,
        headers: &[(HeaderName, String)],
        silence: Duration,
        interrupts: &mut Interrupts,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Downloaded, ClientError> {
        self.stay();
        let give_up_at = Instant::now() + LOG_PATIENCE;
        loop {
            let beginning = self.answer_timeout;
            match self.read_pieces(path, headers, beginning, silence, interrupts, &mut take) {
                Err(error) if self.asks_again(&error, give_up_at) => {
                    if self.pause(LOOK_AGAIN_AFTER, interrupts) == Paused::UntilInterrupted {
                        return Ok(Downloaded::UntilInterrupted);
                    }
                }
                read => return read,
            }
        }
    }

    fn read_pieces(
        &self,
        path: &str,
        headers: &[(HeaderName, String)],
        beginning: Duration,
        silence: Duration,
        interrupts: &mut Interrupts,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Downloaded, ClientError> {
        self.runtime.block_on(async {
            let stream = self.connect().await?;
            let request = self.build_get(path, headers)?;
            let reading = converse(stream, async |sender| {
                let mut body = begin(sender, request, beginning).await?.into_body();
                while let Some(frame) = within("say anything", silence, body.frame()).await? {
                    if let Ok(piece) = frame.map_err(broken)?.into_data() {
                        take(&piece).map_err(|source| ClientError::Output { source })?;
                    }
                }
                Ok(Downloaded::Whole)
            });
            tokio::select! {
                biased;
                () = interrupts.next() => Ok(Downloaded::UntilInterrupted),
                outcome = reading => outcome,
            }
        })
    }
}

/// Sends the request, and returns the response if it succeeded.
async fn begin(
    mut sender: SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
    limit: Duration,
) -> Result<Response<Incoming>, ClientError> {
    let sent = sender.send_request(request);
    let response = within("answer", limit, sent).await?.map_err(broken)?;
    if response.status().is_success() {
        return Ok(response);
    }
    let (status, answer) = within("answer", limit, read_whole(response)).await??;
    Err(ClientError::Refused(Box::new(Refusal::read(status, &answer))))
}
