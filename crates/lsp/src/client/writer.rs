//! The writer task.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    io::{self, IoSlice},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use bytes::{Buf as _, Bytes};
use kernel::Deadline;
use tokio::io::AsyncWriteExt as _;

use super::{
    Closed,
    reader::EndGuard,
    shared::{ClientShared, notify},
};
use crate::wire::WriteHalf;

/// How many messages go out in one write.
const MESSAGES_PER_WRITE: usize = 64;

pub(super) async fn run(shared: Arc<ClientShared>, writer: WriteHalf) {
    let guard = EndGuard(Arc::clone(&shared));
    tokio::select! {
        biased;
        _ = shared.closed() => {}
        reason = until_the_end(&shared, writer) => shared.close(reason),
    }
    drop(guard);
}

async fn until_the_end(shared: &ClientShared, mut writer: WriteHalf) -> Closed {
    loop {
        let batch = shared.lock().take(MESSAGES_PER_WRITE);
        let Some(mut batch) = batch else {
            shared.rung().await;
            continue;
        };
        notify(batch.admitted);
        if let Err(reason) = write(shared, &mut writer, &mut batch.messages).await {
            return reason;
        }
        notify(batch.written);
    }
}

async fn write(
    shared: &ClientShared,
    writer: &mut WriteHalf,
    messages: &mut VecDeque<Bytes>,
) -> Result<(), Closed> {
    while !messages.is_empty() {
        let mut slices = [IoSlice::new(&[]); MESSAGES_PER_WRITE];
        let filled = slices.iter_mut().zip(messages.iter());
        let count = filled
            .map(|(slice, message)| *slice = IoSlice::new(message))
            .count();
        let written = patiently(shared, writer.write_vectored(&slices[..count])).await?;
        if written == 0 {
            return Err(Closed::Io(io::ErrorKind::WriteZero));
        }
        shared.lock().counters.bytes_out += written as u64;
        advance(messages, written);
    }
    patiently(shared, writer.flush()).await
}

/// Waits for one step of a write, up to the stall time.
async fn patiently<T>(shared: &ClientShared, step: impl Future<Output = io::Result<T>>) -> Result<T, Closed> {
    let after = shared.settings.stall_time;
    let mut step = pin!(step);
    let mut stalled = pin!(Deadline::after(&shared.clock, after).passed());
    poll_fn(|context| {
        if let Poll::Ready(outcome) = step.as_mut().poll(context) {
            return Poll::Ready(outcome.map_err(Closed::from));
        }
        stalled
            .as_mut()
            .poll(context)
            .map(|()| Err(Closed::Stalled { after }))
    })
    .await
}

fn advance(messages: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(first) = messages.front_mut() {
        if written < first.len() {
            first.advance(written);
            return;
        }
        written -= first.len();
        messages.pop_front();
    }
}
