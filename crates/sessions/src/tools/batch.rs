//! Runs several calls at once, in an order that keeps them from interfering with each other.

use std::future::poll_fn;
use std::task::Poll;

use super::order::{Touches, waits_for};
use super::tool::Coming;

/// How many calls run at once. Enough to keep a machine busy reading; further calls wait.
pub(super) const TOGETHER: usize = 8;

/// Runs each call once the calls it waits for are done, and returns the results in the order of the calls. All of them
/// run within the caller's task, and `start` is called when one begins.
pub(super) async fn in_order<'a, T>(
    touches: &[Touches],
    mut start: impl FnMut(usize) -> Coming<'a, T>,
) -> Vec<T> {
    let waits_for = waits_for(touches);
    let mut waiting: Vec<usize> = (0..touches.len()).collect();
    let mut running: Vec<(usize, Coming<'a, T>)> = Vec::with_capacity(TOGETHER);
    let mut done: Vec<Option<T>> = touches.iter().map(|_| None).collect();
    loop {
        waiting.retain(|call| {
            let is_free = waits_for[*call].iter().all(|earlier| done[*earlier].is_some());
            let begins = is_free && running.len() < TOGETHER;
            if begins {
                running.push((*call, start(*call)));
            }
            !begins
        });
        if running.is_empty() {
            // The first waiting call never has anything left to wait for, so no call is waiting anymore.
            return done.into_iter().flatten().collect();
        }
        let (call, result) = first_of(&mut running).await;
        done[call] = Some(result);
    }
}

/// Waits for the next call to finish.
async fn first_of<T>(running: &mut Vec<(usize, Coming<'_, T>)>) -> (usize, T) {
    let (at, result) = poll_fn(|context| {
        for (at, (_, coming)) in running.iter_mut().enumerate() {
            if let Poll::Ready(result) = coming.as_mut().poll(context) {
                return Poll::Ready((at, result));
            }
        }
        Poll::Pending
    })
    .await;
    let (call, _) = running.swap_remove(at);
    (call, result)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Waker};

    use proptest::collection::vec;
    use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use tokio::sync::oneshot;

    use super::super::path::SandboxPath;
    use super::*;

    /// A running call, and the sender that ends it.
    type Running = (usize, oneshot::Sender<usize>);

    fn some_touches() -> impl Strategy<Value = Touches> {
        let place = prop_oneof![Just(""), Just("a"), Just("a/b"), Just("c")]
            .prop_map(|text| SandboxPath::relative(text).unwrap());
        prop_oneof![
            Just(Touches::Nothing),
            Just(Touches::Everything),
            vec(place.clone(), 1..3).prop_map(Touches::Reads),
            vec(place, 1..3).prop_map(Touches::Writes),
        ]
    }

    proptest! {
        /// Calls end in any order: a call that must wait hasn't begun, any other has, and answers keep their order.
        #[test]
        fn calls_begin_when_those_that_they_wait_for_are_done(
            touches in vec(some_touches(), 0..14),
            picks in vec(any::<proptest::sample::Index>(), 14),
        ) {
            let waits_for = waits_for(&touches);
            let open: Arc<Mutex<Vec<Running>>> = Arc::default();
            let opened = Arc::clone(&open);
            let mut all = Box::pin(in_order(&touches, move |call| -> Coming<'static, usize> {
                let (send, receive) = oneshot::channel();
                opened.lock().unwrap().push((call, send));
                Box::pin(async move { receive.await.unwrap() })
            }));
            let mut context = Context::from_waker(Waker::noop());
            let mut ended: Vec<usize> = Vec::new();
            for pick in picks.iter().take(touches.len()) {
                prop_assert!(all.as_mut().poll(&mut context).is_pending());
                let running: Vec<usize> = open.lock().unwrap().iter().map(|(call, _)| *call).collect();
                let is_free = |call: &usize| waits_for[*call].iter().all(|earlier| ended.contains(earlier));
                let free = (0..touches.len()).filter(|call| !ended.contains(call) && is_free(call));
                // Every call that is free to run is running, up to the limit.
                prop_assert!(running.iter().all(is_free));
                prop_assert_eq!(running.len(), free.count().min(TOGETHER));
                let (call, end) = open.lock().unwrap().remove(pick.index(running.len()));
                end.send(call * 10).unwrap();
                ended.push(call);
            }
            let expected: Vec<usize> = (0..touches.len()).map(|call| call * 10).collect();
            prop_assert_eq!(all.as_mut().poll(&mut context), Poll::Ready(expected));
        }
    }
}
