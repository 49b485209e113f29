//! Small things that several modules need.

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use kernel::{CancellationToken, Clock, Deadline, ManualClock, Scope, SystemClock};
use lsp::{
    Client, ClientSettings, Connection, Decoder, Frame, FrameLimits, Incoming, Message, ResponseError,
    encode_notification, encode_request, encode_response,
};
use process::Tasks;
use serde_json::{Value, json, value::RawValue};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Far more than anything here takes, on a machine that has other things to do.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Waits for something that must happen.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    let deadline = Deadline::after(&SystemClock::shared(), LONG);
    tokio::select! {
        output = future => output,
        () = deadline.passed() => panic!("it did not happen within {LONG:?}"),
    }
}

/// Waits until a condition holds, looking again whenever others have had a turn.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Deadline::after(&SystemClock::shared(), LONG);
    while !condition() {
        assert!(!deadline.has_passed(), "{what}: not within {LONG:?}");
        tokio::task::yield_now().await;
    }
}

/// A deadline that no test reaches.
pub(crate) fn patient() -> Deadline {
    Deadline::after(&SystemClock::shared(), LONG)
}

/// A scope that is never cancelled.
pub(crate) fn live() -> Scope {
    CancellationToken::new().scope()
}

pub(crate) fn manual_clock() -> (Arc<ManualClock>, Arc<dyn Clock>) {
    let clock = ManualClock::new();
    (Arc::clone(&clock), clock)
}

/// Writes down what a server says by itself, and answers requests with their parameters.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Guards the lines.
    lines: Mutex<Vec<String>>,
}

impl Log {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    fn write(&self, method: &str, params: Option<&RawValue>) {
        let params = params.map_or("-", RawValue::get);
        self.lines.lock().unwrap().push(format!("{method} {params}"));
    }
}

impl Incoming for Log {
    fn notification(&self, method: &str, params: Option<&RawValue>) {
        self.write(method, params);
    }

    fn request(&self, method: &str, params: Option<&RawValue>) -> Result<Value, ResponseError> {
        self.write(method, params);
        match method {
            "panic" => panic!("as asked"),
            "unknown" => Err(ResponseError::method_not_found(method)),
            _ => Ok(params.map_or(Value::Null, |params| serde_json::from_str(params.get()).unwrap())),
        }
    }
}

/// A client whose server is played by the test.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) log: Arc<Log>,
    pub(crate) tasks: Tasks,
    pub(crate) server: Peer,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(ClientSettings::default(), SystemClock::shared())
    }

    pub(crate) fn with(settings: ClientSettings, clock: Arc<dyn Clock>) -> Self {
        let (ours, theirs) = Connection::memory();
        let (log, tasks) = (Arc::new(Log::default()), Tasks::default());
        let incoming: Arc<dyn Incoming> = Arc::clone(&log) as _;
        Self {
            client: Client::start(ours, settings, incoming, &tasks, clock),
            log,
            tasks,
            server: Peer::new(theirs),
        }
    }

    /// Waits until both tasks have ended.
    pub(crate) async fn finished(&self) {
        soon(self.tasks.finished()).await;
    }
}

/// The other end of a connection, played by hand.
pub(crate) struct Peer {
    decoder: Decoder,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Peer {
    pub(crate) fn new(connection: Connection) -> Self {
        let (reader, writer) = connection.into_parts();
        Self {
            decoder: Decoder::new(FrameLimits::default()),
            reader: Box::new(reader),
            writer: Box::new(writer),
        }
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        soon(async {
            loop {
                if let Some(Frame::Body(body)) = self.decoder.next_frame().unwrap() {
                    Message::parse(&body).unwrap();
                    return Some(serde_json::from_slice(&body).unwrap());
                }
                let mut room = self.decoder.room();
                if self.reader.read_buf(&mut room).await.unwrap_or(0) == 0 {
                    return None;
                }
            }
        })
        .await
    }

    /// The next message, as a line that is easy to compare.
    pub(crate) async fn line(&mut self) -> String {
        let message = self.next().await.expect("a message");
        let part = |name: &str| message.get(name).map_or("-".to_owned(), Value::to_string);
        format!("{} {} {}", part("id"), part("method"), part("params"))
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        soon(self.writer.write_all(bytes.as_ref())).await.unwrap();
    }

    pub(crate) async fn answer(&mut self, id: i64, result: Value) {
        self.write(answer(id, &result)).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.write(encode_notification(method, &params).unwrap()).await;
    }

    pub(crate) async fn ask(&mut self, id: i64, method: &str, params: Value) {
        let id = lsp::MessageId::Number(id);
        self.write(encode_request(&id, method, &params).unwrap()).await;
    }

    /// Closes the direction to the client, and keeps the other.
    pub(crate) async fn end(&mut self) {
        soon(self.writer.shutdown()).await.unwrap();
    }
}

pub(crate) fn answer(id: i64, result: &Value) -> Bytes {
    encode_response(&lsp::MessageId::Number(id), Ok::<_, &ResponseError>(result)).unwrap()
}

/// A body with its header.
pub(crate) fn framed(body: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A request that the server of a test answers with its number.
pub(crate) fn numbered(number: usize) -> Value {
    json!({ "number": number })
}
