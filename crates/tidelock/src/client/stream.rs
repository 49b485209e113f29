//! Answers that are read piece by piece, and may go on for ever.

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

/// How far an answer was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Downloaded {
    /// To its end.
    Whole,
    /// Until somebody pressed Ctrl-C.
    UntilInterrupted,
}

impl Client {
    /// Asks for something that comes piece by piece, and hands each piece on as it comes. It returns at the end of
    /// the answer, or when nothing has come for `silence`.
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

    /// The same for something that may take a while to find out: also the answer may begin as late as `silence`.
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

    /// The same, but it also returns when somebody presses Ctrl-C. What has come by then was handed on. Whoever asks for this
    /// [stays](Self::stay).
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

/// Sends the request, and returns the answer if it is what was asked for.
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
