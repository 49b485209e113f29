//! The server: our own accept loops around hyper, so that we control limits, time and draining.

mod accept;
mod bind;
mod connection;
mod connections;
mod event_stream;
mod keep_socket;
mod permits;
mod switch;
mod timer;
mod trim_memory;
mod write_limit;

use std::sync::Arc;

use axum::Router;
use kernel::{Clock, Scope};
use tokio::net::{TcpListener, UnixListener};

pub use bind::BindError;
pub(crate) use bind::{Exposure, SocketFile, bind_tcp, bind_unix};
pub(crate) use connection::KeepsItsPlace;
pub(crate) use keep_socket::{Kept, Remade, SocketKeeper};
pub(crate) use permits::stream_permits;
pub(crate) use switch::{Switch, Switched};

use process::Tasks;

use trim_memory::MemoryTrimmer;

#[derive(Clone, Debug)]
pub(crate) struct Server {
    listeners: Tasks,
    connections: Tasks,
    context: connection::Context,
}

impl Server {
    /// Starts to answer on both listeners, until `stop` is cancelled. Connections that are in use then continue until
    /// their request is answered or `cut` is cancelled.
    pub(crate) fn start(
        tcp: TcpListener,
        unix: UnixListener,
        router: Router,
        clock: Arc<dyn Clock>,
        stop: Scope,
        cut: Scope,
    ) -> Self {
        let context = connection::Context {
            router,
            clock,
            stop,
            cut,
            trimmer: MemoryTrimmer::new(),
        };
        let (listeners, connections) = (Tasks::default(), Tasks::default());
        let trimmer = context.trimmer.clone();
        listeners.spawn(
            "give memory back",
            trimmer.run(Arc::clone(&context.clock), context.stop.clone()),
        );
        listeners.spawn(
            "accept tcp",
            accept::accept(tcp, context.clone(), connections.clone()),
        );
        let server = Self {
            listeners,
            connections,
            context,
        };
        server.listen(unix);
        server
    }

    pub(crate) fn listen(&self, unix: UnixListener) {
        let (context, connections) = (self.context.clone(), self.connections.clone());
        self.listeners
            .spawn("accept unix", accept::accept(unix, context, connections));
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.running()
    }

    /// Waits until no listener accepts connections any more, and then until the last connection has ended.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub(crate) async fn finished(&self) {
        self.listeners.finished().await;
        self.connections.finished().await;
    }
}
