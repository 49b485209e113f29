//! Work on files by several threads.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The maximum number of threads. More don't help: they wait for the same disk and the same kernel locks.
const THREADS_LIMIT: usize = 8;
/// Up to this many pieces are done without a second thread: starting one costs as much.
const INLINE_LIMIT: usize = 4;

/// What a worker does after a piece of work.
pub(crate) enum Work {
    Continue,
    /// Skip the rest, since the whole operation has failed.
    Stop,
}

/// Does all pieces of work, in no particular order, on as many threads as the machine has processors. Each thread has
/// its own state; returns all states.
pub(crate) fn in_parallel<T: Send, S: Send>(
    pieces: Vec<T>,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> Work + Sync,
) -> Vec<S> {
    let threads = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(THREADS_LIMIT);
    let threads = if pieces.len() <= INLINE_LIMIT { 1 } else { threads };
    // Guards the remaining work. It is held for one step of the iterator.
    let left: Mutex<std::vec::IntoIter<T>> = Mutex::new(pieces.into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let stop = || *left.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new().into_iter();
    let worker = || {
        let mut state = state();
        while let Some(piece) = next() {
            if let Work::Stop = work(&mut state, piece) {
                stop();
            }
        }
        state
    };
    if threads == 1 {
        return vec![worker()];
    }
    thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let own = worker();
        let others = helpers.into_iter().map(|helper| match helper.join() {
            Ok(state) => state,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(own).chain(others).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_done_once() {
        for count in [0, 1, 4, 5, 1000] {
            let done = in_parallel((0..count).collect(), Vec::new, |done, piece: usize| {
                done.push(piece);
                Work::Continue
            });
            let mut done: Vec<usize> = done.into_iter().flatten().collect();
            done.sort_unstable();
            assert_eq!(done, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_worker_that_stops_stops_all() {
        let done = in_parallel(
            (0..100_000).collect(),
            || 0_usize,
            |done, _: usize| {
                *done += 1;
                Work::Stop
            },
        );
        assert!(done.iter().sum::<usize>() <= THREADS_LIMIT);
    }
}
