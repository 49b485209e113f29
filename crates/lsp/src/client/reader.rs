//! The reader task.

use std::{
    future::{Future as _, poll_fn},
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
};

use bytes::Bytes;
use kernel::{Deadline, WaitForDeadline};
use tokio::io::AsyncReadExt as _;

use super::{Closed, Incoming, ProtocolError, Reply, RequestError, shared::ClientShared};
use crate::wire::{Decoder, Frame, Message, MessageId, Oversized, ReadHalf, encode_response};

pub(super) async fn run(shared: Arc<ClientShared>, reader: ReadHalf, incoming: Arc<dyn Incoming>) {
    let guard = EndGuard(Arc::clone(&shared));
    let reading = Reading {
        shared: Arc::clone(&shared),
        incoming,
        decoder: Decoder::new(shared.settings.limits),
        message_end: None,
        reader,
    };
    tokio::select! {
        biased;
        _ = shared.closed() => {}
        reason = reading.until_the_end() => shared.close(reason),
    }
    drop(guard);
}

/// Closes the client if a task ends without doing so, in a panic or with its runtime.
pub(super) struct EndGuard(pub(super) Arc<ClientShared>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0
            .close(Closed::Asked("a task of the client ended early".to_owned()));
    }
}

struct Reading {
    shared: Arc<ClientShared>,
    incoming: Arc<dyn Incoming>,
    /// Holds what has been read, so that no byte is lost when a wait is cancelled.
    decoder: Decoder,
    /// When the current message must be complete.
    message_end: Option<WaitForDeadline>,
    reader: ReadHalf,
}

impl Reading {
    async fn until_the_end(mut self) -> Closed {
        loop {
            let count = match self.read().await {
                Ok(0) => return Closed::EndOfFile,
                Ok(count) => count,
                Err(reason) => return reason,
            };
            self.shared.lock().counters.bytes_in += count as u64;
            if let Err(reason) = self.take_frames() {
                return reason;
            }
        }
    }

    /// Reads some bytes. Fails if the current message takes too long.
    async fn read(&mut self) -> Result<usize, Closed> {
        let mut room = self.decoder.room();
        let mut read = pin!(self.reader.read_buf(&mut room));
        let message_end = &mut self.message_end;
        let outcome: Option<io::Result<usize>> = poll_fn(|context| {
            if let Poll::Ready(outcome) = read.as_mut().poll(context) {
                return Poll::Ready(Some(outcome));
            }
            match message_end {
                Some(end) => Pin::new(end).poll(context).map(|()| None),
                None => Poll::Pending,
            }
        })
        .await;
        match outcome {
            Some(outcome) => Ok(outcome?),
            None => Err(Closed::Protocol(ProtocolError::MessageTooSlow {
                within: self.shared.settings.message_time,
            })),
        }
    }

    fn take_frames(&mut self) -> Result<(), Closed> {
        let mut is_next_message = self.message_end.is_none();
        while let Some(frame) = self.decoder.next_frame()? {
            is_next_message = true;
            match frame {
                Frame::Body(body) => self.take_message(&body)?,
                Frame::Oversized(oversized) => self.take_oversized(&oversized)?,
            }
        }
        if !self.decoder.is_inside_message() {
            self.message_end = None;
        } else if is_next_message {
            let end = Deadline::after(&self.shared.clock, self.shared.settings.message_time);
            self.message_end = Some(end.passed());
        }
        Ok(())
    }

    fn take_message(&self, body: &Bytes) -> Result<(), Closed> {
        match Message::parse(body)? {
            Message::Notification { method, params } => {
                self.shared.lock().counters.notifications_in += 1;
                self.incoming.notification(&method, params);
                Ok(())
            }
            Message::Request { id, method, params } => {
                self.shared.lock().counters.requests_in += 1;
                let outcome = self.incoming.request(&method, params);
                match encode_response(&id, outcome.as_ref()) {
                    Ok(answer) => self.shared.lock().answer(answer)?,
                    // A tree of JSON values always serializes as JSON.
                    Err(error) => tracing::error!(%method, %error, "an answer could not be sent"),
                }
                self.shared.ring();
                Ok(())
            }
            Message::Response { id, outcome } => {
                let outcome = outcome.map(|result| Reply::new(body, result));
                self.answer(id.as_ref(), outcome.map_err(RequestError::Response))
            }
        }
    }

    fn take_oversized(&self, oversized: &Oversized) -> Result<(), Closed> {
        let &Oversized { length, ref id } = oversized;
        self.shared.lock().counters.oversized += 1;
        if id.is_none() {
            return Err(Closed::Protocol(ProtocolError::Oversized { length }));
        }
        self.answer(id.as_ref(), Err(RequestError::Oversized { bytes: length }))
    }

    fn answer(&self, id: Option<&MessageId>, outcome: Result<Reply, RequestError>) -> Result<(), Closed> {
        let addressee = self.shared.lock().answered(id)?;
        match addressee {
            // The send fails only if the caller no longer waits.
            Some(answer) => drop(answer.send(outcome)),
            None => tracing::debug!(?id, "an answer that nobody waits for"),
        }
        Ok(())
    }
}
