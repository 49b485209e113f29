//! A client that sends a request with one write and reads its answer: the minimum for a caller of the daemon.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// An answer that takes longer counts as a failure.
const PATIENCE: Duration = Duration::from_secs(120);

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

pub(crate) struct HttpClient {
    stream: Box<dyn Stream>,
    host: String,
    proof: String,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl HttpClient {
    pub(crate) fn unix(socket: &Path, token: &str) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self::new(Box::new(stream), "localhost", bearer(token)))
    }

    pub(crate) fn tcp(address: &str, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self::new(Box::new(stream), address, bearer(token)))
    }

    pub(crate) fn with_cookie(address: &str, host: &str, cookie: &str) -> Result<Self> {
        let client = Self::tcp(address, "")?;
        Ok(Self {
            host: host.to_owned(),
            proof: format!("cookie: {cookie}"),
            ..client
        })
    }

    fn new(stream: Box<dyn Stream>, host: &str, proof: String) -> Self {
        Self {
            stream,
            host: host.to_owned(),
            proof,
            outgoing: Vec::new(),
            incoming: Vec::new(),
        }
    }

    /// Sends a request, and returns the body of the answer unless it is a refusal.
    pub(crate) fn post(&mut self, path: &str, body: &str) -> Result<&[u8]> {
        self.send("POST", path, "", body)
    }

    pub(crate) fn put(&mut self, path: &str, body: &str) -> Result<&[u8]> {
        self.send("PUT", path, "", body)
    }

    /// Like `post`, with more headers, each with its line end.
    pub(crate) fn post_with(&mut self, path: &str, headers: &str, body: &str) -> Result<&[u8]> {
        self.send("POST", path, headers, body)
    }

    pub(crate) fn post_json(&mut self, path: &str, body: &Value) -> Result<Value> {
        Ok(serde_json::from_slice(self.post(path, &body.to_string())?)?)
    }

    pub(crate) fn get_json(&mut self, path: &str) -> Result<Value> {
        Ok(serde_json::from_slice(self.send("GET", path, "", "")?)?)
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<&[u8]> {
        self.send("GET", path, "", "")
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Result<&[u8]> {
        self.outgoing.clear();
        let (host, proof, length) = (&self.host, &self.proof, body.len());
        write!(
            self.outgoing,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\n{proof}\r\n\
             content-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
        )?;
        self.stream.write_all(&self.outgoing)?;
        self.incoming.clear();
        let mut chunk = [0; 16 * 1024];
        let head = loop {
            if let Some(head) = Head::read(&self.incoming)? {
                break head;
            }
            let count = self.stream.read(&mut chunk)?;
            ensure!(count > 0, "the daemon closed the connection");
            self.incoming.extend_from_slice(&chunk[..count]);
        };
        while self.incoming.len() < head.end + head.body {
            let count = self.stream.read(&mut chunk)?;
            ensure!(count > 0, "the daemon closed the connection in an answer");
            self.incoming.extend_from_slice(&chunk[..count]);
        }
        let body = &self.incoming[head.end..head.end + head.body];
        if !(200..300).contains(&head.status) {
            bail!(
                "{method} {path}: {} {}",
                head.status,
                String::from_utf8_lossy(body)
            );
        }
        Ok(body)
    }
}

fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}")
}

#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    end: usize,
    body: usize,
}

impl Head {
    /// Parses the head, if it is complete.
    fn read(bytes: &[u8]) -> Result<Option<Self>> {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&bytes[..end]).context("a head that is not UTF-8")?;
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok())
            .context("an answer without a status")?;
        let body = lines
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, length)| length.trim().parse().ok())
            .context("an answer without a length")?;
        Ok(Some(Self {
            status,
            end: end + 4,
            body,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_an_answer_is_read_when_it_is_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nx: y\r\nContent-Length: 2\r\n\r\n{}";
        let head = Head {
            status: 200,
            end: whole.len() - 2,
            body: 2,
        };
        assert_eq!(Head::read(whole).unwrap(), Some(head));
        assert_eq!(Head::read(&whole[..whole.len() - 4]).unwrap(), None);
        for broken in ["HTTP/1.1 200 OK\r\n\r\n", "what?\r\ncontent-length: 2\r\n\r\n"] {
            assert!(Head::read(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
