//! Readers of server-sent events: as cheap as possible, but they detect every gap.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

/// How much is read at once.
const READ_BYTES: usize = 256 * 1024;

#[derive(Clone, Debug)]
pub(crate) enum Door {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Door {
    /// Connects and sends the request. The response has yet to be read.
    pub(crate) async fn ask(&self, request: &str) -> Result<Box<dyn Stream>> {
        let mut stream: Box<dyn Stream> = match self {
            Self::Unix(path) => Box::new(UnixStream::connect(path).await?),
            Self::Tcp(address) => Box::new(TcpStream::connect(address).await?),
        };
        stream.write_all(request.as_bytes()).await?;
        Ok(stream)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) first: Instant,
    pub(super) last: Instant,
    pub(super) events: u64,
}

/// Reads a stream to its end. The event numbers must be consecutive.
pub(super) async fn to_the_end(stream: Box<dyn Stream>) -> Result<Seen> {
    let mut lines = Lines::default();
    lines.read(stream).await?;
    let (events, ended) = (lines.events, lines.ended);
    Ok(Seen {
        first: lines.first.context("nothing was said")?,
        last: ended.with_context(|| format!("the stream ended after {events} events"))?,
        events,
    })
}

/// Reads until the given number of events have arrived.
pub(super) async fn some(mut stream: Box<dyn Stream>, events: u64) -> Result<Instant> {
    let mut lines = Lines::default();
    let mut buffer = vec![0; READ_BYTES];
    while lines.events < events {
        let count = stream.read(&mut buffer).await?;
        ensure!(count > 0, "the stream ended after {} events", lines.events);
        lines.take(&buffer[..count])?;
    }
    Ok(Instant::now())
}

/// Reads until the response has begun, so that the reader is known to be connected.
pub(crate) async fn until_there(stream: &mut Box<dyn Stream>) -> Result<()> {
    let mut said = Vec::new();
    let mut buffer = [0; 1024];
    while !said.windows(6).any(|window| window == b"retry:") {
        let count = stream.read(&mut buffer).await?;
        ensure!(count > 0, "it was refused: {}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&buffer[..count]);
    }
    Ok(())
}

/// The lines of a stream, as far as they matter here.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The beginning of an unterminated line.
    rest: Vec<u8>,
    pub(super) events: u64,
    pub(super) last_id: Option<u64>,
    first: Option<Instant>,
    pub(super) ended: Option<Instant>,
}

impl Lines {
    /// Reads until the turn or the stream has ended.
    pub(super) async fn read(&mut self, mut stream: Box<dyn Stream>) -> Result<()> {
        let mut buffer = vec![0; READ_BYTES];
        self.rest.clear();
        while self.ended.is_none() {
            match stream.read(&mut buffer).await? {
                0 => break,
                count => self.take(&buffer[..count])?,
            }
        }
        Ok(())
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<()> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, after) = (&bytes[..end], &bytes[end + 1..]);
            if self.rest.is_empty() {
                self.line(line)?;
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                self.line(&whole)?;
            }
            bytes = after;
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        if let Some(id) = line.strip_prefix(b"id: ") {
            // An id is a number, followed, for ours, by the time when the event was written.
            let id = std::str::from_utf8(id)?.trim_end();
            let id: u64 = id.split('-').next().unwrap_or(id).parse()?;
            if let Some(last) = self.last_id
                && id != last + 1
            {
                bail!("event {id} came after event {last}");
            }
            self.last_id = Some(id);
            self.events += 1;
        } else if line.starts_with(b"event: text") {
            self.first.get_or_insert_with(Instant::now);
        } else if line.starts_with(b"event: end") {
            self.ended = Some(Instant::now());
        } else if line.starts_with(b"HTTP/1.1 ") && !line.starts_with(b"HTTP/1.1 200") {
            bail!("it was refused: {}", String::from_utf8_lossy(line));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_wherever_a_read_ends() {
        let text = "HTTP/1.1 200 OK\r\n\r\n1f\r\nretry: 1\n\n\r\nid: 7\nevent: text\ndata: {}\n\nid: 8\r\nevent: text\r\n\r\nevent: end\n";
        for at in 0..text.len() {
            let mut lines = Lines::default();
            lines.take(&text.as_bytes()[..at]).unwrap();
            lines.take(&text.as_bytes()[at..]).unwrap();
            assert_eq!((lines.events, lines.last_id), (2, Some(8)), "at {at}");
            assert!(lines.ended.is_some() && lines.first.is_some());
        }
        let gap = Lines::default().take(b"id: 1\nid: 3\n");
        assert_eq!(gap.unwrap_err().to_string(), "event 3 came after event 1");
        assert!(Lines::default().take(b"HTTP/1.1 503 No\r\n").is_err());
    }
}
