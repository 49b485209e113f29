//! Requests without a client in between: what is acknowledged here was acknowledged by the daemon, and once.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use daemon::Home;
use serde_json::Value;

/// An answer of the daemon.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) request_id: String,
    pub(crate) body: Value,
}

/// Sends one request. An error means that it is not known what became of it.
pub(crate) fn send(home: &Home, method: &str, path: &str, body: &str) -> io::Result<Answer> {
    let token = fs::read_to_string(home.token_file())?;
    let mut stream = UnixStream::connect(home.socket())?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        token.trim(),
        body.len(),
    );
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    parse(&text).ok_or_else(|| io::Error::other(format!("the answer is not whole: {text:?}")))
}

fn parse(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    };
    Some(Answer {
        status: head.split(' ').nth(1)?.parse().ok()?,
        request_id: header("x-request-id")?.to_owned(),
        body: serde_json::from_str(body).ok()?,
    })
}

/// Holds a breaker open or closed.
pub(crate) fn force(home: &Home, name: &str, state: &str) -> io::Result<Answer> {
    let body = format!("{{\"state\":\"{state}\"}}");
    send(home, "POST", &format!("/v1/breakers/{name}/force"), &body)
}

/// Lets a breaker decide by itself.
pub(crate) fn reset(home: &Home, name: &str) -> io::Result<Answer> {
    send(home, "POST", &format!("/v1/breakers/{name}/reset"), "")
}

/// The whole history of a breaker.
pub(crate) fn events(home: &Home, name: &str) -> Vec<protocol::BreakerEvent> {
    let mut found: Vec<protocol::BreakerEvent> = Vec::new();
    loop {
        let after = found.last().map_or(0, |event| event.sequence);
        let path = format!("/v1/breakers/{name}/events?limit=1000&after={after}");
        let answer = send(home, "GET", &path, "").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let page: protocol::BreakerEventList = serde_json::from_value(answer.body).unwrap();
        if page.events.is_empty() {
            return found;
        }
        found.extend(page.events);
    }
}
