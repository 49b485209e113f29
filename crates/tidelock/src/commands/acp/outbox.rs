//! Outgoing messages: one queue, written by one thread.

use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::message::{self, RequestId};
use super::refusal::Refused;

/// How many messages may be queued for an editor that does not read. Senders then block, so a stream that is faster
/// than the editor is held back at the daemon's socket, and memory stays bounded.
const WAITING_LIMIT: usize = 64;

/// Queues messages for the editor. Clones share one queue.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    waiting: SyncSender<Waiting>,
    /// The id of our last request. Locked only to increment it.
    last_id: Arc<Mutex<u64>>,
}

#[derive(Debug)]
enum Waiting {
    Line(Vec<u8>),
    /// Signals the receiver once everything before it is written.
    Mark(SyncSender<()>),
}

impl Outbox {
    pub(super) fn start(writer: impl Write + Send + 'static) -> io::Result<Outbox> {
        let (waiting, lines) = sync_channel(WAITING_LIMIT);
        thread::Builder::new()
            .name("acp-writer".to_owned())
            .spawn(move || write(writer, &lines))?;
        Ok(Outbox {
            waiting,
            last_id: Arc::default(),
        })
    }

    /// Waits until everything queued is written, but not forever: an editor that is gone no longer reads.
    pub(super) fn finish(&self, limit: Duration) {
        let (mark, written) = sync_channel(1);
        let waiting = self.waiting.clone();
        // The queue may be full with no reader. A thread can wait for that, and ends with the process.
        let marking = thread::Builder::new().name("acp-last".to_owned());
        if marking
            .spawn(move || waiting.send(Waiting::Mark(mark)).ok())
            .is_ok()
        {
            // Written or not, there is nothing more to do about it.
            written.recv_timeout(limit).ok();
        }
    }

    /// Queues a message. Blocks while the editor does not read.
    ///
    /// # Errors
    /// The editor is gone.
    fn send(&self, line: Vec<u8>) -> io::Result<()> {
        let sent = self.waiting.send(Waiting::Line(line));
        sent.map_err(|_| ErrorKind::BrokenPipe.into())
    }

    /// Answers a request. If the editor is gone, dropping the answer does no harm.
    pub(super) fn answer(&self, id: Option<&RequestId>, result: Result<Value, Refused>) {
        drop(self.send(message::answer(id, result)));
    }

    pub(super) fn notify(&self, method: &str, params: &Value) -> io::Result<()> {
        self.send(message::notification(method, params))
    }

    pub(super) fn update(&self, session: &str, update: &Value) -> io::Result<()> {
        self.notify(
            "session/update",
            &json!({ "sessionId": session, "update": update }),
        )
    }

    pub(super) fn next_id(&self) -> u64 {
        let mut last = self.last_id.lock().unwrap_or_else(PoisonError::into_inner);
        *last += 1;
        *last
    }

    /// Sends a request. The response arrives among the editor's messages, with this id.
    pub(super) fn ask(&self, id: u64, method: &str, params: &Value) -> io::Result<()> {
        self.send(message::request(id, method, params))
    }
}

/// Writes until all senders or the reader are gone. Messages that are already queued are written together.
fn write(mut writer: impl Write, lines: &Receiver<Waiting>) {
    let mut next = lines.recv().ok();
    while let Some(waiting) = next {
        let written = match waiting {
            Waiting::Line(line) => writer.write_all(&line),
            Waiting::Mark(mark) => writer.flush().map(|()| drop(mark)),
        };
        if written.is_err() {
            return;
        }
        next = match lines.try_recv() {
            Ok(waiting) => Some(waiting),
            Err(_) if writer.flush().is_err() => return,
            Err(_) => lines.recv().ok(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts no writes until it is released.
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().ok();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_editor_that_does_not_read_holds_up_whoever_has_more_to_say() {
        let (release, stuck) = sync_channel(0);
        let outbox = Outbox::start(Stuck(stuck)).unwrap();
        let (told, tell) = sync_channel(1000);
        let sender = thread::spawn(move || {
            for count in 0..WAITING_LIMIT * 3 {
                outbox.notify("m", &json!(count)).unwrap();
                told.send(count).unwrap();
            }
            outbox
        });
        for _ in 0..WAITING_LIMIT {
            tell.recv_timeout(Duration::from_secs(30)).unwrap();
        }
        // Only the one that the writer holds.
        let limit = Duration::from_millis(200);
        let more = std::iter::from_fn(|| tell.recv_timeout(limit).ok()).count();
        assert!(more <= 1, "{more}");
        drop(release);
        sender.join().unwrap().finish(Duration::from_secs(30));
    }

    #[test]
    fn nobody_waits_for_an_editor_that_has_gone() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let outbox = Outbox::start(Gone).unwrap();
        let sent = std::iter::from_fn(|| outbox.notify("m", &Value::Null).ok()).count();
        assert!(sent <= WAITING_LIMIT + 1, "{sent}");
        outbox.finish(Duration::from_secs(30));
    }
}
