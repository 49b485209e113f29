//! Limits how long a peer may refuse to read. Otherwise it could hold its permit forever.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use kernel::{Clock, Deadline, WaitForDeadline};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How long a write waits for the peer to read.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// A stream on which a write fails if the peer doesn't read for [`WRITE_TIMEOUT`].
#[derive(Debug)]
pub(super) struct WriteLimit<S> {
    stream: S,
    clock: Arc<dyn Clock>,
    patience: Option<WaitForDeadline>,
}

impl<S> WriteLimit<S> {
    pub(super) fn new(stream: S, clock: Arc<dyn Clock>) -> Self {
        Self {
            stream,
            clock,
            patience: None,
        }
    }

    /// Passes a finished attempt through, and limits the wait of a pending one.
    fn limit<T>(&mut self, context: &mut Context<'_>, attempt: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.patience = None;
            return attempt;
        }
        let clock = &self.clock;
        let patience = self
            .patience
            .get_or_insert_with(|| Deadline::after(clock, WRITE_TIMEOUT).passed());
        ready!(Pin::new(patience).poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the peer does not read",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteLimit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteLimit<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(context, attempt)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.limit(context, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_flush(context);
        self.limit(context, attempt)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limit(context, attempt)
    }
}
