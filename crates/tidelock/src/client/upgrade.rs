//! A connection that switches from HTTP to another protocol.

use std::os::unix::net::UnixStream as PlainStream;

use hyper::StatusCode;
use hyper::header::{CONNECTION, HeaderName, HeaderValue, UPGRADE};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::{Client, ClientError, Refusal, broken, converse, read_whole, within};

impl Client {
    /// Switches to another protocol, and returns the connection in blocking mode.
    pub(crate) fn upgrade(
        &self,
        path: &str,
        protocol: &'static str,
        headers: &[(HeaderName, String)],
    ) -> Result<PlainStream, ClientError> {
        self.runtime.block_on(async {
            let stream = self.connect().await?;
            let mut request = self.build_get(path, headers)?;
            let asked = request.headers_mut();
            asked.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            asked.insert(UPGRADE, HeaderValue::from_static(protocol));
            let upgrading = converse(stream, async |mut sender| {
                let response = sender.send_request(request).await.map_err(broken)?;
                if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                    let (status, answer) = read_whole(response).await?;
                    return Err(ClientError::Refused(Box::new(Refusal::read(status, &answer))));
                }
                hyper::upgrade::on(response).await.map_err(broken)
            });
            let upgraded = within("answer", self.answer_timeout, upgrading).await??;
            let Ok(parts) = upgraded.downcast::<TokioIo<UnixStream>>() else {
                return Err(unusable("it is not the connection that was opened"));
            };
            // The daemon never speaks first.
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
