//! Accepts connections on each listener, up to a limit, until the daemon stops.

use std::future::Future;
use std::io;
use std::time::Duration;

use kernel::Deadline;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::connection::{Context, serve};
use super::connections::{ConnectionPool, PooledConnection};
use super::permits::MAX_CONNECTIONS;
use crate::access::Transport;
use crate::http::consent::Peer;
use process::Tasks;

/// How long to pause after the system refused a connection, typically because it ran out of descriptors. Then only the
/// end of another connection helps, and retrying at once would keep a core busy.
const PAUSE_AFTER_REFUSAL: Duration = Duration::from_millis(200);

pub(super) trait Listener: Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;
    const TRANSPORT: Transport;

    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// The process at the other end, if the system reports it.
    fn peer(stream: &Self::Stream) -> Peer;
}

impl Listener for TcpListener {
    type Stream = TcpStream;
    const TRANSPORT: Transport = Transport::Tcp;

    async fn next(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        // Answers are small and complete; waiting for more data would only delay them.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn peer(_stream: &TcpStream) -> Peer {
        Peer(None)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;
    const TRANSPORT: Transport = Transport::Unix;

    async fn next(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|(stream, _)| stream)
    }

    fn peer(stream: &UnixStream) -> Peer {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        // A process that this daemon can't see, such as one in another container, has the pid 0.
        Peer(
            pid.and_then(|pid| u32::try_from(pid).ok())
                .filter(|pid| *pid != 0),
        )
    }
}

/// Accepts connections until the daemon stops. Dropping the listener at the end refuses later ones.
pub(super) async fn accept<L: Listener>(listener: L, context: Context, connections: Tasks) {
    let pool = ConnectionPool::new(MAX_CONNECTIONS);
    let stop = context.stop.clone();
    let mut stopped = stop.wait();
    loop {
        let taken = tokio::select! {
            biased;
            _ = &mut stopped => return,
            taken = take(&listener, &pool) => taken,
        };
        match taken {
            Ok((stream, pooled)) => {
                let context = context.clone();
                let peer = L::peer(&stream);
                connections.spawn("connection", serve(stream, L::TRANSPORT, peer, context, pooled));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, transport = ?L::TRANSPORT, "no connection can be taken at the moment");
                tokio::select! {
                    _ = &mut stopped => return,
                    () = Deadline::after(&context.clock, PAUSE_AFTER_REFUSAL).passed() => {}
                }
            }
        }
    }
}

/// Waits for a connection first and then for a permit, so that idle connections are evicted only when a client
/// connects. So there can be one more connection than permits.
async fn take<L: Listener>(listener: &L, pool: &ConnectionPool) -> io::Result<(L::Stream, PooledConnection)> {
    let stream = listener.next().await?;
    let pooled = pool.take().await?;
    Ok((stream, pooled))
}

/// Whether an error is about the accepted connection rather than the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
            | io::ErrorKind::InvalidInput
    )
}
