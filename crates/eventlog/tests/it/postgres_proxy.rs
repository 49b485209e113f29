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
    /// Instead of passing on what is asked.
    BeforeCommit,
    /// When the server answers it: it was made, and nobody is told.
    AfterCommit,
}

/// How a commit is known on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    pub(crate) asked: &'static str,
    pub(crate) answered: &'static str,
}

/// A transaction of several statements.
pub(crate) const TRANSACTION: Words = Words {
    asked: "COMMIT",
    answered: "COMMIT",
};

type Next = (Cut, Words);

/// Passes connections on to the test server. What it does ends with it.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// The cut that is to be made next.
    next: Arc<Mutex<Next>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(url: &str) -> Self {
        let server = Config::from_str(url).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let next = Arc::new(Mutex::new((Cut::Never, TRANSACTION)));
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

    /// Says which cut to make at the next commit that has these words, once.
    pub(crate) fn cut(&self, cut: Cut, words: Words) {
        *self.next.lock().unwrap() = (cut, words);
    }
}

async fn pass_on(client: TcpStream, server: Config, next: Arc<Mutex<Next>>) {
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
    next: Arc<Mutex<Next>>,
) {
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut cutting = (Cut::Never, TRANSACTION);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                cutting = next_cut(&next, &asked[..length]).unwrap_or(cutting);
                if cutting.0 == Cut::BeforeCommit || server.write_all(&asked[..length]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if cutting.0 == Cut::AfterCommit {
                    // The server answers in order, so that this word in its answers means that it is done.
                    if has(&answered[..length], cutting.1.answered) {
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

/// The cut that is to be made at this, if any. It is made once.
fn next_cut(next: &Mutex<Next>, asked: &[u8]) -> Option<Next> {
    let mut next = next.lock().unwrap();
    if next.0 == Cut::Never || !has(asked, next.1.asked) {
        return None;
    }
    Some(std::mem::replace(&mut *next, (Cut::Never, TRANSACTION)))
}

fn has(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|part| part == word.as_bytes())
}
