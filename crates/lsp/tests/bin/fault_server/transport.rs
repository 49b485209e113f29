//! Standard input and output, or a socket.

use std::{fs::File, io::Write as _, os::fd::AsFd as _};

use lsp::Connection;
use tokio::net::{TcpListener, unix::pipe};

use crate::{Anything, family::Options};

/// The connection to the client.
pub(crate) async fn open(options: &Options) -> Anything<Connection> {
    match options.tcp_port {
        None => stdio(),
        Some(port) => tcp(port).await,
    }
}

/// Takes the pipes over, so that dropping one closes it: the descriptors that they came in then lead nowhere.
fn stdio() -> Anything<Connection> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    Ok(Connection::new(
        pipe::Receiver::from_owned_fd(input)?,
        pipe::Sender::from_owned_fd(output)?,
    ))
}

async fn tcp(port: u16) -> Anything<Connection> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    writeln!(std::io::stdout(), "listening on {}", listener.local_addr()?)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    Ok(Connection::new(reader, writer))
}
