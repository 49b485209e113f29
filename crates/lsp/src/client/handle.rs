//! The handle that callers hold.

use std::{sync::Arc, time::Duration};

use kernel::{Clock, Deadline, Scope};
use process::Tasks;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Closed, Counters, Flush, Notice, Request, reader, shared::ClientShared, writer};
use crate::wire::{Connection, FrameLimits, ResponseError, Unnumbered};

/// A client of one language server. Clones share the connection; dropping the last one closes it.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<Handle>,
}

/// Closes the client when the last handle is dropped. The tasks hold the shared state, but not this.
#[derive(Debug)]
struct Handle {
    shared: Arc<ClientShared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared
            .close(Closed::Asked("the client is no longer used".to_owned()));
    }
}

impl Client {
    /// Starts the connection. Unsolicited messages from the server go to `incoming`.
    pub fn start(
        connection: Connection,
        settings: ClientSettings,
        incoming: Arc<dyn Incoming>,
        tasks: &Tasks,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let shared = Arc::new(ClientShared::new(settings, clock));
        tasks.spawn(
            "lsp-reader",
            reader::run(Arc::clone(&shared), connection.reader, incoming),
        );
        tasks.spawn("lsp-writer", writer::run(Arc::clone(&shared), connection.writer));
        Self {
            handle: Arc::new(Handle { shared }),
        }
    }

    /// Sends a request. Parameters of `()` or `None` are left out.
    ///
    /// This call queues the request, not the first poll, so the order of calls is the order on the wire. The request
    /// ends with the answer, at the deadline, with the scope, or with the connection, whichever comes first.
    ///
    /// *Cancel safety*: dropping the future abandons the request and tells the server.
    pub fn request<P: Serialize + ?Sized>(
        &self,
        method: &str,
        params: &P,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Request {
        let message = Unnumbered::new(method, params);
        Request::start(&self.handle.shared, method, message, deadline, scope)
    }

    /// Sends a notification. Parameters of `()` or `None` are left out.
    ///
    /// Like a request, it takes its position in the queue at once. The future ends when the message has been accepted,
    /// which only takes time if the server isn't reading.
    ///
    /// *Cancel safety*: dropping the future withdraws the message if it has not been accepted.
    pub fn notify<P: Serialize + ?Sized>(&self, method: &str, params: &P, deadline: &Deadline) -> Notice {
        let message = Unnumbered::new(method, params);
        Notice::start(&self.handle.shared, method, message, deadline)
    }

    /// Waits until everything that was queued before this call has been written.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub fn flush(&self, deadline: &Deadline) -> Flush {
        Flush::start(&self.handle.shared, deadline)
    }

    /// Waits until the connection has ended, and returns why.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn closed(&self) -> Arc<Closed> {
        self.handle.shared.closed().await
    }

    pub fn why_closed(&self) -> Option<Arc<Closed>> {
        self.handle.shared.lock().closed().cloned()
    }

    /// Closes the connection at once. Queued messages are dropped; pending requests get the reason.
    pub fn close(&self, reason: impl Into<String>) {
        self.handle.shared.close(Closed::Asked(reason.into()));
    }

    pub fn pending(&self) -> usize {
        self.handle.shared.lock().pending()
    }

    pub fn queued(&self) -> usize {
        self.handle.shared.lock().queued()
    }

    pub fn counters(&self) -> Counters {
        self.handle.shared.lock().counters
    }
}

/// Receives unsolicited messages from a server, in order.
///
/// The reader task makes the calls: they must not block, and nothing else is read while one runs.
pub trait Incoming: Send + Sync + 'static {
    fn notification(&self, method: &str, params: Option<&RawValue>);

    /// A request from the server. Answer unknown methods with
    /// [`ResponseError::method_not_found`](crate::ResponseError::method_not_found).
    fn request(&self, method: &str, params: Option<&RawValue>) -> Result<serde_json::Value, ResponseError>;
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientSettings {
    pub limits: FrameLimits,
    /// How long a message may take from its first byte to its last.
    pub message_time: Duration,
    /// How long the server may take to read the next byte that we write.
    pub stall_time: Duration,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            limits: FrameLimits::default(),
            message_time: Duration::from_secs(30),
            stall_time: Duration::from_secs(30),
        }
    }
}
