//! A client on a stream of lines, from its first message to its last.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use kernel::{CancellationToken, Cause};
use rmcp::RoleServer;
use rmcp::service::{RunningService, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken as LibraryToken;

use super::handler::Handler;
use crate::server::Switched;

/// The longest line that a client may send. A body over HTTP may have a quarter of this, and a text grows when it is
/// encoded as JSON. Longer lines are dropped; `tidelock mcp` answers them.
pub(super) const LINE_LIMIT_BYTES: usize = 4 * 1024 * 1024;

/// Serves a client until either side ends the stream.
pub(super) async fn serve(handler: Handler, gone: CancellationToken, switched: Switched) {
    let Switched {
        reader,
        writer,
        stop,
        cut,
    } = switched;
    let reader = NoticeEnd { reader, gone };
    let transport = AsyncRwTransport::new_server(reader, writer).with_max_line_length(LINE_LIMIT_BYTES);
    let token = LibraryToken::new();
    let served = tokio::select! {
        served = begin(handler, transport, token.clone()) => served,
        _ = stop.wait() => return,
    };
    let running = match served {
        Ok(running) => running,
        Err(error) => {
            tracing::debug!(%error, "a client did not come to its first request");
            return;
        }
    };
    let mut ended = std::pin::pin!(running.waiting());
    tokio::select! {
        _ = &mut ended => return,
        _ = stop.wait() => token.cancel(),
    }
    // Calls in flight are answered, within a time limit of the library.
    tokio::select! {
        _ = ended => {}
        _ = cut.wait() => {}
    }
}

type Lines = AsyncRwTransport<
    RoleServer,
    NoticeEnd<Box<dyn AsyncRead + Send + Unpin>>,
    Box<dyn AsyncWrite + Send + Unpin>,
>;
type Begun = Result<RunningService<RoleServer, Handler>, ServerInitializeError>;

/// Handles the first messages of a client. It is boxed by hand because the compiler can't prove that the library's
/// future is `Send`.
fn begin(
    handler: Handler,
    transport: Lines,
    token: LibraryToken,
) -> Pin<Box<dyn Future<Output = Begun> + Send>> {
    Box::pin(serve_server_with_ct(handler, transport, token))
}

/// A reader that signals when it ends, for calls that wait for a client that has disconnected.
struct NoticeEnd<R> {
    reader: R,
    gone: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for NoticeEnd<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.reader).poll_read(context, buffer);
        let is_end = match &polled {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
        };
        if is_end {
            self.gone.cancel(Cause::new("the client", "it has left"));
        }
        polled
    }
}
