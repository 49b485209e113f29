//! A connection that answers with a stream of events, and takes no further requests.
//!
//! hyper keeps two buffers of 8 KiB for each connection, and buffers up to 64 KiB for a client that doesn't read. A
//! stream may stay open for hours, and there may be thousands of them. So hyper releases the connection before the
//! answer, and this module writes the rest of it: a reader costs what its source holds and, while it doesn't read,
//! [`GATHER_BYTES`] and a piece.

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::{Buf, Bytes};
use http::header::{CONNECTION, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::{Response, Version};
use hyper::body::Body as _;
use kernel::Scope;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How much to write at once. The rest stays in its source until the reader has taken this.
const GATHER_BYTES: usize = 16 * 1024;

/// Makes hyper release the connection, because its answer is written here.
#[derive(Clone, Copy, Debug, Error)]
#[error("the answer is a stream")]
pub(super) struct LetGo;

/// The answer that ends a connection, once there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct LastAnswer(
    /// Guards the value; held only to set or take it.
    Arc<Mutex<Option<StreamAnswer>>>,
);

impl LastAnswer {
    pub(super) fn put(&self, answer: StreamAnswer) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }

    pub(super) fn take(&self) -> Option<StreamAnswer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[derive(Debug)]
pub(super) struct StreamAnswer {
    head: Vec<u8>,
    body: Body,
    framing: Framing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// After an empty chunk.
    Chunks,
    /// With the connection: an HTTP/1.0 reader doesn't know chunks.
    Connection,
}

impl StreamAnswer {
    pub(super) fn new(response: Response<Body>, version: Version) -> Self {
        let (mut parts, body) = response.into_parts();
        let framing = match version {
            Version::HTTP_09 | Version::HTTP_10 => Framing::Connection,
            _ => Framing::Chunks,
        };
        parts
            .headers
            .insert(CONNECTION, HeaderValue::from_static("close"));
        if framing == Framing::Chunks {
            let chunked = HeaderValue::from_static("chunked");
            parts.headers.insert(TRANSFER_ENCODING, chunked);
        }
        let mut head = format!("HTTP/1.1 {}\r\n", parts.status).into_bytes();
        write_headers(&mut head, &parts.headers);
        Self { head, body, framing }
    }
}

fn write_headers(head: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
}

/// Writes an answer to its end, or until the reader is gone or `cut` is cancelled.
pub(super) async fn serve<S>(stream: S, answer: StreamAnswer, cut: Scope) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (reader, writer) = tokio::io::split(stream);
    tokio::select! {
        written = write(writer, answer) => written,
        () = gone(reader) => Ok(()),
        _ = cut.wait() => Ok(()),
    }
}

/// Waits until the reader disconnects. What it sends in the meantime isn't read.
async fn gone(mut reader: impl AsyncRead + Unpin) {
    match reader.read(&mut [0]).await {
        Ok(0) | Err(_) => {}
        Ok(_) => pending().await,
    }
}

async fn write(mut writer: impl AsyncWrite + Unpin, answer: StreamAnswer) -> io::Result<()> {
    let StreamAnswer { head, body, framing } = answer;
    writer.write_all(&head).await?;
    drop(head);
    let mut body = pin!(body);
    loop {
        let (mut gathered, is_end) = gather(body.as_mut(), framing).await?;
        writer.write_all_buf(&mut gathered).await?;
        writer.flush().await?;
        if is_end {
            return writer.shutdown().await;
        }
    }
}

/// Waits for data, and returns the available part of a body, up to a size, and whether the body has ended.
async fn gather(mut body: Pin<&mut Body>, framing: Framing) -> io::Result<(Gathered, bool)> {
    let mut gathered = Gathered::default();
    let is_end = poll_fn(|context: &mut Context<'_>| {
        while gathered.bytes < GATHER_BYTES {
            match body.as_mut().poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(piece) = frame.into_data() {
                        gathered.put_piece(piece, framing);
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(io::Error::other(error))),
                Poll::Ready(None) => return Poll::Ready(Ok(true)),
                Poll::Pending if gathered.bytes == 0 => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(false))
    })
    .await?;
    if is_end && framing == Framing::Chunks {
        gathered.put(Bytes::from_static(b"0\r\n\r\n"));
    }
    Ok((gathered, is_end))
}

/// Pieces that are being written. They aren't copied: all readers of a turn share them.
#[derive(Debug, Default)]
struct Gathered {
    parts: VecDeque<Bytes>,
    bytes: usize,
}

impl Gathered {
    /// Adds a piece. Skips an empty one, because it would mean the end.
    fn put_piece(&mut self, piece: Bytes, framing: Framing) {
        match framing {
            _ if piece.is_empty() => {}
            Framing::Connection => self.put(piece),
            Framing::Chunks => {
                self.put(Bytes::from(format!("{:x}\r\n", piece.len())));
                self.put(piece);
                self.put(Bytes::from_static(b"\r\n"));
            }
        }
    }

    fn put(&mut self, part: Bytes) {
        self.bytes += part.len();
        self.parts.push_back(part);
    }
}

impl Buf for Gathered {
    fn remaining(&self) -> usize {
        self.bytes
    }

    fn chunk(&self) -> &[u8] {
        self.parts.front().map_or(&[], |part| part)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let filled = slices.iter_mut().zip(&self.parts);
        filled.map(|(slice, part)| *slice = IoSlice::new(part)).count()
    }

    fn advance(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(front) = self.parts.front_mut() {
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.parts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;
    use kernel::CancellationToken;
    use tokio::io::duplex;

    use super::*;

    /// A body of these pieces.
    struct Pieces(VecDeque<&'static str>);

    impl hyper::body::Body for Pieces {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<io::Result<hyper::body::Frame<Bytes>>>> {
            let piece = self.0.pop_front();
            Poll::Ready(piece.map(|piece| Ok(hyper::body::Frame::data(Bytes::from_static(piece.as_bytes())))))
        }
    }

    async fn written(version: Version, room: usize) -> String {
        let pieces = Pieces(VecDeque::from(["one\n", "", "two and more\n"]));
        let response = Response::builder().header(CONTENT_TYPE, "text/event-stream");
        let answer = StreamAnswer::new(response.body(Body::new(pieces)).unwrap(), version);
        let (mut client, server) = duplex(room);
        let cut = CancellationToken::new();
        let mut text = String::new();
        let (served, read) = tokio::join!(
            serve(server, answer, cut.scope()),
            client.read_to_string(&mut text)
        );
        served.unwrap();
        read.unwrap();
        text
    }

    #[tokio::test]
    async fn a_stream_is_written_as_its_reader_understands_it() {
        for room in [1, 7, 4096] {
            let chunks = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\
                 transfer-encoding: chunked\r\n\r\n4\r\none\n\r\nd\r\ntwo and more\n\r\n0\r\n\r\n";
            assert_eq!(written(Version::HTTP_11, room).await, chunks, "{room}");
            let plain = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                 one\ntwo and more\n";
            assert_eq!(written(Version::HTTP_10, room).await, plain, "{room}");
        }
    }
}
