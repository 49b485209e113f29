//! What the server writes, right or wrong.

use std::time::Duration;

use kernel::{Deadline, SystemClock};
use lsp::{MessageId, ResponseError, encode_notification, encode_request, encode_response};
use serde_json::Value;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::Mutex,
};

use crate::script::{Said, SaidKind};

/// The way to the client. Messages are written whole, whoever writes them.
pub(crate) struct Output {
    /// Guards the order of writes, and what becomes of them.
    way: Mutex<Way>,
}

enum Way {
    Open {
        writer: Box<dyn AsyncWrite + Send + Unpin>,
        requests: u64,
    },
    /// Whatever is written is lost, and the pipe stays open.
    Silent {
        _writer: Box<dyn AsyncWrite + Send + Unpin>,
    },
    Closed,
}

impl Output {
    pub(crate) fn new(writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self {
            way: Mutex::new(Way::Open {
                writer: Box::new(writer),
                requests: 0,
            }),
        }
    }

    /// Writes some bytes. A client that has gone is none of its business: its end of the input says so.
    pub(crate) async fn write(&self, bytes: &[u8]) {
        if let Way::Open { writer, .. } = &mut *self.way.lock().await {
            drop(writer.write_all(bytes).await);
        }
    }

    /// Writes some bytes a few at a time; nobody else writes meanwhile.
    pub(crate) async fn drip(&self, bytes: &[u8], at_once: usize, every: Duration) {
        if let Way::Open { writer, .. } = &mut *self.way.lock().await {
            for piece in bytes.chunks(at_once.max(1)) {
                drop(writer.write_all(piece).await);
                pause(every).await;
            }
        }
    }

    pub(crate) async fn answer(&self, id: &MessageId, outcome: &Result<Value, ResponseError>) {
        self.write(&answer(id, outcome)).await;
    }

    pub(crate) async fn say(&self, said: &Said) {
        if let Way::Open { writer, requests } = &mut *self.way.lock().await {
            let message = match said.kind {
                SaidKind::Notification => encode_notification(&said.method, &said.params),
                SaidKind::Request => {
                    *requests += 1;
                    let id = MessageId::Text(format!("fault-{requests}"));
                    encode_request(&id, &said.method, &said.params)
                }
            };
            drop(writer.write_all(&message.unwrap_or_default()).await);
        }
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        self.say(&Said {
            method: method.to_owned(),
            params,
            kind: SaidKind::Notification,
        })
        .await;
    }

    pub(crate) async fn close(&self) {
        *self.way.lock().await = Way::Closed;
    }

    pub(crate) async fn fall_silent(&self) {
        let mut way = self.way.lock().await;
        if let Way::Open { writer, .. } = std::mem::replace(&mut *way, Way::Closed) {
            *way = Way::Silent { _writer: writer };
        }
    }
}

/// An answer as bytes.
pub(crate) fn answer(id: &MessageId, outcome: &Result<Value, ResponseError>) -> Vec<u8> {
    encode_response(id, outcome.as_ref()).unwrap_or_default().to_vec()
}

/// Waits for an amount of time, which is what a slow server is about.
pub(crate) async fn pause(time: Duration) {
    Deadline::after(&SystemClock::shared(), time).passed().await;
}

/// Waits until a file exists.
pub(crate) async fn file_exists(path: &std::path::Path) {
    while !path.exists() {
        pause(Duration::from_millis(5)).await;
    }
}
