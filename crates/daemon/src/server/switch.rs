//! A connection that switches from HTTP to another protocol.
//!
//! A handler answers 101 and attaches a [`Switch`] to the answer. When hyper has released the connection, the switch gets
//! its bytes, in the same task, so a shutdown still waits for the connection.

use std::fmt;
use std::io::Cursor;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use kernel::Scope;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

pub(super) type Next = Box<dyn FnOnce(Switched) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The bytes of a connection that has stopped speaking HTTP.
pub(crate) struct Switched {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// Cancelled when no new work should start.
    pub(crate) stop: Scope,
    /// Cancelled when work in flight should end, too.
    pub(crate) cut: Scope,
}

impl Switched {
    /// The bytes of a stream, some of which have already been read.
    pub(super) fn new<S>(stream: S, read: Bytes, stop: Scope, cut: Scope) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (reader, writer) = tokio::io::split(stream);
        Self {
            reader: Box::new(Cursor::new(read).chain(reader)),
            writer: Box::new(writer),
            stop,
            cut,
        }
    }
}

/// What an answer with the status 101 attaches for its connection.
#[derive(Clone)]
pub(crate) struct Switch(
    /// Guards what is done next; held only to take it out.
    Arc<Mutex<Option<Next>>>,
);

impl Switch {
    pub(crate) fn new<F>(next: impl FnOnce(Switched) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(Mutex::new(Some(Box::new(|switched| {
            Box::pin(next(switched))
        })))))
    }

    pub(super) fn take(&self) -> Option<Next> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Switch").finish_non_exhaustive()
    }
}
