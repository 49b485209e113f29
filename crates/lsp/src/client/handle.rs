//! The handle that callers hold.

use std::sync::Arc;

use kernel::{Clock, Deadline, Scope};
use process::Tasks;
use serde::Serialize;

use super::{
    ClientSettings, Closed, Counters, Flush, Incoming, Notice, Request, reader, shared::ClientShared, writer,
};
use crate::wire::{Connection, Unnumbered};

/// A client of one language server. Clones are the same client; when the last one is dropped, the connection is
/// closed.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<Handle>,
}

/// Closes the client when the last handle goes. The tasks hold what is shared, and not this.
#[derive(Debug)]
struct Handle {
    shared: Arc<ClientShared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared
            .close(Closed::Asked("nobody uses the client any more".to_owned()));
    }
}

impl Client {
    /// Starts to speak to a server. What it says by itself goes to `incoming`.
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

    /// Asks the server something. Parameters of `()` or `None` are left out.
    ///
    /// The request is queued by this call, not by the first poll: the order of calls is the order on the wire. It ends
    /// with the answer, at the deadline, with the scope, or with the connection, whichever is first.
    ///
    /// *Cancel safety*: dropping the future gives the request up, and the server is told.
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

    /// Tells the server something. Parameters of `()` or `None` are left out.
    ///
    /// It takes its place in the order of calls at once, like a request. The future ends when the message has been
    /// accepted, which only takes time if the server does not read.
    ///
    /// *Cancel safety*: dropping the future takes the message back if it has not been accepted.
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

    /// Waits until the connection is over, and says why it is.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn closed(&self) -> Arc<Closed> {
        self.handle.shared.closed().await
    }

    /// Why the connection is over, if it is.
    pub fn why_closed(&self) -> Option<Arc<Closed>> {
        self.handle.shared.lock().closed().cloned()
    }

    /// Closes the connection at once; what is queued is not written. Pending requests get the reason.
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
