//! Answers that are read piece by piece, and may go on for ever.

use std::io;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;

use super::{
    Client, ClientError, Credentials, Interrupts, LOG_PATIENCE, LOOK_AGAIN_AFTER, Paused, Refusal,
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
        self.read_pieces(
            path,
            headers,
            (silence, silence),
            &mut Interrupts::default(),
            take,
        )
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
            let limits = (self.answer_timeout, silence);
            match self.read_pieces(path, headers, limits, interrupts, &mut take) {
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
        (beginning, silence): (Duration, Duration),
        interrupts: &mut Interrupts,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Downloaded, ClientError> {
        self.runtime.block_on(async {
            let stream = self.connect().await?;
            let mut request = self.build(&Method::GET, path, Bytes::new(), Credentials::Token)?;
            for (name, value) in headers {
                // A header that cannot be sent is not one that we make.
                if let Ok(value) = HeaderValue::from_str(value) {
                    request.headers_mut().insert(name, value);
                }
            }
            let broken = |source| ClientError::Broken { source };
            let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
                .await
                .map_err(broken)?;
            let exchange = async {
                let response = begin(sender, request, beginning).await?;
                let mut body = response.into_body();
                while let Some(frame) = within("say anything", silence, body.frame()).await? {
                    if let Ok(piece) = frame.map_err(broken)?.into_data() {
                        take(&piece).map_err(|source| ClientError::Output { source })?;
                    }
                }
                Ok(Downloaded::Whole)
            };
            // The connection must be driven for the exchange to go on. When it ends first, what it has read is there.
            let driven = async {
                tokio::pin!(exchange, connection);
                tokio::select! {
                    biased;
                    outcome = &mut exchange => outcome,
                    _ = &mut connection => exchange.await,
                }
            };
            tokio::select! {
                biased;
                () = interrupts.next() => Ok(Downloaded::UntilInterrupted),
                outcome = driven => outcome,
            }
        })
    }
}

/// Sends the request, and returns the answer if it is what was asked for.
async fn begin(
    mut sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
    limit: Duration,
) -> Result<Response<Incoming>, ClientError> {
    let sent = sender.send_request(request);
    let response = within("answer", limit, sent)
        .await?
        .map_err(|source| ClientError::Broken { source })?;
    if response.status().is_success() {
        return Ok(response);
    }
    let (status, answer) = within("answer", limit, read_whole(response)).await??;
    Err(ClientError::Refused(Box::new(Refusal::read(status, &answer))))
}
