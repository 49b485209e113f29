//! A connection that goes on as something else than HTTP.

use std::os::unix::net::UnixStream as PlainStream;

use hyper::body::Bytes;
use hyper::header::{CONNECTION, HeaderName, HeaderValue, UPGRADE};
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::{Client, ClientError, Credentials, Refusal, read_whole, within};

impl Client {
    /// Agrees with the daemon on another protocol, and hands out the connection, which blocks.
    pub(crate) fn upgrade(
        &self,
        path: &str,
        protocol: &'static str,
        headers: &[(HeaderName, String)],
    ) -> Result<PlainStream, ClientError> {
        self.runtime.block_on(async {
            let stream = self.connect().await?;
            let mut request = self.build(&Method::GET, path, Bytes::new(), Credentials::Token)?;
            let asked = request.headers_mut();
            asked.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            asked.insert(UPGRADE, HeaderValue::from_static(protocol));
            for (name, value) in headers {
                // A header that cannot be sent is not one that we make.
                if let Ok(value) = HeaderValue::from_str(value) {
                    asked.insert(name, value);
                }
            }
            let broken = |source| ClientError::Broken { source };
            let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
                .await
                .map_err(broken)?;
            let exchange = async {
                let response = sender.send_request(request).await.map_err(broken)?;
                if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                    let (status, answer) = read_whole(response).await?;
                    return Err(ClientError::Refused(Box::new(Refusal::read(status, &answer))));
                }
                hyper::upgrade::on(response).await.map_err(broken)
            };
            let driven = async {
                let connection = connection.with_upgrades();
                tokio::pin!(exchange, connection);
                tokio::select! {
                    biased;
                    outcome = &mut exchange => outcome,
                    _ = &mut connection => exchange.await,
                }
            };
            let upgraded = within("answer", self.answer_timeout, driven).await??;
            let Ok(parts) = upgraded.downcast::<TokioIo<UnixStream>>() else {
                return Err(unusable("it is not the connection that was opened"));
            };
            // The daemon speaks when it is spoken to.
            if !parts.read_buf.is_empty() {
                return Err(unusable("it speaks before it was asked"));
            }
            let stream = parts.io.into_inner().into_std();
            let stream = stream.and_then(|stream| stream.set_nonblocking(false).map(|()| stream));
            stream.map_err(|source| ClientError::Output { source })
        })
    }
}

fn unusable(why: &str) -> ClientError {
    ClientError::Output {
        source: std::io::Error::other(why.to_owned()),
    }
}
