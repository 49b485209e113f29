//! A way to the test server that can be cut at the worst moment.

use std::{
    net::SocketAddr,
    str::FromStr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    task::JoinSet,
};
use tokio_postgres::{Config, config::Host};

/// When to cut a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cut {
    Never,
    /// Instead of passing on the next `COMMIT`.
    BeforeCommit,
    /// When the server answers the next `COMMIT`: it was made, and nobody is told.
    AfterCommit,
}

/// Passes connections on to the test server. What it does ends with it.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// The cut that is to be made next.
    next: Arc<Mutex<Cut>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(url: &str) -> Self {
        let server = Config::from_str(url).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let next = Arc::new(Mutex::new(Cut::Never));
        let (mut tasks, cut) = (JoinSet::new(), Arc::clone(&next));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                connections.spawn(pass_on(client, server.clone(), Arc::clone(&cut)));
            }
        });
        Self {
            address,
            next,
            _tasks: tasks,
        }
    }

    /// Says which cut to make at the next `COMMIT`, once.
    pub(crate) fn cut(&self, cut: Cut) {
        *self.next.lock().unwrap() = cut;
    }
}

async fn pass_on(client: TcpStream, server: Config, next: Arc<Mutex<Cut>>) {
    let port = server.get_ports().first().copied().unwrap_or(5432);
    match &server.get_hosts()[0] {
        Host::Tcp(host) => {
            let server = TcpStream::connect((host.as_str(), port)).await.unwrap();
            copy(client, server, next).await;
        }
        Host::Unix(directory) => {
            let socket = directory.join(format!(".s.PGSQL.{port}"));
            copy(client, UnixStream::connect(socket).await.unwrap(), next).await;
        }
    }
}

/// Copies both ways until one side ends, or until it is time to cut.
async fn copy<S: AsyncRead + AsyncWrite + Unpin>(
    mut client: TcpStream,
    mut server: S,
    next: Arc<Mutex<Cut>>,
) {
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut cutting = Cut::Never;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                if asked[..length].windows(6).any(|word| word == b"COMMIT") {
                    cutting = std::mem::replace(&mut *next.lock().unwrap(), Cut::Never);
                }
                if cutting == Cut::BeforeCommit || server.write_all(&asked[..length]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                // The server answers in order, so that this word in its answers means that it is done.
                let is_made = answered[..length].windows(6).any(|word| word == b"COMMIT");
                if cutting == Cut::AfterCommit {
                    if is_made {
                        return;
                    }
                    continue;
                }
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
