//! The two ends of a connection over any transport.

use std::{fmt, io, net::SocketAddr};

use kernel::Deadline;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

/// How much an in-memory connection holds in each direction: as much as a pipe, so that it fills up as easily.
const MEMORY_BYTES: usize = 64 * 1024;

pub(crate) type ReadHalf = Box<dyn AsyncRead + Send + Unpin>;

pub(crate) type WriteHalf = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection to a language server. Dropping it closes both directions.
pub struct Connection {
    pub(crate) reader: ReadHalf,
    pub(crate) writer: WriteHalf,
}

/// A server could not be reached over TCP.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("cannot connect to {address}")]
    Io {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("{address} did not answer before the deadline")]
    Timeout { address: SocketAddr },
}

impl Connection {
    /// A connection over any two streams, such as the pipes of a child.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
        }
    }

    /// Both ends of a connection within this process.
    pub fn memory() -> (Self, Self) {
        let (ours, theirs) = tokio::io::duplex(MEMORY_BYTES);
        let [ours, theirs] = [ours, theirs].map(|stream| {
            let (reader, writer) = tokio::io::split(stream);
            Self::new(reader, writer)
        });
        (ours, theirs)
    }

    /// Connects to a listening server. Messages are sent at once, however small they are.
    ///
    /// *Cancel safety*: may be dropped at any time; a half-open connection is closed.
    pub async fn tcp(address: SocketAddr, deadline: &Deadline) -> Result<Self, ConnectError> {
        let stream = connect(address, deadline).await?;
        let (reader, writer) = stream.into_split();
        Ok(Self::new(reader, writer))
    }

    /// The two directions, for callers that speak the protocol themselves.
    pub fn into_parts(
        self,
    ) -> (
        impl AsyncRead + Send + Unpin + 'static,
        impl AsyncWrite + Send + Unpin + 'static,
    ) {
        (self.reader, self.writer)
    }
}

async fn connect(address: SocketAddr, deadline: &Deadline) -> Result<TcpStream, ConnectError> {
    let connect = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    tokio::select! {
        stream = connect => stream.map_err(|source| ConnectError::Io { address, source }),
        () = deadline.clone().passed() => Err(ConnectError::Timeout { address }),
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Connection")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kernel::{Clock, ManualClock};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn small_messages_do_not_wait_for_larger_ones() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = connect(address, &Deadline::never()).await.unwrap();
        assert!(stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn who_cannot_be_reached_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let refused = Connection::tcp(address, &Deadline::never()).await.unwrap_err();
        assert_eq!(refused.to_string(), format!("cannot connect to {address}"));
        // An address that never answers: it is reserved for documentation. Some networks refuse it at once.
        let clock = ManualClock::new();
        let time: std::sync::Arc<dyn Clock> = clock.clone();
        let nowhere: SocketAddr = "192.0.2.1:9".parse().unwrap();
        let deadline = Deadline::after(&time, Duration::from_secs(1));
        clock.advance(Duration::from_secs(1));
        assert!(Connection::tcp(nowhere, &deadline).await.is_err());
    }
}
