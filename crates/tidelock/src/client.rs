//! Talks to the daemon over its Unix socket: one request per connection, each with deadlines and size limits.
//!
//! The client trusts a socket only in a directory that no other user can write to; otherwise it would reveal its
//! token to
//! anyone who put a socket there. It never starts a daemon; `start` does that.

use std::cell::Cell;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use daemon::{HomeError, check_directory};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use protocol::ErrorCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::net::UnixStream;

use crate::context::Context;
use crate::output::{Format, Palette};
use crate::units::format_duration;

mod follow;
mod interrupts;
mod stream;
mod upgrade;

pub(crate) use follow::{Ended, Follower, Interrupted, PATIENCE, Revived, StreamEnd, absence};
pub(crate) use interrupts::{Interrupts, Paused};

/// How long the daemon may take to accept a connection. On one machine this takes microseconds; only a hung daemon
/// takes longer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an answer may take. No request sent with this timeout waits for work to finish.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an operation on the whole log may take: on a slow disk, a gigabyte takes minutes.
const LONG_WORK_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// How long a client that stays waits for a log that does not answer: its database may be restarting or failing over.
const LOG_PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// The largest answer we read. A question with the largest budget gets about 10 MiB; every other answer is smaller.
const ANSWER_LIMIT_BYTES: usize = 32 << 20;

/// Talks to the daemon of one home.
#[derive(Debug)]
pub(crate) struct Client {
    /// The command's surroundings, used to start a daemon and to format output.
    pub(crate) context: Context,
    answer_timeout: Duration,
    /// Whether the command follows something, and so keeps waiting while the log does not answer.
    stays: Cell<bool>,
    runtime: tokio::runtime::Runtime,
}

/// The state of the daemon, before we ask it to do any work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// It accepts work.
    Ready,
    /// It answers, but does not accept work yet, or no longer does.
    NotReady,
    /// No daemon answers.
    Absent,
}

impl Client {
    /// Creates a client without connecting.
    pub(crate) fn new(context: &Context) -> io::Result<Client> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        Ok(Client {
            context: context.clone(),
            answer_timeout: ANSWER_TIMEOUT,
            stays: Cell::new(false),
            runtime,
        })
    }

    pub(crate) fn palette(&self) -> Palette {
        self.context.palette
    }

    pub(crate) fn format(&self) -> Format {
        self.context.format
    }

    /// Waits at most `limit` for an answer.
    pub(crate) fn impatient(mut self, limit: Duration) -> Client {
        self.answer_timeout = self.answer_timeout.min(limit);
        self
    }

    /// From now on, retries reads while the log does not answer. Writes are never retried: their errors are reported
    /// at once.
    pub(crate) fn stay(&self) {
        self.stays.set(true);
    }

    /// Whether to retry a failed read. Always false after `give_up_at`.
    fn asks_again(&self, error: &ClientError, give_up_at: Instant) -> bool {
        let is_about_the_log = matches!(error, ClientError::Refused(refusal) if refusal.is_about_the_log());
        is_about_the_log && self.stays.get() && Instant::now() < give_up_at
    }

    /// Checks whether a daemon is running and accepts work.
    pub(crate) fn probe(&self) -> Result<Probe, ClientError> {
        let limit = self.answer_timeout;
        match self.exchange(&Method::GET, "/readyz", Bytes::new(), Credentials::None, limit) {
            Ok((status, _)) if status.is_success() => Ok(Probe::Ready),
            // It is serving; if it cannot do something, it reports that itself.
            Ok((status, answer)) if Refusal::read(status, &answer).is_about_the_log() => Ok(Probe::Ready),
            Ok(_) => Ok(Probe::NotReady),
            Err(ClientError::Unreachable { .. }) => Ok(Probe::Absent),
            // It accepted the connection and dropped it, so it is shutting down.
            Err(ClientError::Broken { .. }) => Ok(Probe::NotReady),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, ClientError> {
        self.get_within(path, self.answer_timeout)
    }

    pub(crate) fn post<A: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<A, ClientError> {
        self.request(&Method::POST, path, to_bytes(body)?, self.answer_timeout)
    }

    /// Like `post`, for operations on the whole log, which may take a while.
    pub(crate) fn post_and_wait<A: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<A, ClientError> {
        self.request(&Method::POST, path, to_bytes(body)?, LONG_WORK_TIMEOUT)
    }

    pub(crate) fn put<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<A, ClientError> {
        self.request(&Method::PUT, path, to_bytes(Some(body))?, self.answer_timeout)
    }

    /// Deletes something, and ignores the body of the answer.
    pub(crate) fn delete(&self, path: &str) -> Result<(), ClientError> {
        let limit = self.answer_timeout;
        let (status, answer) =
            self.exchange(&Method::DELETE, path, Bytes::new(), Credentials::Token, limit)?;
        if status.is_success() {
            Ok(())
        } else {
            Err(ClientError::Refused(Box::new(Refusal::read(status, &answer))))
        }
    }

    /// Like `fetch`, for answers that may take a while.
    pub(crate) fn get_within<A: DeserializeOwned>(
        &self,
        path: &str,
        limit: Duration,
    ) -> Result<A, ClientError> {
        let give_up_at = Instant::now() + LOG_PATIENCE;
        loop {
            match self.request(&Method::GET, path, Bytes::new(), limit) {
                Err(error) if self.asks_again(&error, give_up_at) => {
                    self.pause(LOOK_AGAIN_AFTER, &mut Interrupts::default());
                }
                answered => return answered,
            }
        }
    }

    /// Like `post`, for operations with their own time limit.
    pub(crate) fn post_within<A: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&impl Serialize>,
        limit: Duration,
    ) -> Result<A, ClientError> {
        self.request(&Method::POST, path, to_bytes(body)?, limit)
    }

    fn request<A: DeserializeOwned>(
        &self,
        method: &Method,
        path: &str,
        body: Bytes,
        limit: Duration,
    ) -> Result<A, ClientError> {
        let (status, answer) = self.exchange(method, path, body, Credentials::Token, limit)?;
        if status.is_success() {
            serde_json::from_slice(&answer).map_err(|source| ClientError::NotUnderstood { source })
        } else {
            Err(ClientError::Refused(Box::new(Refusal::read(status, &answer))))
        }
    }

    fn exchange(
        &self,
        method: &Method,
        path: &str,
        body: Bytes,
        credentials: Credentials,
        limit: Duration,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        self.runtime.block_on(async {
            let stream = self.connect().await?;
            // Read the token only now: before the first start there is neither a daemon nor a token.
            let request = self.build(method, path, body, credentials)?;
            let exchange = async |mut sender: SendRequest<Full<Bytes>>| {
                read_whole(sender.send_request(request).await.map_err(broken)?).await
            };
            within("answer", limit, converse(stream, exchange)).await?
        })
    }

    async fn connect(&self) -> Result<UnixStream, ClientError> {
        let socket = self.context.home.socket();
        let unreachable = |source| ClientError::Unreachable {
            socket: socket.clone(),
            source,
        };
        match check_directory(&self.context.home.runtime) {
            Ok(()) => {}
            Err(HomeError::Inspect { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Err(unreachable(source));
            }
            Err(error) => return Err(ClientError::Home(error)),
        }
        let connecting = UnixStream::connect(&socket);
        let connected = within("accept the connection", CONNECT_TIMEOUT, connecting).await?;
        let stream = connected.map_err(unreachable)?;
        let peer = stream.peer_cred().map_err(unreachable)?.uid();
        check_peer(peer, rustix::process::geteuid().as_raw())?;
        Ok(stream)
    }

    /// Builds a GET request with extra headers.
    fn build_get(
        &self,
        path: &str,
        headers: &[(HeaderName, String)],
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = self.build(&Method::GET, path, Bytes::new(), Credentials::Token)?;
        for (name, value) in headers {
            // We never build a header that cannot be sent.
            if let Ok(value) = HeaderValue::from_str(value) {
                request.headers_mut().insert(name, value);
            }
        }
        Ok(request)
    }

    fn build(
        &self,
        method: &Method,
        path: &str,
        body: Bytes,
        credentials: Credentials,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("tidelock-actor", actor());
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        if credentials == Credentials::Token {
            let token =
                fs::read_to_string(&self.context.token_file).map_err(|source| ClientError::Token {
                    path: self.context.token_file.clone(),
                    source,
                })?;
            request = request.header("authorization", format!("Bearer {}", token.trim()));
        }
        request.body(Full::new(body)).map_err(|error| ClientError::Token {
            path: self.context.token_file.clone(),
            source: io::Error::new(ErrorKind::InvalidData, error),
        })
    }
}

/// The process that answers sees the token, so it must belong to the same user.
fn check_peer(peer: u32, ours: u32) -> Result<(), ClientError> {
    match peer == ours {
        true => Ok(()),
        false => Err(ClientError::ForeignPeer { peer, ours }),
    }
}

/// The name that the daemon records next to a change. A name that doesn't fit in a header is left out.
fn actor() -> String {
    let name = ["TIDELOCK_ACTOR", "USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    let is_plain =
        |name: &String| !name.is_empty() && name.chars().all(|character| matches!(character, ' '..='~'));
    name.filter(is_plain)
        .unwrap_or_else(|| format!("user {}", rustix::process::geteuid().as_raw()))
}

fn to_bytes(body: Option<&impl Serialize>) -> Result<Bytes, ClientError> {
    let body = body.map(serde_json::to_vec).transpose();
    let body = body.map_err(|source| ClientError::NotUnderstood { source })?;
    Ok(body.unwrap_or_default().into())
}

/// Whether a request shows the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Credentials {
    None,
    Token,
}

async fn converse<T>(
    stream: UnixStream,
    exchange: impl AsyncFnOnce(SendRequest<Full<Bytes>>) -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let exchange = exchange(sender);
    let connection = connection.with_upgrades();
    // The exchange only progresses while the connection is polled. If the connection ends first, what it has
    // read is still available.
    tokio::pin!(exchange, connection);
    tokio::select! {
        biased;
        outcome = &mut exchange => outcome,
        _ = &mut connection => exchange.await,
    }
}

fn broken(source: hyper::Error) -> ClientError {
    ClientError::Broken { source }
}

async fn read_whole(response: Response<Incoming>) -> Result<(StatusCode, Bytes), ClientError> {
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_LIMIT_BYTES)
        .collect()
        .await
        .map_err(|error| match error.downcast::<hyper::Error>() {
            Ok(source) => broken(*source),
            Err(_) => ClientError::TooLarge,
        })?;
    Ok((status, body.to_bytes()))
}

async fn within<F: Future>(what: &'static str, limit: Duration, work: F) -> Result<F::Output, ClientError> {
    tokio::time::timeout(limit, work)
        .await
        .map_err(|_| ClientError::Timeout { what, limit })
}

/// A request that the daemon understood but refused.
///
/// Parsed leniently, so that a daemon of another version can use codes unknown to this client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) detail: String,
    pub(crate) advice: String,
    pub(crate) request_id: Option<String>,
    pub(crate) current: Option<serde_json::Value>,
}

impl Refusal {
    fn read(status: StatusCode, answer: &[u8]) -> Refusal {
        let problem: serde_json::Value = serde_json::from_slice(answer).unwrap_or_default();
        let text = |name: &str| {
            problem
                .get(name)
                .and_then(|value| value.as_str())
                .map(str::to_owned)
        };
        Refusal {
            status: status.as_u16(),
            code: text("code").unwrap_or_else(|| format!("http_{}", status.as_u16())),
            detail: text("detail").unwrap_or_else(|| format!("the daemon answered {status}")),
            advice: text("advice").unwrap_or_default(),
            request_id: text("request_id"),
            current: problem.get("current").cloned(),
        }
    }
}

impl Refusal {
    /// Whether a language server is what has changed, judging by the current state in the refusal.
    pub(crate) fn is_about_a_server(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.get("server").is_some())
    }

    /// The log accepts no writes, or does not answer.
    fn is_about_the_log(&self) -> bool {
        self.code == ErrorCode::LogRefusing.as_str()
    }

    /// The daemon no longer accepts requests, or not yet. It did nothing about this one.
    pub(crate) fn is_about_the_daemons_end(&self) -> bool {
        [ErrorCode::ShuttingDown, ErrorCode::NotReady]
            .iter()
            .any(|code| code.as_str() == self.code)
    }
}

/// Why there is no answer to a request.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    #[error("no daemon answers at `{socket}`", socket = .socket.display())]
    Unreachable { socket: PathBuf, source: io::Error },
    #[error(transparent)]
    Home(HomeError),
    #[error("a process of user {peer} answers at the daemon's socket, but you are user {ours}")]
    ForeignPeer { peer: u32, ours: u32 },
    #[error("the token file `{path}` cannot be used", path = .path.display())]
    Token { path: PathBuf, source: io::Error },
    #[error("the daemon did not {what} within {}", format_duration(*.limit))]
    Timeout { what: &'static str, limit: Duration },
    #[error("the daemon closed the connection")]
    Broken { source: hyper::Error },
    #[error("the daemon's answer is larger than {ANSWER_LIMIT_BYTES} bytes")]
    TooLarge,
    #[error("can't read the daemon's answer")]
    NotUnderstood { source: serde_json::Error },
    #[error("can't write the daemon's output")]
    Output { source: io::Error },
    #[error("{}", .0.detail)]
    Refused(Box<Refusal>),
}

/// A duration in the unit the daemon expects. One that does not fit is as good as forever.
pub(crate) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Encodes a name as one path segment.
pub(crate) fn path_segment(name: &str) -> String {
    let mut segment = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => segment.push(char::from(byte)),
            // A lone `.` or `..` would be read as a relative path, so the dot is encoded as well.
            _ => segment.push_str(&format!("%{byte:02X}")),
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_segment_whatever_they_hold() {
        for (name, expected) in [
            ("model-api_1~x", "model-api_1~x"),
            ("lsp/rust-analyzer", "lsp%2Frust-analyzer"),
            ("..", "%2E%2E"),
            ("a b?c#d%e", "a%20b%3Fc%23d%25e"),
            ("ü", "%C3%BC"),
        ] {
            assert_eq!(path_segment(name), expected, "{name}");
        }
    }

    #[test]
    fn only_the_same_user_is_shown_the_token() {
        assert!(check_peer(1000, 1000).is_ok());
        let error = check_peer(1001, 1000).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a process of user 1001 answers at the daemon's socket, but you are user 1000"
        );
    }

    #[test]
    fn refusals_of_any_shape_are_read() {
        let refusal = |code: &str, detail: &str| Refusal {
            status: 404,
            code: code.to_owned(),
            detail: detail.to_owned(),
            advice: String::new(),
            request_id: None,
            current: None,
        };
        for (answer, expected) in [
            (
                r#"{"code":"from_the_future","detail":"gone"}"#,
                refusal("from_the_future", "gone"),
            ),
            (
                "not json",
                refusal("http_404", "the daemon answered 404 Not Found"),
            ),
            ("", refusal("http_404", "the daemon answered 404 Not Found")),
            ("[]", refusal("http_404", "the daemon answered 404 Not Found")),
        ] {
            assert_eq!(
                Refusal::read(StatusCode::NOT_FOUND, answer.as_bytes()),
                expected,
                "{answer}"
            );
        }
    }
}
