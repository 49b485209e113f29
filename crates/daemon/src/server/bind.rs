//! Where the daemon listens: a TCP address, and a Unix socket that only its owner can open.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket, UnixListener};

use crate::home::Home;
use crate::options::{Listen, WhenTaken};

#[derive(Debug, Error)]
pub enum BindError {
    #[error("the address {address} can be reached by other machines")]
    NotLoopback { address: SocketAddr },
    #[error("the address {address} cannot be listened on")]
    Tcp { address: SocketAddr, source: io::Error },
    #[error("`{path}` exists and is not a socket", path = .path.display())]
    InTheWay { path: PathBuf },
    #[error("the socket `{path}` cannot be made", path = .path.display())]
    Unix { path: PathBuf, source: io::Error },
}

impl BindError {
    /// What to do about it, in one sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::NotLoopback { .. } => {
                "listen on 127.0.0.1, or choose a token file on purpose and keep it secret".to_owned()
            }
            Self::Tcp { .. } => {
                "choose another address or port, or let the daemon take any free one".to_owned()
            }
            Self::InTheWay { path } => format!("move `{}` away", path.display()),
            Self::Unix { .. } => "make sure that you can write to the runtime directory".to_owned(),
        }
    }
}

/// How many connections may wait to be accepted. They arrive faster than a busy machine accepts them; a client that
/// finds no room retries after a second.
const BACKLOG: u32 = 4096;

/// The send buffer of each connection. The kernel doubles it and takes one write more, so a client that asks for a
/// stream and doesn't read costs up to 256 KiB. By default it would be 4 MiB.
const SEND_BUFFER_BYTES: u32 = 96 * 1024;

/// Listens on TCP. Refuses an address that goes beyond `exposure`.
pub(crate) fn bind_tcp(listen: Listen, exposure: Exposure) -> Result<TcpListener, BindError> {
    let address = listen.address;
    if exposure == Exposure::LoopbackOnly && !address.ip().is_loopback() {
        return Err(BindError::NotLoopback { address });
    }
    let failed = |source| BindError::Tcp { address, source };
    match listen_on(address) {
        Err(error)
            if error.kind() == io::ErrorKind::AddrInUse && listen.when_taken == WhenTaken::AnyFreePort =>
        {
            let listener = listen_on(SocketAddr::new(address.ip(), 0)).map_err(failed)?;
            let instead = listener.local_addr().map_err(failed)?;
            tracing::warn!(wanted = %address, %instead, "the address is taken, so another port is used");
            Ok(listener)
        }
        bound => bound.map_err(failed),
    }
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Connections of a daemon that has ended don't block the next one.
    socket.set_reuseaddr(true)?;
    // Every accepted connection inherits it from the listening socket.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// Only this machine.
    LoopbackOnly,
    /// Everybody on the network: the user chose a token for it.
    Anyone,
}

/// The path of our socket. Dropping this removes the socket.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may have been removed already.
        if let Err(error) = remove_if_there(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the socket could not be removed");
        }
    }
}

/// Listens on the Unix socket. Only the owner of the home may call this, so anything at its path was left by a daemon
/// that has died.
pub(crate) fn bind_unix(home: &Home) -> Result<(UnixListener, SocketFile), BindError> {
    let path = home.socket();
    let failed = |source| BindError::Unix {
        path: home.socket(),
        source,
    };
    // Create the socket under another name, and rename it once no other user can open it. The rename also
    // replaces a leftover atomically. The other name isn't longer, so it fits if the real one does.
    let unfinished = path.with_file_name("tidelock.new");
    for leftover in [&path, &unfinished] {
        check_place(leftover)?;
    }
    remove_if_there(&unfinished).map_err(failed)?;
    let listener = UnixListener::bind(&unfinished).map_err(failed)?;
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::rename(&unfinished, &path))
        .map_err(failed)?;
    Ok((listener, SocketFile { path }))
}

fn check_place(path: &Path) -> Result<(), BindError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => Err(BindError::InTheWay {
            path: path.to_owned(),
        }),
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(BindError::Unix {
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
